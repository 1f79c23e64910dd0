"""One model, five ways to train it: the losses, gradients, weights and predictions are the same.

The ways: a step computed at once, the same step as a `function`, the model's layers in a graph with
a session, the model written out in ops in a graph with a session, and `fit`. Three steps each, on
batches of 8, 8 and 5 examples; gradient descent with momentum.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import laminar
from laminar import engine, layers, losses, ops, optimizers, random
from laminar.callbacks import Callback

ROOT = Path(__file__).resolve().parents[1]

SIZE, BATCH = 21, 8
RATE, MOMENTUM = 0.1, 0.9

rng = np.random.default_rng(0)
IMAGES = rng.normal(size=(SIZE, 8, 8, 2)).astype("float32")
POINTS = rng.normal(size=(SIZE, 6)).astype("float32")
TEXTS = rng.integers(0, 12, (SIZE, 7)).astype("int32")
LABELS = rng.integers(0, 3, SIZE).astype("int32")
VALUES = rng.normal(size=(SIZE, 2)).astype("float32")


class Steps(NamedTuple):
    """What three steps give.

    `gradients[k]` and `weights[k]` belong to step k, in the order of the model's trainable weights,
    with those that are not trainable after them in `weights`.
    """

    losses: list[float]
    gradients: list[list[Any]]
    weights: list[list[Any]]
    predictions: Any


class Case(NamedTuple):
    """A model and its data; `by_hand(weights, x, training)` are its outputs and its updates."""

    layers: Callable[[], list[Any]]
    by_hand: Callable[[list[Any], Any, bool], tuple[Any, list[Any]]]
    x: Any
    y: Any

    def model(self) -> Any:
        laminar.set_random_seed(1)
        shape = layers.Input(self.x.shape[1:], dtype=self.x.dtype.name)
        return laminar.Sequential([shape, *self.layers()])

    @property
    def loss(self) -> Any:
        if self.y.dtype.kind == "i":
            return losses.SparseCategoricalCrossentropy(from_logits=True)
        return losses.MeanSquaredError()

    def loss_by_hand(self, y: Any, outputs: Any) -> Any:
        if self.y.dtype.kind == "i":
            chosen = ops.take_along_axis(ops.log_softmax(outputs), ops.expand_dims(y, 1), axis=1)
            return -ops.mean(chosen)
        return ops.mean(ops.square(outputs - y))

    def batches(self) -> Iterator[tuple[Any, Any]]:
        return ((self.x[i : i + BATCH], self.y[i : i + BATCH]) for i in range(0, SIZE, BATCH))

    def placeholders(self) -> tuple[Any, Any]:
        return tuple(
            engine.placeholder(a.dtype.name, [None, *a.shape[1:]]) for a in (self.x, self.y)
        )  # type: ignore[return-value]  # two of them


def sgd() -> Any:
    return optimizers.SGD(RATE, momentum=MOMENTUM)


def weights_of(model: Any) -> list[Any]:
    return [*model.trainable_weights, *model.non_trainable_weights]


def values(variables: list[Any]) -> list[Any]:
    return [np.array(v) for v in variables]


# The models


def dense(x: Any, kernel: Any, bias: Any) -> Any:
    return ops.matmul(x, kernel) + bias


def convolution_layers() -> list[Any]:
    return [
        layers.Conv2D(4, 3, padding="same", activation="relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dense(3),
    ]


def convolution(weights: list[Any], x: Any, training: bool) -> tuple[Any, list[Any]]:
    kernel, bias, *last = weights
    x = ops.relu(ops.conv(x, kernel, 1, "same") + bias)
    x = ops.max_pool(x, 2)
    return dense(ops.reshape(x, (-1, 64)), *last), []


def regularized_layers() -> list[Any]:
    return [
        layers.Conv2D(4, 3, strides=2, use_bias=False),
        layers.BatchNormalization(momentum=0.8),
        layers.ReLU(),
        layers.Dropout(0.4, seed=11),
        layers.GlobalAveragePooling2D(),
        layers.Dense(3),
    ]


def regularized(weights: list[Any], x: Any, training: bool) -> tuple[Any, list[Any]]:
    kernel, gamma, beta, last, bias, moving_mean, moving_variance = weights
    x = ops.conv(x, kernel, 2, "valid")
    updates = []
    mean, variance = moving_mean, moving_variance
    if training:
        mean, variance = ops.moments(x, [0, 1, 2])
        updates = [
            engine.assign(moving_mean, 0.8 * moving_mean + 0.2 * mean),
            engine.assign(moving_variance, 0.8 * moving_variance + 0.2 * variance),
        ]
    x = ops.relu((x - mean) / ops.sqrt(variance + 1e-3) * gamma + beta)
    if training:
        x = random.dropout(x, 0.4, seed=random.SeedGenerator(11))
    return dense(ops.mean(x, [1, 2]), last, bias), updates


def perceptron_layers() -> list[Any]:
    return [
        layers.Dense(16, activation="tanh"),
        layers.Dense(8, activation="gelu"),
        layers.Dense(2),
    ]


def perceptron(weights: list[Any], x: Any, training: bool) -> tuple[Any, list[Any]]:
    x = ops.tanh(dense(x, *weights[:2]))
    x = dense(x, *weights[2:4])
    x = x * 0.5 * (1 + ops.erf(x / np.float32(np.sqrt(2))))
    return dense(x, *weights[4:]), []


def text_layers() -> list[Any]:
    return [
        layers.Embedding(12, 5),
        layers.LayerNormalization(),
        layers.GlobalAveragePooling1D(),
        layers.Dense(3),
    ]


def text(weights: list[Any], x: Any, training: bool) -> tuple[Any, list[Any]]:
    table, gamma, beta, *last = weights
    x = ops.take(table, x, axis=0)
    mean, variance = ops.moments(x, [-1], keepdims=True)
    x = (x - mean) / ops.sqrt(variance + 1e-3) * gamma + beta
    return dense(ops.mean(x, 1), *last), []


CASES = {
    "convolution": Case(convolution_layers, convolution, IMAGES, LABELS),
    "normalization-and-dropout": Case(regularized_layers, regularized, IMAGES, LABELS),
    "perceptron": Case(perceptron_layers, perceptron, POINTS, VALUES),
    "text": Case(text_layers, text, TEXTS, LABELS),
}


# The ways


def train_step(model: Any, optimizer: Any, loss: Any) -> Callable[[Any, Any], Any]:
    def step(x: Any, y: Any) -> Any:
        with laminar.GradientTape() as tape:
            value = loss(y, model(x, training=True))
        gradients = tape.gradient(value, model.trainable_weights)
        optimizer.apply(gradients, model.trainable_weights)
        return value, gradients

    return step


def run_steps(case: Case, model: Any, step: Callable[[Any, Any], Any], predict: Any) -> Steps:
    found: tuple[list[float], list[Any], list[Any]] = ([], [], [])
    for x, y in case.batches():
        value, gradients = step(ops.convert_to_tensor(x), ops.convert_to_tensor(y))
        found[0].append(float(value))
        found[1].append(values(gradients))
        found[2].append(values(weights_of(model)))
    return Steps(*found, np.array(predict(ops.convert_to_tensor(case.x))))


def at_once(case: Case) -> Steps:
    model = case.model()
    return run_steps(case, model, train_step(model, sgd(), case.loss), model)


def as_function(case: Case) -> Steps:
    model = case.model()
    optimizer = sgd()
    optimizer.build(model.trainable_weights)
    signature = [engine.TensorSpec((None, *a.shape[1:]), a.dtype.name) for a in (case.x, case.y)]
    step = laminar.function(train_step(model, optimizer, case.loss), input_signature=signature)
    steps = run_steps(case, model, step, laminar.function(model))
    assert step.trace_count == 1
    return steps


def run_session(
    case: Case, graph: Any, x: Any, y: Any, fetches: Any, weights: list[Any], predictions: Any
) -> Steps:
    """`fetches` are the loss, the gradients, and what a step has to run besides."""
    found: tuple[list[float], list[Any], list[Any]] = ([], [], [])
    with engine.Session(graph=graph) as session:
        session.run("init")
        for batch_x, batch_y in case.batches():
            value, gradients, *_ = session.run(fetches, {x: batch_x, y: batch_y})
            found[0].append(float(value))
            found[1].append(gradients)
            found[2].append(session.run(weights))
        return Steps(*found, session.run(predictions, {x: case.x}))


def layers_in_a_graph(case: Case) -> Steps:
    with engine.Graph().as_default() as graph:
        x, y = case.placeholders()
        model = case.model()
        loss = case.loss(y, model(x, training=True))
        gradients = engine.gradients(loss, model.trainable_weights)
        step = sgd().apply(gradients, model.trainable_weights)
        predictions = model(x, training=False)
        engine.variables_initializer(engine.global_variables(), name="init")
    weights = weights_of(model)
    return run_session(case, graph, x, y, [loss, gradients, step], weights, predictions)


def ops_in_a_graph(case: Case) -> Steps:
    given = case.model()
    initial = values(weights_of(given))
    with engine.Graph().as_default() as graph:
        x, y = case.placeholders()
        weights: list[Any] = [engine.Variable(w) for w in initial]
        trained = weights[: len(given.trainable_weights)]
        outputs, updates = case.by_hand(weights, x, True)
        loss = case.loss_by_hand(y, outputs)
        gradients: list[Any] = engine.gradients(loss, trained)
        with engine.control_dependencies([loss, *gradients, *updates]):
            for w, dw in zip(trained, gradients, strict=True):
                velocity = engine.Variable(np.zeros(w.shape, "float32"), trainable=False)
                change = engine.assign(velocity, MOMENTUM * velocity - RATE * dw)
                updates.append(engine.assign_add(w, change))
        predictions, _ = case.by_hand(weights, x, False)
        engine.variables_initializer(engine.global_variables(), name="init")
    fetches = [loss, gradients, engine.group(*updates)]
    return run_session(case, graph, x, y, fetches, weights, predictions)


class Watch(Callback):
    """Takes notes of each step of `fit`: gradients are seen in the velocities they changed."""

    def __init__(self) -> None:
        super().__init__()
        self.means: list[float] = []
        self.velocities: list[list[Any]] = []
        self.weights: list[list[Any]] = []

    def on_train_batch_end(self, batch: int, logs: dict[str, Any] | None = None) -> None:
        assert logs is not None
        self.means.append(logs["loss"])
        slots = [v for v in self.model.optimizer.variables if v.name.endswith("momentum")]
        self.velocities.append(values(slots))
        self.weights.append(values(weights_of(self.model)))


def with_fit(case: Case) -> Steps:
    model = case.model()
    model.compile(optimizer=sgd(), loss=case.loss)
    watch = Watch()
    model.fit(case.x, case.y, batch_size=BATCH, shuffle=False, verbose=0, callbacks=[watch])
    sizes = np.array([len(x) for x, _ in case.batches()])
    totals = np.array(watch.means) * np.cumsum(sizes)  # fit reports the mean over the examples
    before = [[0 * v for v in watch.velocities[0]], *watch.velocities]
    gradients = [
        [(MOMENTUM * old - new) / RATE for old, new in zip(*pair, strict=True)]
        for pair in zip(before, watch.velocities, strict=False)
    ]
    step_losses = (np.diff(totals, prepend=0) / sizes).tolist()
    return Steps(step_losses, gradients, watch.weights, model.predict(case.x, verbose=0))


WAYS = {
    "function": as_function,
    "layers-in-a-graph": layers_in_a_graph,
    "ops-in-a-graph": ops_in_a_graph,
    "fit": with_fit,
}


@pytest.fixture(scope="module", params=CASES)
def case_and_steps(request: pytest.FixtureRequest) -> tuple[Case, Steps]:
    case = CASES[request.param]
    return case, at_once(case)


def test_training_at_once(case_and_steps: tuple[Case, Steps]) -> None:
    """What the others are compared with does train: every weight moves at every step."""
    case, steps = case_and_steps
    assert len(steps.losses) == len(steps.gradients) == len(steps.weights) == 3
    before = values(weights_of(case.model()))
    for gradients, weights in zip(steps.gradients, steps.weights, strict=True):
        assert all(np.abs(g).max() > 1e-6 for g in gradients)
        assert all((w != b).any() for w, b in zip(weights, before, strict=True))
        before = weights
    assert steps.predictions.shape == (SIZE, 2 if case.y is VALUES else 3)


@pytest.mark.parametrize("way", WAYS)
def test_all_ways_agree(case_and_steps: tuple[Case, Steps], way: str) -> None:
    case, expected = case_and_steps
    found = WAYS[way](case)
    np.testing.assert_allclose(found.losses, expected.losses, rtol=1e-5, err_msg="losses")
    for k in range(3):
        assert_close(found.gradients[k], expected.gradients[k], f"gradients of step {k}")
        assert_close(found.weights[k], expected.weights[k], f"weights after step {k}")
    assert_close([found.predictions], [expected.predictions], "predictions")


def assert_close(found: list[Any], expected: list[Any], what: str) -> None:
    """Equal to the rounding of float32, on the scale of each array."""
    for f, e in zip(found, expected, strict=True):
        scale = float(np.abs(e).max())
        np.testing.assert_allclose(f, e, rtol=2e-5, atol=1e-5 * max(scale, 0.1), err_msg=what)


# One seed, the same bits


def digest() -> str:
    """Of all that a seed decides: weights, the order of batches, dropout, plain draws."""
    laminar.set_random_seed(5)
    shape = layers.Input((8, 8, 2))
    dropout = layers.Dropout(0.3)
    model = laminar.Sequential([shape, dropout, *CASES["normalization-and-dropout"].layers()])
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="adam", loss=loss, metrics=["accuracy"])
    history = model.fit(IMAGES, LABELS, batch_size=BATCH, epochs=3, verbose=0)
    found = [*model.get_weights(), *history.history.values(), model.predict(IMAGES, verbose=0)]
    found += [random.normal((3,)), random.uniform((3,), seed=2)]
    return hashlib.sha256(b"".join(np.asarray(a).tobytes() for a in found)).hexdigest()


def test_one_seed_one_result() -> None:
    first = digest()
    random.normal((5,))  # what happens between two runs does not matter
    layers.Dense(3).build((None, 2))
    assert digest() == first


@pytest.mark.slow
def test_processes_with_one_seed_agree() -> None:
    """Also when Python's own hashes differ, which decide about the order of its sets."""
    program = "from tests.test_ways_to_train import digest; print(digest())"
    found = set()
    for hash_seed in ("1", "2"):
        run = subprocess.run(
            [sys.executable, "-c", program],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(run.stdout.strip())
    assert found == {digest()}


def test_another_seed_gives_another_model() -> None:
    initial = []
    for seed in (1, 2, 1):
        laminar.set_random_seed(seed)
        layer = layers.Dense(4)
        layer.build((None, 3))
        initial.append(np.array(layer.kernel))
    assert (initial[0] != initial[1]).all()
    assert (initial[0] == initial[2]).all()


def test_draws_in_a_graph_go_on_from_run_to_run() -> None:
    """As at once: two draws of a program differ, and so do two runs of it."""
    generator = random.SeedGenerator(3)
    expected = [random.normal((2,), seed=generator).numpy() for _ in range(6)]
    with engine.Graph().as_default() as graph:
        inside = random.SeedGenerator(3)
        draws = [random.normal((2,), seed=inside) for _ in range(2)]
        free = [random.normal((2,)) for _ in range(2)]
        init = engine.global_variables_initializer()
    with engine.Session(graph=graph) as session:
        session.run(init)
        found = [session.run([draws, free]) for _ in range(3)]
    np.testing.assert_array_equal([x for run, _ in found for x in run], expected)
    assert len({x.tobytes() for _, run in found for x in run}) == 6


# One trace for all sizes of batches


class Counted(layers.Layer):
    """Counts how often its call runs as Python: once for each trace."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return x


@pytest.mark.parametrize("name", CASES)
def test_a_last_batch_of_another_size_runs_the_same_trace(name: str) -> None:
    case = CASES[name]
    counted = Counted()
    shape = layers.Input(case.x.shape[1:], dtype=case.x.dtype.name)
    model = laminar.Sequential([shape, *case.layers(), counted])
    model.compile(optimizer=sgd(), loss=case.loss, metrics=["mae"] if case.y is VALUES else None)
    options: dict[str, Any] = {"batch_size": BATCH, "verbose": 0}
    whole = 2 * BATCH
    traces = []
    for count in (whole, SIZE, BATCH + 1):  # batches of 8, then also of 5, then of 1
        x, y = case.x[:count], case.y[:count]
        model.fit(x, y, epochs=2, **options)
        model.evaluate(x, y, **options)
        assert len(model.predict(x, **options)) == count
        traces.append(counted.calls)
    model.fit(case.x, case.y, batch_size=4, verbose=0)
    assert traces == [traces[0]] * 3
    assert counted.calls == traces[0]


def test_eager_steps_run_python_each_time() -> None:
    """So the count above tells traces from runs."""
    counted = Counted()
    model = laminar.Sequential([layers.Input((6,)), layers.Dense(2), counted])
    model.compile(optimizer=sgd(), loss="mse", run_eagerly=True)
    model.fit(POINTS, VALUES, batch_size=BATCH, verbose=0)
    before = counted.calls
    model.fit(POINTS, VALUES, batch_size=BATCH, verbose=0)
    assert counted.calls == before + 3
