"""Calls of models on values: compiled from the second on, with nothing else to be seen of it."""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine, layers, ops
from laminar.engine.errors import LaminarError
from laminar.engine.gradients import IndexedSlices
from laminar.engine.graph import GraphTensor

X = np.random.default_rng(0).normal(size=(6, 5)).astype("float32")


def entered(fn: Callable[[], Any]) -> set[str]:
    """The Python functions that a call of `fn` enters."""
    names: set[str] = set()

    def see(frame: Any, event: str, _: Any) -> None:
        if event == "call":
            names.add(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(see)
    try:
        fn()
    finally:
        sys.setprofile(before)
    return names


def is_compiled(model: Any, x: Any = X, **given: Any) -> bool:
    """Whether a call enters no layer."""
    return "Layer.__call__" not in entered(lambda: model(x, **given))


def perceptron(*more: Any) -> Any:
    stack = [layers.Input((5,)), layers.Dense(4, activation="tanh", name="hidden"), *more]
    return laminar.Sequential([*stack, layers.Dense(3, name="scores")])


def reference(model: Any, x: Any) -> Any:
    """A perceptron of tanh layers and a linear one, in float64."""
    weights = [np.asarray(w, "float64") for w in model.get_weights()]
    while len(weights) > 2:
        x = np.tanh(x @ weights[0] + weights[1])
        weights = weights[2:]
    return x @ weights[0] + weights[1]


def test_the_second_call_of_a_form_is_compiled() -> None:
    model = perceptron()
    assert not is_compiled(model)
    model(X)
    assert is_compiled(model)
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5, atol=1e-6)
    assert is_compiled(model, X[:2])  # of any number of rows
    np.testing.assert_allclose(model(X[:2]), reference(model, X[:2]), rtol=1e-5, atol=1e-6)
    assert not is_compiled(model, X, training=True)  # another form


def test_a_stack_without_an_input_takes_what_its_layers_take() -> None:
    model = laminar.Sequential([layers.Dense(4, activation="tanh"), layers.Dense(3)])
    for _ in range(3):
        model(X)
    assert is_compiled(model)
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5, atol=1e-6)
    more = np.stack([X, X * 2])
    for _ in range(3):  # of another rank
        np.testing.assert_allclose(model(more), reference(model, more), rtol=1e-5, atol=1e-6)


def test_new_weights_count() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    model.set_weights([w + 1 for w in model.get_weights()])
    assert is_compiled(model)
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5)


class Counted(layers.Layer):
    """A layer of a user's, whose call does something besides."""

    calls = 0

    def call(self, x: Any) -> Any:
        self.calls += 1
        return x * 2.0


def test_the_users_own_code_runs_in_each_call() -> None:
    counted, seen = Counted(), list[Any]()

    def look(x: Any) -> Any:
        seen.append(1)
        return x

    models = [
        perceptron(counted),
        perceptron(layers.Lambda(look)),
        perceptron(layers.Dense(4, activation=look)),
    ]
    for model in models:
        for _ in range(4):
            model(X)
        assert not is_compiled(model)
    assert counted.calls >= 5
    assert len(seen) >= 10


def test_a_method_that_is_replaced_is_called() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    hidden = model.get_layer("hidden")
    hidden.call = lambda x: ops.zeros((x.shape[0], 4))
    np.testing.assert_array_equal(model(X), np.broadcast_to(model.get_weights()[3], (6, 3)))
    del hidden.call
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5, atol=1e-6)


def test_changes_of_layers_are_seen_by_the_next_call() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    model.get_layer("hidden").activation = laminar.activations.relu
    w = [np.asarray(v, "float64") for v in model.get_weights()]
    wanted = np.maximum(X @ w[0] + w[1], 0) @ w[2] + w[3]
    for _ in range(3):
        np.testing.assert_allclose(model(X), wanted, rtol=1e-5, atol=1e-6)
    model.add(layers.ReLU())
    for _ in range(3):
        np.testing.assert_allclose(model(X), np.maximum(wanted, 0), rtol=1e-5, atol=1e-6)
    model.pop()
    np.testing.assert_allclose(model(X), wanted, rtol=1e-5, atol=1e-6)


def test_a_model_that_changes_all_the_time_stays_with_single_ops() -> None:
    model = perceptron()
    for i in range(30):
        model.note = i
        model(X)
    assert not is_compiled(model)
    assert not is_compiled(model)
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5, atol=1e-6)


