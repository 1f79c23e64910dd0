"""Functional models: inputs, outputs, shared layers, nesting, ops, config."""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.errors import DataLossError
from laminar.serialization import deserialize_keras_object, serialize_keras_object

rng = np.random.default_rng(0)


def data(*shape: int) -> Any:
    return rng.normal(size=shape).astype("float32")


def two_in_two_out() -> laminar.Model:
    a = layers.Input((4,), name="a")
    b = layers.Input((3,), name="b")
    joined = layers.Concatenate(name="joined")([a, b])
    hidden = layers.Dense(5, activation="relu", name="hidden")(joined)
    return laminar.Model(
        inputs=[a, b],
        outputs=[layers.Dense(1, name="y")(hidden), layers.Dense(2, name="z")(joined)],
        name="both",
    )


def nested() -> laminar.Model:
    inner = laminar.Sequential([layers.Input((4,)), layers.Dense(3, name="inside")], name="inner")
    x = layers.Input((4,), name="x")
    return laminar.Model(x, layers.Dense(2, name="head")(inner(x)), name="outer")


def shared() -> laminar.Model:
    a, b = layers.Input((4,), name="a"), layers.Input((4,), name="b")
    tower = layers.Dense(3, activation="tanh", name="tower")
    return laminar.Model([a, b], layers.Subtract(name="minus")([tower(a), tower(b)]), name="twins")


def with_ops() -> laminar.Model:
    x = layers.Input((4, 4), name="x")
    y = ops.mean(ops.relu(x) * 2.0 + 1.0, axis=[1, 2], keepdims=False)
    y = ops.expand_dims(y, -1) - x[:, 0, :1]
    return laminar.Model(x, y, name="by_ops")


def dict_io() -> laminar.Model:
    x = {"left": layers.Input((2,), name="left"), "right": layers.Input((2,), name="right")}
    total = layers.Add(name="sum")([x["left"], x["right"]])
    return laminar.Model(x, {"sum": total, "twice": total * 2}, name="dicts")


MODELS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "two-in-two-out": (two_in_two_out, lambda: [data(6, 4), data(6, 3)]),
    "nested": (nested, lambda: data(6, 4)),
    "shared": (shared, lambda: [data(6, 4), data(6, 4)]),
    "ops": (with_ops, lambda: data(6, 4, 4)),
    "dicts": (dict_io, lambda: {"left": data(6, 2), "right": data(6, 2)}),
}


def flat(outputs: Any) -> list[Any]:
    return [np.asarray(y) for y in laminar.tree.flatten(outputs)]


