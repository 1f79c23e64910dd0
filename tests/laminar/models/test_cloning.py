"""New models like old ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.models import clone_model, model_from_json

X = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)


class Scale(layers.Layer):
    def __init__(self, factor: float = 2.0, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.factor = factor

    def call(self, x: Any) -> Any:
        return x * self.factor


class Net(laminar.Model):
    def __init__(self, units: int = 2, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.head = layers.Dense(units)

    def call(self, x: Any) -> Any:
        return self.head(x)


class Named(laminar.Model):
    """A class made the functional way."""


def stack() -> laminar.Model:
    return laminar.Sequential(
        [layers.Input((4,)), layers.Dense(3, "tanh", name="a"), Scale(3.0), layers.Dense(2)],
        name="stack",
    )


def late_stack() -> laminar.Model:
    return laminar.Sequential([layers.Dense(3, name="a"), Scale()], name="late")


def graph(kind: Any = laminar.Model) -> laminar.Model:
    x = layers.Input((4,), name="x")
    inner = stack()
    tower = layers.Dense(4, name="a")
    y = inner(tower(tower(x))) + ops.mean(x, axis=-1, keepdims=True)
    return kind({"x": x}, {"y": y, "z": Scale(name="scale")(y)}, name="graph")  # type: ignore[no-any-return]  # a model


def flat(y: Any) -> list[Any]:
    return [np.asarray(part) for part in laminar.tree.flatten(y)]


@pytest.mark.parametrize("make", [stack, graph, lambda: graph(Named)])
def test_a_clone_computes_the_same_with_weights_of_its_own(make: Any) -> None:
    model = make()
    clone = clone_model(model)
    assert type(clone) is type(model)
    assert clone.name == model.name
    assert [layer.name for layer in clone.layers] == [layer.name for layer in model.layers]
    assert not {id(w) for w in clone.weights} & {id(w) for w in model.weights}
    clone.set_weights(model.get_weights())
    for a, b in zip(flat(model(X)), flat(clone(X)), strict=True):
        np.testing.assert_array_equal(a, b)
    # The old model has not got new calls.
    assert model.get_config() == clone.get_config()


def test_a_class_of_its_own() -> None:
    model = Net(5, name="net")
    model(X)
    clone = clone_model(model)
    assert isinstance(clone, Net)
    assert clone.units == 5
    with pytest.raises(InvalidArgumentError, match="has no symbolic calls"):
        clone_model(model, clone_function=lambda layer: layer)


@pytest.mark.parametrize("make", [stack, late_stack, graph])
def test_layers_made_by_a_function(make: Any) -> None:
    def wider(layer: Any) -> Any:
        config = layer.get_config()
        if isinstance(layer, Scale):
            config["factor"] = 10.0
        return type(layer).from_config(config)

    clone = clone_model(make(), clone_function=wider)
    assert {layer.factor for layer in clone.layers if isinstance(layer, Scale)} == {10.0}
    if make is graph:
        inner = clone.get_layer("stack")
        assert inner.get_layer(index=1).factor == 3.0  # type: ignore[attr-defined]  # a model
        clone = clone_model(make(), clone_function=wider, recursive=True)
        assert clone.get_layer("stack").get_layer(index=1).factor == 10.0  # type: ignore[attr-defined]  # a model


def test_calls_made_by_a_function() -> None:
    def doubled(layer: Any, *args: Any, **kwargs: Any) -> Any:
        y = layer(*args, **kwargs)
        return y * 2 if isinstance(layer, Scale) else y

    clone = clone_model(stack(), call_function=doubled)
    same = clone_model(stack())
    for model in (clone, same):
        model.set_weights([np.ones(w.shape) for w in model.get_weights()])
    hidden = np.tanh(X.sum(1, keepdims=True) + 1) * np.ones((1, 3))
    np.testing.assert_allclose(
        np.asarray(clone(X)), (6 * hidden).sum(1, keepdims=True) + np.ones((1, 2)), rtol=1e-5
    )
    np.testing.assert_allclose(
        np.asarray(same(X)), (3 * hidden).sum(1, keepdims=True) + np.ones((1, 2)), rtol=1e-5
    )


@pytest.mark.parametrize("make", [stack, late_stack, graph])
def test_on_other_inputs(make: Any) -> None:
    raw = layers.Input((4,), batch_size=3, name="raw")
    inputs = {"x": raw * 2} if make is graph else raw * 2
    with pytest.raises(InvalidArgumentError, match="must be symbolic"):
        clone_model(make(), input_tensors=X)
    clone = clone_model(make(), input_tensors=inputs)
    assert clone.inputs[0].shape == (3, 4)
    assert laminar.tree.flatten(clone(inputs))[0].shape[0] == 3


def test_json() -> None:
    model = graph()
    again = model_from_json(model.to_json(), custom_objects={"Scale": Scale})
    again.set_weights(model.get_weights())
    for a, b in zip(flat(model(X)), flat(again(X)), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(DataLossError, match="not proper JSON"):
        model_from_json("{")
    with pytest.raises(InvalidArgumentError, match="expected a model"):
        clone_model(layers.Dense(2))  # type: ignore[arg-type]  # the mistake


def test_inputs_of_another_structure() -> None:
    x, y = laminar.Input((2,), name="x"), laminar.Input((2,), name="y")
    model = laminar.Model({"x": x, "y": y}, x + y)
    clone = clone_model(model, input_tensors={"x": x, "y": y})
    assert set(clone.input) == {"x", "y"}
    with pytest.raises(ValueError, match="must nest as the inputs"):
        clone_model(model, input_tensors=(x, y))


def doubled(x: Any) -> Any:
    return 2 * x


def test_functions_that_no_file_could_name() -> None:
    x = layers.Input((4,))
    inner = laminar.Sequential([layers.Input((4,)), layers.Lambda(lambda t: t + 1)])
    y = layers.Lambda(doubled)(inner(x))
    model = laminar.Model(x, layers.Dense(2, activation=lambda t: ops.maximum(t, -1))(y))
    for clone in (clone_model(model), clone_model(model, recursive=True)):
        clone.set_weights(model.get_weights())
        np.testing.assert_array_equal(clone.predict(X, verbose=0), model.predict(X, verbose=0))
    both = layers.Bidirectional(layers.SimpleRNN(2, activation=lambda t: t))
    assert both(np.ones((1, 3, 4), "float32")).shape == (1, 4)
    with pytest.raises(InvalidArgumentError, match="a lambda cannot be saved"):
        model.to_json()