def test_batch_normalization_learns_and_freezes() -> None:
    def run(*, eager: bool) -> list[Any]:
        laminar.utils.set_random_seed(1)
        model = perceptron(layers.BatchNormalization(momentum=0.5))
        model.compile(run_eagerly=eager)
        found = [model(X, training=True) for _ in range(4)]
        assert is_compiled(model, training=True) is not eager
        model.get_layer(index=1).trainable = False
        found += [model(X, training=True) for _ in range(3)]
        return [*found, *model.get_weights()]

    for one, other in zip(run(eager=True), run(eager=False), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_dropout_draws_what_it_draws_op_by_op() -> None:
    def run(*, eager: bool) -> list[Any]:
        laminar.utils.set_random_seed(3)
        model = laminar.Sequential([layers.Input((5,)), layers.Dropout(0.5, seed=4)])
        model.compile(run_eagerly=eager)
        return [np.asarray(model(X, training=True)) for _ in range(4)]

    one, other = run(eager=True), run(eager=False)
    np.testing.assert_array_equal(one, other)
    assert (one[2] != one[3]).any()


def gradients_of(model: Any, x: Any = X) -> tuple[Any, list[Any], Any]:
    """The loss sum(y**2), its gradients for the weights, and for the inputs."""
    given = ops.convert_to_tensor(x)
    with laminar.GradientTape() as tape:
        tape.watch(given)
        loss = ops.sum(model(given) ** 2)
    dw, dx = tape.gradient(loss, [model.trainable_variables, given])
    return loss, dw, dx


def test_gradients_of_compiled_calls() -> None:
    model = perceptron()
    w0, b0, w1, b1 = (np.asarray(w, "float64") for w in model.get_weights())
    h = np.tanh(X @ w0 + b0)
    dy = 2 * (h @ w1 + b1)
    dh = dy @ w1.T * (1 - h * h)
    for _ in range(4):
        loss, dw, dx = gradients_of(model)
        np.testing.assert_allclose(loss, np.sum((dy / 2) ** 2), rtol=1e-5)
        for found, wanted in zip(dw, [X.T @ dh, dh.sum(0), h.T @ dy, dy.sum(0)], strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(dx, dh @ w0.T, rtol=1e-4, atol=1e-5)
    assert is_compiled(model)


def test_gradients_of_gradients() -> None:
    model = perceptron()
    x = ops.convert_to_tensor(X)
    found = []
    for _ in range(3):
        with laminar.GradientTape() as outer:
            outer.watch(x)
            with laminar.GradientTape() as inner:
                inner.watch(x)
                y = ops.sum(model(x) ** 2)
            dx = inner.gradient(y, x)
            z = ops.sum(dx * dx)
        found.append(np.asarray(outer.gradient(z, x)))
    np.testing.assert_allclose(found[2], found[0], rtol=1e-3, atol=1e-4)


def test_rows_stay_rows_under_a_tape() -> None:
    model = laminar.Sequential([layers.Input((2,), dtype="int32"), layers.Embedding(9, 3)])
    ids = np.array([[1, 2], [2, 8]], "int32")
    for _ in range(4):
        model(ids)
    assert is_compiled(model, ids)
    with laminar.GradientTape() as tape:
        y = model(ids)
    (dw,) = tape.gradient(y, model.trainable_variables)
    assert isinstance(dw, IndexedSlices)
    np.testing.assert_array_equal(
        ops.convert_to_tensor(dw), np.eye(9)[ids].sum((0, 1))[:, None] + np.zeros(3)
    )


def test_losses_and_masks_are_left_as_before() -> None:
    penalized = perceptron(layers.Dense(4, activity_regularizer="l2"))
    for _ in range(4):
        penalized(X, training=True)
        assert len(penalized.losses) == 1
        assert float(penalized.losses[0]) > 0
    masking = laminar.Sequential([layers.Input((3, 2)), layers.Masking()])
    x = np.array([[[1, 2], [0, 0], [3, 4]]], "float32")
    for _ in range(4):
        np.testing.assert_array_equal(masking(x)._keras_mask, [[True, False, True]])


def test_errors_are_those_of_the_line_of_the_call() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    with pytest.raises(LaminarError) as caught:
        model(X[:, :3])  # too narrow
    assert "# too narrow" in str(caught.value)
    lookup = laminar.Sequential([layers.Input((2,), dtype="int32"), layers.Embedding(9, 3)])
    for _ in range(3):
        lookup(np.array([[1, 2]], "int32"))
    try:
        outcome: Any = lookup(np.array([[1, 99]], "int32"))  # no such row
    except LaminarError as error:
        outcome = str(error)
        assert "# no such row" in outcome


def test_graphs_scopes_and_functions_are_as_before() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    with engine.Graph().as_default():
        symbol = engine.placeholder("float32", [None, 5])
        assert isinstance(perceptron()(symbol), GraphTensor)
    traced = laminar.function(lambda x: model(x) + 1.0)
    np.testing.assert_allclose(traced(X), reference(model, X) + 1, rtol=1e-5, atol=1e-6)
    zeros = [np.zeros_like(w) for w in model.get_weights()]
    outputs, _ = model.stateless_call(zeros, [], X)
    np.testing.assert_array_equal(outputs, np.zeros((6, 3)))
    assert is_compiled(model)


def test_a_copy_has_calls_of_its_own() -> None:
    model = perceptron()
    for _ in range(3):
        model(X)
    other = copy.deepcopy(model)
    other.set_weights([w * 2 for w in model.get_weights()])
    for _ in range(3):
        np.testing.assert_allclose(other(X), reference(other, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(model(X), reference(model, X), rtol=1e-5, atol=1e-6)


def test_inputs_of_any_structure_and_models_in_calls_of_the_users() -> None:
    a, b = layers.Input((5,), name="a"), layers.Input((5,), name="b")
    both = laminar.Model({"a": a, "b": b}, [layers.Add()([a, b]), layers.Subtract()([a, b])])
    for _ in range(3):
        total, difference = both({"a": X, "b": X.astype("float64") * 2})
        np.testing.assert_allclose(total, X * 3, rtol=1e-6)
        np.testing.assert_allclose(difference, -X, rtol=1e-6)

    class Around(laminar.Model):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.calls = perceptron(layers.Dropout(0.9)), 0

        def call(self, x: Any) -> Any:
            self.calls += 1
            return self.inner(x)

    around = Around()
    for _ in range(4):
        around(X, training=False)
    assert around.calls == 4
    names = entered(lambda: around(X, training=False))
    assert "Dense.call" not in names
    assert (np.asarray(around(X, training=True)) != np.asarray(around(X, training=False))).any()