@pytest.mark.parametrize("name", MODELS)
def test_eager_traced_and_predict_agree(name: str) -> None:
    build, inputs = MODELS[name]
    model, x = build(), inputs()
    eager = flat(model(x))
    traced = flat(laminar.function(lambda v: model(v))(x))
    predicted = flat(model.predict(x, batch_size=4, verbose=0))
    for a, b, c in zip(eager, traced, predicted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(a, c, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_config_round_trip(name: str) -> None:
    build, inputs = MODELS[name]
    model, x = build(), inputs()
    text = json.dumps(serialize_keras_object(model))
    again = deserialize_keras_object(json.loads(text))
    assert [w.shape for w in again.weights] == [w.shape for w in model.weights]
    again.set_weights(model.get_weights())
    for a, b in zip(flat(model(x)), flat(again(x)), strict=True):
        np.testing.assert_array_equal(a, b)
    config = model.get_config()
    assert laminar.Model.from_config(config).get_config() == config


def test_values_against_numpy() -> None:
    model = two_in_two_out()
    a, b = data(6, 4), data(6, 3)
    y, z = model([a, b])
    kernel, bias, y_kernel, y_bias, z_kernel, z_bias = (
        w.astype("float64")
        for w in (
            *model.get_layer("hidden").get_weights(),
            *model.get_layer("y").get_weights(),
            *model.get_layer("z").get_weights(),
        )
    )
    joined = np.concatenate([a, b], axis=1).astype("float64")
    hidden = np.maximum(joined @ kernel + bias, 0)
    np.testing.assert_allclose(y, hidden @ y_kernel + y_bias, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(z, joined @ z_kernel + z_bias, rtol=1e-5, atol=1e-6)


def test_shared_layer_has_one_set_of_weights() -> None:
    model = shared()
    assert len(model.weights) == 2
    x = data(3, 4)
    np.testing.assert_array_equal(np.asarray(model([x, x])), np.zeros((3, 3), "float32"))


def test_inputs_by_name_and_in_any_order() -> None:
    model = two_in_two_out()
    a, b = data(2, 4), data(2, 3)
    for left, right in zip(flat(model([a, b])), flat(model({"b": b, "a": a})), strict=True):
        np.testing.assert_array_equal(left, right)


def test_a_part_of_a_model_is_a_model() -> None:
    model = two_in_two_out()
    inside = laminar.Model(model.inputs, model.get_layer("hidden").output)
    assert np.asarray(inside([data(2, 4), data(2, 3)])).shape == (2, 5)
    assert inside.get_layer("hidden") is model.get_layer("hidden")


def test_names_of_operations_and_shapes() -> None:
    model = two_in_two_out()
    assert model.output_names == ["y", "z"]
    assert model.input_shape == [(None, 4), (None, 3)]
    assert model.output_shape == [(None, 1), (None, 2)]
    assert [layer.name for layer in model.layers] == ["a", "b", "joined", "hidden", "y", "z"]
    assert model.count_params() == 7 * 5 + 5 + 5 + 1 + 7 * 2 + 2


def test_subclass_that_is_functional() -> None:
    class Net(laminar.Model):
        def __init__(self, units: int) -> None:
            x = layers.Input((3,))
            super().__init__(inputs=x, outputs=layers.Dense(units)(x))
            self.units = units

    model = Net(2)
    assert np.asarray(model(data(4, 3))).shape == (4, 2)
    assert isinstance(model, Net)


def test_a_slice_of_a_model_is_a_model() -> None:
    x = laminar.Input((3,))
    hidden = layers.Dense(4, name="hidden")(x)
    a, b = ops.split(hidden * 2, 2, axis=-1)
    model = laminar.Model(x, layers.Dense(2, name="head")(a + b))
    head = laminar.Model({"a": a, "b": b}, model.output)
    assert [type(layer).__name__ for layer in head.layers] == ["InputLayer", "InputLayer", "Dense"]
    assert head.get_layer("head") is model.get_layer("head")
    parts = {"a": np.ones((5, 2), "float32"), "b": np.full((5, 2), 2, "float32")}
    expected = np.full((5, 2), 3.0) @ model.weights[2].numpy()
    np.testing.assert_allclose(head(parts), expected, rtol=1e-6, atol=1e-6)
    again = type(head).from_config(head.get_config())
    again.set_weights(head.get_weights())
    np.testing.assert_array_equal(again(parts), head(parts))
    half = laminar.Function(hidden, model.output)
    assert "hidden" not in [operation.name for operation in half.operations]
    middle = laminar.Model(hidden, hidden * 2)
    np.testing.assert_array_equal(middle(np.ones((1, 4), "float32")), np.full((1, 4), 2.0))


def test_a_fed_output_of_an_op_leaves_the_others() -> None:
    x = laminar.Input((4,))
    a, b = ops.split(x, 2, axis=-1)
    f = laminar.Function([x, a], [a, b])
    found = f([np.arange(4.0, dtype="float32")[None], np.full((1, 2), 9, "float32")])
    np.testing.assert_array_equal(np.concatenate(found), [[9, 9], [2, 3]])


def nested_model() -> laminar.Model:
    x, y, z = (laminar.Input((n,), name=f"in{n}") for n in (1, 2, 3))
    return laminar.Model(
        {"a": x, "rest": {"b": y, "c": [z]}}, ({"one": x * 2}, [y * 3, {"two": z + 1}])
    )


def nested_data() -> Any:
    return {
        "a": np.ones((2, 1), "float32"),
        "rest": {"b": np.ones((2, 2), "float32"), "c": [np.ones((2, 3), "float32")]},
    }


def test_structures_of_any_depth() -> None:
    model = nested_model()
    for again in (model, type(model).from_config(model.get_config())):
        found = again(nested_data())
        assert isinstance(found, tuple)
        np.testing.assert_array_equal(found[0]["one"], np.full((2, 1), 2))
        np.testing.assert_array_equal(found[1][1]["two"], np.full((2, 3), 2))
    symbolic = model(nested_model().input)
    assert symbolic[1][0].shape == (None, 2)
    data = nested_data()
    del data["rest"]["b"]
    with pytest.raises(ValueError, match="the input 'b' is missing"):
        model(data)


def test_a_list_of_one() -> None:
    x = laminar.Input((2,))
    assert laminar.Model([x], [x * 2])(np.ones((1, 2))).shape == (1, 2)
    model = laminar.Model(x, [{"a": x * 2}])
    assert [type(op).__name__ for op in model.operations] == ["InputLayer", "Multiply"]
    found = model(np.ones((1, 2)))
    np.testing.assert_array_equal(found["a"], [[2, 2]])


def test_other_structures_are_taken_with_a_warning() -> None:
    model = nested_model()
    data = nested_data()
    expected = model(data)
    flat = [data["a"], data["rest"]["b"], data["rest"]["c"][0]]
    with pytest.warns(UserWarning, match="expected {'a': 'in1', 'rest': {'b': 'in2'"):
        found = model(flat)
    np.testing.assert_array_equal(found[1][1]["two"], expected[1][1]["two"])
    data["other"] = np.zeros(1)
    with pytest.warns(UserWarning, match=r"^The structure of `inputs` .*'other': 'shape"):
        model(data)
    model(data)  # which nests in the same way: a second warning would be an error
    x, y = laminar.Input((1,), name="x"), laminar.Input((1,), name="y")
    ordered = laminar.Model({"y": y, "x": x}, x - y)
    with pytest.raises(ValueError, match="a dict of y, x"):
        ordered([data["a"], data["a"]])


def test_optional_inputs() -> None:
    class AddIfGiven(layers.Layer):
        def call(self, x: Any, y: Any = None) -> Any:
            return x if y is None else x + y

    x, y = laminar.Input((2,), name="x"), laminar.Input((2,), optional=True, name="y")
    model = laminar.Model({"x": x, "y": y}, AddIfGiven()(x, y))
    ones = np.ones((2, 2), "float32")
    np.testing.assert_array_equal(model({"x": ones, "y": None}), ones)
    np.testing.assert_array_equal(model({"x": ones, "y": ones}), 2 * ones)
    with pytest.raises(ValueError, match="'x' is None, and is not optional"):
        model({"x": None, "y": ones})


def test_a_config_that_was_never_written_makes_the_network_again() -> None:
    """It has tuples, as its author gave them, where files have lists."""
    a, b = layers.Input((3,), name="a"), layers.Input((3,), name="b")
    model = laminar.Model({"a": a, "b": b}, layers.Multiply()((a, layers.Add()([a, b]))))
    again = laminar.Model.from_config(model.get_config())
    given = {"a": np.ones((2, 3), "float32"), "b": np.full((2, 3), 2.0, "float32")}
    np.testing.assert_array_equal(again(given), np.full((2, 3), 3.0))


def one_layer() -> Any:
    x = layers.Input((3,))
    return laminar.Model(x, layers.Dense(2)(x))


def test_a_subclass_with_inputs_and_outputs_is_functional() -> None:
    functional = type(one_layer())

    class Own(laminar.Model):
        def __init__(self) -> None:
            x = layers.Input((3,))
            super().__init__(inputs=x, outputs=layers.Dense(2)(x))

    class Plain(laminar.Model):
        def call(self, x: Any) -> Any:
            return x

    assert isinstance(Own(), functional)
    assert not isinstance(Plain(), functional)
    assert not isinstance(laminar.Sequential([layers.Input((3,)), layers.Dense(2)]), functional)


def times(what: Callable[[], Any]) -> int:
    """How many lines of laminar's loading of networks run: a time that no other process changes."""
    count = 0

    def tracer(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        count += event == "line"
        return tracer if "network" in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        what()
    finally:
        sys.settrace(before)
    return count


@pytest.mark.parametrize("shared", [False, True], ids=["chain", "two-layers-in-turns"])
def test_a_config_loads_in_time_linear_in_its_size_in_any_order(shared: bool) -> None:
    """20,000 layers listed backwards took hours: each round made one call."""

    def config(size: int) -> dict[str, Any]:
        x = y = layers.Input((2,), name="x")
        turns = [layers.Activation("relu", name="a"), layers.Activation("tanh", name="b")]
        for i in range(size):
            layer = turns[i % 2] if shared else layers.Activation("tanh", name=f"layer_{i}")
            y = layer(y)
        made: dict[str, Any] = laminar.Model(x, y).get_config()
        return {**made, "layers": made["layers"][::-1]}

    small, large = config(20), config(80)
    loaded = laminar.Model.from_config(large)
    x = data(1, 2)
    y = x.astype("float64")
    for i in range(80):
        y = np.maximum(y, 0) if shared and i % 2 == 0 else np.tanh(y)
    np.testing.assert_allclose(loaded(x).numpy(), y, rtol=1e-4)
    lines = [times(functools.partial(laminar.Model.from_config, c)) for c in (small, large)]
    assert lines[1] < 5 * lines[0]


def test_a_config_whose_calls_wait_for_each_other_is_refused() -> None:
    x = layers.Input((2,), name="x")
    first = layers.Activation("relu", name="first")
    config = laminar.Model(x, layers.Activation("relu", name="second")(first(x))).get_config()
    (place,) = config["layers"][1]["inbound_nodes"][0]["args"]
    place["config"]["keras_history"] = ["second", 0, 0]
    with pytest.raises(DataLossError, match="the calls of first, second .* nothing makes"):
        laminar.Model.from_config(config)
    place["config"]["keras_history"] = ["x", -1, 0]
    with pytest.raises(DataLossError, match="which it does not contain"):
        laminar.Model.from_config(config)
