"""Symbolic tensors that nothing made: `KerasTensor(shape, dtype)`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import KerasTensor, layers, ops
from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError
from laminar.registration import register_keras_serializable

X = np.arange(6, dtype="float32").reshape(2, 3)


class Halved(layers.Layer):
    """A layer that says what it gives for its inputs alone."""

    def call(self, x: Any) -> Any:
        return x[..., ::2]

    def compute_output_spec(self, x: Any) -> Any:
        return KerasTensor((*x.shape[:-1], -(-x.shape[-1] // 2)), x.dtype)


def test_a_spec_for_the_inputs_alone_is_not_asked_with_training() -> None:
    symbol = layers.Input((3,))
    y = Halved()(symbol, training=True)
    np.testing.assert_array_equal(laminar.Model(symbol, y)(X), X[:, ::2])
    bins = layers.Discretization([0.0, 2.5])(symbol, training=True)
    np.testing.assert_array_equal(laminar.Model(symbol, bins)(X), np.digitize(X, [0.0, 2.5]))


def test_layers_and_ops_take_them() -> None:
    dense = layers.Dense(4)
    y = dense(KerasTensor((None, 3)))
    assert (y.shape, dense.built, dense.kernel.shape) == ((None, 4), True, (3, 4))
    a, b = KerasTensor((2, 1), "int32"), KerasTensor((3,), "float32")
    assert ((a + b).shape, (a + b).dtype) == ((2, 3), "float32")
    assert ops.concatenate([b, b]).shape == (6,)
    assert layers.Add()([b, b]).shape == (3,)
    assert (b.reshape((3, 1)).shape, a.squeeze(-1).shape) == ((3, 1), (2,))
    assert a.has_history is False
    assert y.has_history is True
    with pytest.raises(FailedPreconditionError, match="not made by a layer"):
        _ = a.history
    for read in (bool, len):  # what Python raises where there is no truth, or no length
        with pytest.raises(TypeError, match="symbolic"):
            read(a)


def test_a_function_of_them() -> None:
    x, y = KerasTensor((None, 3), name="x"), KerasTensor((3,), name="y")
    add = laminar.Function({"a": x, "b": y}, {"sum": x + y, "same": y})
    found = add({"a": X, "b": np.ones(3, "float32")})
    np.testing.assert_array_equal(found["sum"], X + 1)
    np.testing.assert_array_equal(found["same"], np.ones(3))
    with pytest.raises(InvalidArgumentError, match="name=y.* not among the inputs"):
        laminar.Function(x, x + y)


def test_a_model_makes_them_its_inputs() -> None:
    x = KerasTensor((None, 3), name="pixels")
    model = laminar.Model(x, layers.Dense(2, kernel_initializer="ones", use_bias=False)(x))
    np.testing.assert_array_equal(model(X), X.sum(1, keepdims=True).repeat(2, 1))
    assert [layer.name for layer in model.layers][0] == "pixels"
    again = laminar.models.model_from_json(model.to_json())
    again.set_weights(model.get_weights())
    np.testing.assert_array_equal(again(X), model(X))
    assert json.loads(model.to_json())["config"]["input_layers"] == ["pixels", 0, 0]


def test_the_inputs_behind_one_that_nothing_made() -> None:
    x = KerasTensor((None, 3))
    assert laminar.utils.get_source_inputs(x * 2 + 1) == [x]


def test_kinds_of_storage() -> None:
    assert KerasTensor((2,), sparse=True).sparse is True
    assert KerasTensor((2,), ragged=True).ragged is True
    assert KerasTensor((2,)).sparse is False
    with pytest.raises(InvalidArgumentError, match="sparse or ragged"):
        KerasTensor((2,), sparse=True, ragged=True)


def test_symbols_are_data_wherever_they_stand() -> None:
    x = KerasTensor((2, 3, 4))
    assert ops.stop_gradient(x).shape == (2, 3, 4)
    assert ops.rearrange(x, "a b c -> c (a b)").shape == (4, 6)
    f = laminar.Function(x, ops.rearrange(tensor=x, pattern="a b c -> a c b"))
    assert f(np.zeros((2, 3, 4))).shape == (2, 4, 3)


def doubled(x: Any) -> Any:
    return x + x


def test_symbols_behind_an_argument_that_is_left_out() -> None:
    """`axis` stands between the two."""
    x, w = layers.Input((3,)), layers.Input((3,))
    model = laminar.Model([x, w], ops.average(x, weights=w))
    weights = np.array([[1, 2, 3], [0, 1, 0]], "float32")
    expected = np.average(X, weights=weights)
    np.testing.assert_allclose(model([X, weights]).numpy(), expected)
    again = laminar.Model.from_config(model.get_config())
    np.testing.assert_allclose(again([X, weights]).numpy(), expected)


def test_functions_in_the_config_of_an_op() -> None:
    x = laminar.Input((3,))
    register_keras_serializable("test_symbolic")(doubled)  # here: other tests clear the registry
    model = laminar.Model(x, ops.vectorized_map(doubled, x))
    again = laminar.models.model_from_json(model.to_json())
    np.testing.assert_array_equal(again(X), 2 * X)


def test_symbols_cannot_be_iterated() -> None:
    with pytest.raises(NotImplementedError, match="no value to take apart"):
        iter(KerasTensor((3, 4)))


def test_the_mask_of_a_symbol_is_a_part_of_the_model() -> None:
    """It is given by a model, computed with, and there when the model is made again."""
    a, b = layers.Input((4, 2)), layers.Input((4, 2))
    joined = layers.Concatenate(axis=1)([layers.Masking()(a), b])
    mask: Any = joined._keras_mask
    model = laminar.Model([a, b], [mask, ops.sum(ops.cast(mask, "int32"), axis=1)])
    x = np.array([[[0, 0], [1, 2], [0, 0], [3, 4]]], "float32")
    y = np.array([[[0, 0], [0, 0], [1, 2], [3, 4]]], "float32")
    for each in (model, laminar.Model.from_config(model.get_config())):
        for given, count in (each([x, y]), each.predict([x, y], verbose=0)):
            np.testing.assert_array_equal(given, [[0, 1, 0, 1, 1, 1, 1, 1]])
            np.testing.assert_array_equal(count, [6])


def test_masks_are_given_to_layers_by_name() -> None:
    ids = layers.Input((3,), dtype="int32")
    words = layers.Embedding(5, 2, mask_zero=True)(ids)
    twice: Any = words * 2  # ops drop masks
    mean = layers.GlobalAveragePooling1D()(twice, mask=words._keras_mask)
    model = laminar.Model(ids, [mean, words])
    found, embedded = model(np.array([[1, 0, 4]]))
    np.testing.assert_allclose(found, (embedded[:, 0] + embedded[:, 2]).numpy(), rtol=1e-6)


def test_ops_of_which_only_shapes_are_said() -> None:
    """Ids without a type are numbers of segments; sizes of axes that stay need not be known."""
    sums = ops.segment_sum(KerasTensor((5, 4)), KerasTensor((5,)), num_segments=3)
    assert sums.shape == (3, 4)
    image, two = KerasTensor((None, 20, 20, 3)), KerasTensor((2,))
    shape = (None, 25, 30, 3)
    scaled = ops.image.scale_and_translate(image, shape, two, two, (1, 2), "linear")
    assert scaled.shape == shape
