"""Dense, EinsumDense, Embedding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import layers, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.layers.masking import get_mask

from .harness import check_agreement, check_layer, random_inputs

wrong: Any = layers  # for arguments of the wrong type

DENSE: list[Any] = [
    ({"units": 3}, (2, 5), {"kernel": (5, 3), "bias": (3,)}),
    ({"units": 3, "activation": "relu"}, (2, 4, 5), {"kernel": (5, 3), "bias": (3,)}),
    ({"units": 1, "use_bias": False}, (3, 5), {"kernel": (5, 1)}),
    ({"units": 3, "activation": "softmax"}, (2, 3, 4, 5), {"kernel": (5, 3), "bias": (3,)}),
]


@pytest.mark.parametrize(("kwargs", "shape", "weights"), DENSE)
def test_dense(
    kwargs: dict[str, Any], shape: tuple[int, ...], weights: dict[str, tuple[int, ...]]
) -> None:
    output = (*shape[:-1], kwargs["units"])
    check_layer(layers.Dense, kwargs, shape, expected_output_shape=output, expected_weights=weights)
    check_agreement("Dense", kwargs, shape)


def test_dense_is_a_product_and_a_sum() -> None:
    layer = layers.Dense(3)
    x = random_inputs((2, 5))
    y = layer(x).numpy()
    kernel, bias = (w.astype(np.float64) for w in layer.get_weights())
    np.testing.assert_allclose(y, x.astype(np.float64) @ kernel + bias, rtol=1e-5)


EINSUM: list[Any] = [
    ("ab,bc->ac", 3, "c", (2, 5), (2, 3), (5, 3), (3,)),
    ("abc,cd->abd", (None, 3), "d", (2, 4, 5), (2, 4, 3), (5, 3), (3,)),
    ("abc,cd->abd", (4, 3), None, (2, 4, 5), (2, 4, 3), (5, 3), None),
    ("abc,cde->abde", (None, 3, 2), "de", (2, 4, 5), (2, 4, 3, 2), (5, 3, 2), (3, 2)),
    ("abc,cde->abde", (None, 3, 2), "d", (2, 4, 5), (2, 4, 3, 2), (5, 3, 2), (3, 1)),
    ("abcd,cde->abe", (4, 3), "be", (2, 4, 5, 6), (2, 4, 3), (5, 6, 3), (4, 3)),
    ("...x,xy->...y", 3, "y", (2, 4, 5), (2, 4, 3), (5, 3), (3,)),
    ("...x,xy->...y", 3, "y", (2, 5), (2, 3), (5, 3), (3,)),
    ("ab...,bc->ac...", 3, "c", (2, 4, 5, 6), (2, 3, 5, 6), (4, 3), (3, 1, 1)),
]


@pytest.mark.parametrize(
    ("equation", "output_shape", "bias_axes", "shape", "output", "kernel", "bias"), EINSUM
)
def test_einsum_dense(
    equation: str,
    output_shape: Any,
    bias_axes: str | None,
    shape: tuple[int, ...],
    output: tuple[int, ...],
    kernel: tuple[int, ...],
    bias: tuple[int, ...] | None,
) -> None:
    kwargs = {"equation": equation, "output_shape": output_shape, "bias_axes": bias_axes}
    weights = {"kernel": kernel} | ({} if bias is None else {"bias": bias})
    check_layer(
        layers.EinsumDense,
        kwargs,
        shape,
        expected_output_shape=output,
        expected_weights=weights,
        tolerance=1e-5,
    )
    check_agreement("EinsumDense", kwargs, shape)


def test_einsum_dense_scales_the_kernel_by_what_is_summed_over() -> None:
    layer = layers.EinsumDense("abc,cde->abde", (None, 30, 20))
    layer.build((None, 4, 400))
    limit = np.sqrt(6 / (400 + 600))
    kernel = layer.kernel.numpy()
    assert kernel.max() <= limit
    assert kernel.max() > 0.99 * limit


EINSUM_REFUSED: list[Any] = [
    ("ab,bc", 3, None, (2, 5), "equation must have the form"),
    ("...ab,bc->ac", 3, None, (2, 5), "equation must have the form"),
    ("ab,bc->ac", 3, "x", (2, 5), "bias_axes 'x' must be among"),
    ("ab,bc->ac", 3, None, (2, 4, 5), "wants an input of 2 axes"),
    ("abc,cd->abd", 3, None, (2, 4, 5), "does not fit the output"),
    ("abc,cd->abd", (6, 3), None, (2, 4, 5), "has size 4 in the input"),
    ("ab,bc->ad", 3, None, (2, 5), "is neither in"),
    ("ab,bcd->ac", 3, None, (2, 5), "axis 'd' of the kernel"),
    ("abc,cbd->abd", (None, 3), None, (2, None, 5), "sizes a weight, but is unknown"),
]


@pytest.mark.parametrize(("equation", "output", "bias", "shape", "message"), EINSUM_REFUSED)
def test_einsum_dense_refuses(
    equation: str, output: Any, bias: str | None, shape: tuple[int | None, ...], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        layers.EinsumDense(equation, output, bias_axes=bias).build(shape)


def test_embedding() -> None:
    ids = random_inputs((2, 5), ids=7)
    layer = check_layer(
        layers.Embedding,
        {"input_dim": 7, "output_dim": 3},
        ids,
        expected_output_shape=(2, 5, 3),
        expected_weights={"embeddings": (7, 3)},
    )
    table = layer.get_weights()[0]
    np.testing.assert_array_equal(layer(ids).numpy(), table[ids])
    np.testing.assert_array_equal(layer(ids.astype(np.float32)).numpy(), table[ids])
    check_agreement("Embedding", {"input_dim": 7, "output_dim": 3}, ids)


def test_embedding_warns_of_the_length_that_it_does_not_need() -> None:
    with pytest.warns(UserWarning, match="input_length is deprecated"):  # as Keras warns
        layers.Embedding(5, 3, input_length=4)
    assert layers.Embedding(5, 3, input_length=None).input_dim == 5


def test_embedding_masks_zero() -> None:
    layer = layers.Embedding(7, 3, mask_zero=True)
    ids = ops.convert_to_tensor(np.array([[1, 2, 0], [0, 3, 4]]))
    assert get_mask(layer(ids)).numpy().tolist() == [[True, True, False], [False, True, True]]
    assert get_mask(layers.Embedding(7, 3)(ids)) is None
    symbol = layer(layers.Input((3,), dtype="int32"))
    assert tuple(get_mask(symbol).shape) == (None, 3)
    assert get_mask(layers.Dense(2)(symbol)).dtype == "bool"


def test_embedding_with_given_vectors() -> None:
    table = random_inputs((7, 3))
    layer = layers.Embedding(7, 3, weights=[table])
    np.testing.assert_array_equal(layer.get_weights()[0], table)
    np.testing.assert_array_equal(layer(np.array([6, 0])).numpy(), table[[6, 0]])


REFUSED: list[Any] = [
    (lambda: wrong.Dense(0), "units must be a whole number of at least 1, got 0"),
    (lambda: wrong.Dense(-2), "units must be"),
    (lambda: wrong.Dense("3"), "units must be"),
    (lambda: wrong.Dense(True), "units must be"),
    (lambda: wrong.Dense(3, lora_rank=0), "lora_rank"),
    (lambda: wrong.Dense(3, unit=3), "unknown arguments unit"),
    (lambda: wrong.Dense(3, activation="rleu"), "rleu"),
    (lambda: wrong.Embedding(0, 3), "input_dim must be"),
    (lambda: wrong.Embedding(4, 2.5), "output_dim must be"),
]


@pytest.mark.parametrize(("make", "message"), REFUSED)
def test_constructor_refuses(make: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        make()


def test_dense_checks_its_input() -> None:
    with pytest.raises(ShapeError, match="expected at least 2 axes"):
        layers.Dense(3)(np.zeros(4, np.float32))
    with pytest.raises(ShapeError, match="the number of features .* unknown"):
        layers.Dense(3)(layers.Input((None,)))
    layer = layers.Dense(3, name="head")
    layer(np.zeros((2, 4), np.float32))
    with pytest.raises(ShapeError, match="Dense 'head': input 0: expected size 4 along axis -1"):
        layer(np.zeros((2, 5), np.float32))


@pytest.mark.parametrize(
    "make",
    [
        lambda: layers.Dense(2, activation="relu"),
        lambda: layers.EinsumDense("ab,bc->ac", 2, activation="relu"),
    ],
)
def test_the_activation_can_be_taken_away(make: Any) -> None:
    layer = make()
    x = np.array([[1.0, -1.0]], "float32")
    layer(x)
    layer.set_weights([-np.eye(2), *layer.get_weights()[1:]])
    assert layer(x).numpy().tolist() == [[0, 1]]
    layer.activation = None
    assert layer(x).numpy().tolist() == [[-1, 1]]
    again = type(layer).from_config(layer.get_config())
    assert again.activation(x) is not None
