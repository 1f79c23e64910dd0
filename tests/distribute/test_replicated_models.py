"""Models of all kinds, trained by several devices: what one device would have made of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, losses, metrics, ops
from laminar.distribute import DataParallel
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, LaminarError

rng = np.random.default_rng(1)
X = rng.normal(size=(43, 20)).astype("float32")
Y = rng.integers(0, 3, 43)
MODES = ["sync", "async"]


def dense() -> laminar.Sequential:
    laminar.set_random_seed(3)
    return laminar.Sequential(
        [layers.Input((20,)), layers.Dense(16, activation="tanh"), layers.Dense(3)]
    )


def compiled(model: Any, strategy: Any, **options: Any) -> Any:
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, metrics=["accuracy"], strategy=strategy, **options)
    return model


def fitted(model: Any, **options: Any) -> dict[str, list[float]]:
    given = {"batch_size": 10, "epochs": 2, "shuffle": False, "verbose": 0, **options}
    history: dict[str, list[float]] = model.fit(X, Y, **given).history
    return history


def check_same(build: Callable[[], Any], devices: Any = 2, **options: Any) -> Any:
    """Training by several devices is training by one; gives the model of the several."""
    one, several = compiled(build(), None), compiled(build(), DataParallel(devices))
    logs = [fitted(m, **options) for m in (one, several)]
    assert logs[0].keys() == logs[1].keys()
    for name, values in logs[0].items():
        np.testing.assert_allclose(logs[1][name], values, rtol=1e-4, atol=1e-6, err_msg=name)
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)
    return several


def devices_of(model: Any) -> set[str]:
    """Where the step multiplies matrices."""
    traces = model._laminar_compiled.steps["train"]._concrete.values()
    return {op.device for c in traces for op in c.operations if op.type == "MatMul"}


def on_both(found: set[str]) -> bool:
    return {name[-5:] for name in found} == {"cpu:0", "cpu:1"}


# Steps that users write


class OwnStep(laminar.Sequential):
    """As the guides of Keras have it."""

    def train_step(self, data: Any) -> Any:
        x, y = data
        with laminar.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=y_pred)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, y_pred)
        return {m.name: m.result() for m in self.metrics}


def test_a_train_step_of_ones_own_is_shared() -> None:
    def build() -> Any:
        laminar.set_random_seed(3)
        return OwnStep([layers.Input((20,)), layers.Dense(16, "tanh"), layers.Dense(3)])

    assert on_both(devices_of(check_same(build)))


def test_a_model_that_is_built_by_its_first_step() -> None:
    def build() -> Any:
        laminar.set_random_seed(3)
        return OwnStep([layers.Dense(16), layers.BatchNormalization(synchronized=True)])

    one, several = build(), build()
    for model, strategy in ((one, None), (several, DataParallel(2))):
        model.compile("sgd", "mse", strategy=strategy)
        model.fit(X, np.zeros((43, 16)), batch_size=10, shuffle=False, verbose=0)
    for a, b in zip(one.get_weights(), several.get_weights(), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5)


def test_a_step_of_several_models() -> None:
    """The parts of an autoencoder that its step calls one by one."""

    class Autoencoder(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = laminar.Sequential([layers.Input((20,)), layers.Dense(4)])
            self.decoder = laminar.Sequential([layers.Input((4,)), layers.Dense(20)])
            self.tracker = metrics.Mean(name="loss")

        def train_step(self, data: Any) -> Any:
            x, _ = data
            with laminar.GradientTape() as tape:
                loss = ops.mean(ops.square(self.decoder(self.encoder(x)) - x))
            variables = self.trainable_weights
            self.optimizer.apply(tape.gradient(loss, variables), variables)
            self.tracker.update_state(loss)
            return {"loss": self.tracker.result()}

    def build() -> Any:
        laminar.set_random_seed(3)
        return Autoencoder()

    assert on_both(devices_of(check_same(build)))


def test_a_loss_of_ones_own() -> None:
    class Own(laminar.Sequential):
        def compute_loss(  # type: ignore[override]  # as it was before Keras 3.3
            self, x: Any = None, y: Any = None, y_pred: Any = None, sample_weight: Any = None
        ) -> Any:
            return ops.mean(ops.square(y_pred - ops.one_hot(y, 3))) + 0.1 * ops.mean(y_pred)

    def build() -> Any:
        laminar.set_random_seed(3)
        return Own([layers.Input((20,)), layers.Dense(3)])

    assert on_both(devices_of(check_same(build, 2)))


def test_what_layers_count_and_report() -> None:
    class Counting(layers.Layer):
        def __init__(self, **kwargs: Any) -> None:
            super().__init__(**kwargs)
            self.mean = metrics.Mean(name="size")

        def call(self, x: Any) -> Any:
            self.mean.update_state(ops.mean(x, axis=1))
            self.add_metric(ops.mean(x), name="mean")
            self.add_loss(0.1 * ops.mean(ops.square(x)))
            return x

    def build() -> Any:
        laminar.set_random_seed(3)
        return laminar.Sequential([layers.Input((20,)), Counting(), layers.Dense(3)])

    logs = fitted(check_same(build, 3))
    assert {"size", "mean"} <= logs.keys()


def test_outputs_without_examples_are_refused() -> None:
    class Mean(laminar.Model):
        def call(self, x: Any) -> Any:
            return ops.mean(x)

    model = Mean()
    model.compile("sgd", "mse", strategy=DataParallel(2))
    with pytest.raises(InvalidArgumentError, match="examples along their first axis"):
        model.evaluate(X, X[:, 0], verbose=0)


# Statistics of the whole batch


def normalized(*, synchronized: bool = True) -> laminar.Sequential:
    laminar.set_random_seed(3)
    return laminar.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(16, activity_regularizer="l2"),
            layers.BatchNormalization(momentum=0.8, synchronized=synchronized),
            layers.Dense(3),
        ]
    )


def nested() -> laminar.Model:
    laminar.set_random_seed(3)
    inner = laminar.Sequential(
        [
            layers.Dense(8, use_bias=False),  # its gradient is zero but for rounding, which Adam
            layers.BatchNormalization(synchronized=True, momentum=0.8),  # would make steps of
        ]
    )
    x = layers.Input((20,))
    y = layers.Add()([inner(x), layers.Dense(8)(x)])
    return laminar.Model(x, layers.Dense(3)(y))


@pytest.mark.parametrize("build", [normalized, nested])
def test_synchronized_normalization_is_that_of_the_whole_batch(build: Callable[[], Any]) -> None:
    """Also for the last batch, of 3."""
    model = check_same(build, 2, epochs=3)
    assert on_both(devices_of(model))
    found = laminar.models.clone_model(model)
    assert any(getattr(layer, "synchronized", False) for layer in found._laminar_flatten_layers())


def test_what_is_not_synchronized_has_the_statistics_of_its_share() -> None:
    one = compiled(normalized(synchronized=False), None)
    several = compiled(normalized(synchronized=False), DataParallel(2))
    logs = [fitted(m, epochs=1) for m in (one, several)]
    assert logs[0]["loss"] != pytest.approx(logs[1]["loss"], rel=1e-4)


# All of fit


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "weights",
    [
        {"class_weight": {0: 1.0, 1: 2.0, 2: 0.5}},
        {"sample_weight": rng.uniform(size=43).astype("float32")},
    ],
)
def test_weights_of_examples_and_classes(mode: str, weights: Any) -> None:
    """In async mode the last step of each epoch may come before the one before it."""
    one, several = compiled(dense(), None), compiled(dense(), DataParallel(2, mode))
    logs = [fitted(m, **weights)["loss"] for m in (one, several)]
    np.testing.assert_allclose(logs[1], logs[0], rtol=1e-5 if mode == "sync" else 0.02)


@pytest.mark.parametrize("mode", MODES)
def test_evaluate_and_predict(mode: str) -> None:
    one, several = compiled(dense(), None), compiled(dense(), DataParallel(3, mode))
    calls: list[Callable[[Any], Any]] = [
        lambda m: m.evaluate(X, Y, batch_size=10, verbose=0),
        lambda m: m.predict(X, batch_size=10, verbose=0),
        lambda m: m.predict(X[:2], verbose=0),
        lambda m: m.predict(X[:1], verbose=0),
        lambda m: m.predict_on_batch(X),
        lambda m: m.train_on_batch(X, Y),
        lambda m: m.test_on_batch(X, Y),
    ]
    for call in calls:
        np.testing.assert_allclose(call(several), call(one), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("mode", MODES)
def test_a_value_that_is_not_finite_is_found(mode: str) -> None:
    def build() -> Any:
        laminar.set_random_seed(3)
        model = laminar.Sequential(
            [layers.Input((20,)), layers.Lambda(ops.log, name="log"), layers.Dense(3)]
        )
        return compiled(model, DataParallel(2, mode))

    positive = np.abs(X) + 1
    build().fit(positive, Y, check="nan", verbose=0)
    positive[40, 3] = -1.0
    with pytest.raises(FailedPreconditionError, match=r"batch 4 of epoch 1.*\(Log\) of layer"):
        build().fit(positive, Y, check="nan", batch_size=10, shuffle=False, verbose=0)


@pytest.mark.parametrize("mode", MODES)
def test_a_dry_run_leaves_all_as_it_was(mode: str, capsys: pytest.CaptureFixture[str]) -> None:
    model = compiled(dense(), DataParallel(2, mode))
    before = model.get_weights()
    model.fit(X, Y, dry_run=True, validation_split=0.2)
    assert "4 of 4 trainable weights have changed" in capsys.readouterr().out
    for a, b in zip(before, model.get_weights(), strict=True):
        np.testing.assert_array_equal(b, a)


class StopError(Exception):
    """An interruption."""


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("when", [2, 7])
def test_training_goes_on_where_it_was_interrupted(mode: str, when: int, tmp_path: Path) -> None:
    """In sync mode with the same bits; in async mode with all updates, whatever their order."""

    class Interrupting(laminar.callbacks.Callback):
        steps = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.steps += 1
            if self.steps == when:
                raise StopError

    def run(folder: str, callbacks: list[Any]) -> Any:
        model = compiled(dense(), DataParallel(2, mode))
        model.fit(
            X,
            Y,
            batch_size=10,
            epochs=3,
            verbose=0,
            resume=tmp_path / folder,
            callbacks=callbacks,
        )
        return model

    whole = run("whole", [])
    with pytest.raises(StopError):
        run("parts", [Interrupting()])
    resumed = run("parts", [])
    assert int(resumed.optimizer.iterations.numpy()) == 15
    if mode == "sync":
        for a, b in zip(whole.get_weights(), resumed.get_weights(), strict=True):
            np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("mode", MODES)
def test_few_batches_and_several_steps_at_a_time(mode: str) -> None:
    model = compiled(dense(), DataParallel(2, mode), steps_per_execution=2)
    seen: list[int] = []
    telling = laminar.callbacks.LambdaCallback(on_train_batch_end=lambda b, logs: seen.append(b))
    logs = fitted(model, epochs=30, overfit_batches=3, callbacks=[telling])
    assert seen == [1, 3] * 30  # as Keras numbers the last one of a group
    assert logs["loss"][-1] < 0.8 * logs["loss"][0]
    assert int(model.optimizer.iterations.numpy()) == 90


@pytest.mark.parametrize("mode", MODES)
def test_a_model_is_saved_and_loaded(mode: str, tmp_path: Path) -> None:
    model = compiled(dense(), DataParallel(2, mode))
    fitted(model)
    model.save(tmp_path / "model.keras")
    loaded = laminar.models.load_model(tmp_path / "model.keras")
    np.testing.assert_allclose(
        loaded.predict(X, verbose=0), model.predict(X, verbose=0), rtol=1e-5, atol=1e-6
    )
    logs = [m.evaluate(X, Y, verbose=0) for m in (loaded, model)]
    np.testing.assert_allclose(logs[0], logs[1], rtol=1e-5)
    fitted(loaded, devices=2)


def replicas_at_work() -> list[str]:
    names = [t.name for t in threading.enumerate()]
    return [name for name in names if name.startswith("laminar-replica")]


def test_no_thread_outlives_fit() -> None:
    model = compiled(dense(), DataParallel(2, "async"))
    fitted(model)
    assert replicas_at_work() == []

    def fail(batch: int, logs: Any) -> None:
        raise StopError

    with pytest.raises(StopError):
        fitted(model, callbacks=[laminar.callbacks.LambdaCallback(on_train_batch_end=fail)])
    assert replicas_at_work() == []
    fitted(model)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("jit_compile", [True, False])
def test_an_error_of_a_replica_names_it(mode: str, jit_compile: bool) -> None:
    """A number that only the second half of the batch has; the other replica ends too."""
    laminar.set_random_seed(3)
    model = laminar.Sequential(
        [layers.Input((1,), dtype="int32"), layers.Embedding(5, 4), layers.Flatten()]
    )
    model.compile("sgd", "mse", strategy=DataParallel(2, mode), jit_compile=jit_compile)
    x = np.zeros((8, 1), "int32")
    y = np.zeros((8, 4))
    before = model.get_weights()
    model.fit(x, y, verbose=0)
    x[-1] = 77
    with pytest.raises(LaminarError, match=r"77.*on \S*cpu:1" if mode == "sync" else "77"):
        model.fit(x, y, verbose=0)
    assert replicas_at_work() == []
    x[-1] = 0
    model.fit(x, y, verbose=0)
    assert all(np.isfinite(w).all() for w in [*before, *model.get_weights()])
