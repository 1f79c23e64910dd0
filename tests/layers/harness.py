"""What every layer must do, in one call; and agreement with Keras, in another."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.functions import function
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import TensorSpec
from laminar.layers.masking import get_mask, set_mask
from laminar.tree import flatten, map_structure

Shape = tuple[int, ...]
Shapes = Shape | list[Shape]
Array = np.ndarray[Any, Any]
COMPUTE_MASK = layers.Layer.compute_mask


def rng(seed: int = 20) -> np.random.Generator:
    return np.random.default_rng(seed)


def random_inputs(shapes: Shapes, ids: int = 0) -> Any:
    """Normal numbers of a shape (or a list of them); whole ones below `ids` if it is given."""
    source = rng()

    def one(shape: Shape) -> Array:
        if ids:
            return source.integers(0, ids, size=shape).astype(np.int32)
        return source.normal(size=shape).astype(np.float32)

    return [one(s) for s in shapes] if isinstance(shapes, list) else one(shapes)


def check_layer(
    cls: Callable[..., layers.Layer],
    kwargs: Mapping[str, Any],
    inputs: Any,
    *,
    expected_output_shape: Shape | None = None,
    expected_weights: Mapping[str, Shape] | None = None,
    trains: bool = True,
    mixed: bool = True,
    tolerance: float = 1e-6,
) -> layers.Layer:
    """Check that a layer does what all layers must do; gives the layer.

    Args:
        cls: its class.
        kwargs: the arguments of the constructor.
        inputs: an array, or a list of them; or shapes, for normal numbers.
        expected_output_shape: for these inputs.
        expected_weights: shapes by name, in order.
        trains: whether a training step is to lower a loss, if there are trainable weights.
        mixed: whether the output is of the compute dtype.
        tolerance: of values that are computed in another way.
    """
    if isinstance(inputs, tuple) or isinstance(inputs[0], tuple):
        inputs = random_inputs(inputs)
    layer = cls(**kwargs)
    y = layer(inputs)
    value = y.numpy()
    if expected_output_shape is not None:
        assert value.shape == expected_output_shape
    if expected_weights is not None:
        assert {v.name: tuple(v.shape) for v in layer.weights} == dict(expected_weights)
        assert [v.name for v in layer.weights] == list(expected_weights)

    check_symbolic(layer, inputs, value)
    check_traced(layer, inputs, value, tolerance)
    check_config(cls, layer, inputs, value)
    if trains and layer.trainable_variables:
        check_training(layer, inputs)
    if mixed:
        check_mixed(cls, kwargs, inputs)
    passes_masks = layer.supports_masking and type(layer).compute_mask is COMPUTE_MASK
    if passes_masks and not isinstance(inputs, list) and value.ndim > 2:
        check_mask(layer, inputs)
    none = layer(map_structure(lambda x: x[:0], inputs))  # no example at all
    assert tuple(none.shape) == (0, *value.shape[1:])
    return layer


def symbols_for(inputs: Any) -> Any:
    return map_structure(
        lambda x: layers.Input(batch_shape=(None, *x.shape[1:]), dtype=str(x.dtype)), inputs
    )


def check_symbolic(layer: layers.Layer, inputs: Any, value: Array) -> None:
    """The symbolic result has the shape and dtype of the value, but for the batch."""
    symbol = layer(symbols_for(inputs))
    assert isinstance(symbol, layers.KerasTensor)
    assert tuple(symbol.shape) == (None, *value.shape[1:])
    assert symbol.dtype == str(value.dtype)
    shapes = map_structure(lambda x: (None, *x.shape[1:]), inputs)
    assert tuple(layer.compute_output_shape(shapes)) == tuple(symbol.shape)


def check_traced(layer: layers.Layer, inputs: Any, value: Array, tolerance: float) -> None:
    """In a function that is traced for any batch, the layer computes the same."""
    flat = [np.asarray(x) for x in flatten(inputs)]
    signature = [TensorSpec((None, *x.shape[1:]), str(x.dtype)) for x in flat]

    def call(*xs: Any) -> Any:
        return layer(list(xs) if isinstance(inputs, list) else xs[0])

    traced = function(call, input_signature=signature)(*flat)
    np.testing.assert_allclose(traced.numpy(), value, rtol=tolerance, atol=tolerance)


def check_config(
    cls: Callable[..., layers.Layer], layer: layers.Layer, inputs: Any, value: Array
) -> None:
    """A layer made from the config, through JSON, is equal, and computes the same."""
    data = json.loads(json.dumps(layers.serialize(layer)))
    copy = layers.deserialize(data)
    assert type(copy) is type(layer)
    assert json.loads(json.dumps(layers.serialize(copy))) == data
    assert copy.built or not layer.weights
    copy.set_weights(layer.get_weights())
    np.testing.assert_array_equal(copy(inputs).numpy(), value)
    again = type(layer).from_config(layer.get_config())
    assert json.dumps(layers.serialize(again)["config"]) == json.dumps(data["config"])


def check_training(layer: layers.Layer, inputs: Any) -> None:
    """One step of gradient descent lowers a loss."""
    target = rng(21).normal(size=layer(inputs).shape).astype(np.float32)

    def loss_now() -> Any:
        return ops.mean(ops.square(layer(inputs, training=True) - target))

    before = layer.get_weights()
    with GradientTape() as tape:
        loss = loss_now()
    variables = layer.trainable_variables
    gradients = tape.gradient(loss, variables)
    assert all(g is not None for g in gradients)
    for variable, gradient in zip(variables, gradients, strict=True):
        variable.assign_sub(gradient * 0.05)
    assert float(loss_now()) < float(loss)
    layer.set_weights(before)


def check_mixed(cls: Callable[..., layers.Layer], kwargs: Mapping[str, Any], inputs: Any) -> None:
    """Under a mixed policy, weights are float32 and the output is of the compute dtype."""
    layer = cls(**kwargs, dtype="mixed_bfloat16")
    y = layer(inputs)
    assert y.dtype == "bfloat16"
    assert all(v.dtype == "float32" for v in layer.weights if v.dtype != "uint32")


def check_mask(layer: layers.Layer, inputs: Any) -> None:
    """The mask of the input is that of the output."""
    x = ops.convert_to_tensor(inputs)
    mask = ops.ones(x.shape[:2], dtype="bool")
    set_mask(x, mask)
    assert get_mask(layer(x)) is mask


def check_agreement(
    name: str,
    kwargs: Mapping[str, Any],
    inputs: Any,
    *,
    training: bool | None = None,
    mask: Any = None,
) -> None:
    """The layer of that name computes what Keras's does, and has equal weights and configs."""
    keras = pytest.importorskip("keras")
    if isinstance(inputs, tuple) or isinstance(inputs[0], tuple):
        inputs = random_inputs(inputs)
    theirs, ours = getattr(keras.layers, name)(**kwargs), getattr(layers, name)(**kwargs)
    call: dict[str, Any] = {} if training is None else {"training": training}
    if mask is not None:
        call["mask"] = mask
    theirs(inputs, **call)
    ours(inputs, **call)

    def described(weights: Sequence[Any]) -> list[Any]:
        return [(w.name, tuple(w.shape), w.trainable) for w in weights]

    assert described(ours.weights) == described(theirs.weights)
    source = rng()
    values = [source.normal(size=w.shape).astype(np.float32) / 2 for w in theirs.weights]
    values = [
        abs(v) if "variance" in w.name else v for v, w in zip(values, ours.weights, strict=True)
    ]
    theirs.set_weights(values)
    ours.set_weights(values)
    expected, found = np.asarray(theirs(inputs, **call)), ours(inputs, **call).numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=2e-5)
    for after, wanted in zip(ours.get_weights(), theirs.weights, strict=True):
        np.testing.assert_allclose(after, np.asarray(wanted.value), rtol=1e-4, atol=2e-5)
    check_same_config(theirs, ours)


def check_same_config(theirs: Any, ours: layers.Layer) -> None:
    """The configs are equal as JSON, and each side can read the other's."""
    keras = pytest.importorskip("keras")
    written = json.loads(json.dumps(keras.saving.serialize_keras_object(theirs)))
    mine = json.loads(json.dumps(layers.serialize(ours)))
    written["config"]["name"] = mine["config"]["name"]
    assert mine == written
    copy = layers.deserialize(written)
    assert json.loads(json.dumps(layers.serialize(copy)["config"])) == mine["config"]
    assert type(keras.saving.deserialize_keras_object(mine)) is type(theirs)
