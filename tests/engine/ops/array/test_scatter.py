"""Scatter into a tensor: update, add, mul, max, min."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.scatter import (
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_update,
)
from laminar.engine.ops.core.basic import constant
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.registry import lookup

from ..harness import check_op

rng = np.random.default_rng(6)

PLACES = [
    pytest.param((5, 3), [[0], [4], [2]], id="rows"),
    pytest.param((5, 3), [[0], [-1], [0], [0]], id="repeated-rows"),
    pytest.param((5, 3), [[0, 1], [4, 2], [0, 1]], id="repeated-elements"),
    pytest.param((5, 3, 2), [[[0, 1], [4, 2]], [[1, -1], [0, 0]]], id="matrix-of-indices"),
    pytest.param((5, 3), [2, 1], id="one-index"),
    pytest.param((5, 3), np.zeros((0, 1), np.int64), id="none"),
    pytest.param((5, 0), [[1], [1]], id="empty-rows"),
]
MODES = {
    scatter_update: None,
    scatter_add: np.add,
    scatter_mul: np.multiply,
    scatter_max: np.maximum,
    scatter_min: np.minimum,
}


def reference_scatter(x: Any, index: Any, updates: Any, ufunc: Any) -> Any:
    y = x.copy()
    place = tuple(np.moveaxis(index, -1, 0))
    if ufunc is None:
        y[place] = updates
    else:
        ufunc.at(y, place, updates)
    return y


@pytest.mark.parametrize("fn", MODES, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("shape", "indices"), PLACES)
def test_op(fn: Callable[..., Tensor], shape: tuple[int, ...], indices: Any) -> None:
    index = np.asarray(indices)
    check_op(
        lambda x, u: fn(x, constant(index), u),
        lambda x, u: reference_scatter(x, index, u, MODES[fn]),
        [
            rng.normal(size=shape),
            rng.normal(size=(*index.shape[:-1], *shape[index.shape[-1] :])),
        ],
        dtypes=["float16", "bfloat16", "float32"],
    )


def test_a_product_with_zeros_has_the_right_gradients() -> None:
    index = np.array([[0], [0], [1], [1], [2]])
    check_op(
        lambda x, u: scatter_mul(x, constant(index), u),
        lambda x, u: reference_scatter(x, index, u, np.multiply),
        [rng.normal(size=(4, 2)), np.array([[0, 1], [2, 3], [0, 0], [0, 5], [7, 0]], float)],
        second=False,  # the product of the other factors is differentiated as a quotient
    )


def test_other_types() -> None:
    x = np.arange(4)
    index = constant(np.array([[1], [1]]))
    found = scatter_add(constant(x), index, constant(np.array([5, 6]))).numpy()
    np.testing.assert_array_equal(found, [0, 12, 2, 3])
    found = scatter_update(constant(x > 1), index, constant(np.array([False, True]))).numpy()
    np.testing.assert_array_equal(found, [False, True, True, True])
    text = convert_to_tensor(["a", "b"])
    found = scatter_update(text, index, convert_to_tensor(["x", "y"])).numpy()
    assert found.tolist() == [b"a", b"y"]


def test_the_input_stays_as_it_is() -> None:
    x = constant(np.zeros(3))
    scatter_update(x, constant(np.array([[1]])), constant(np.array([5.0])))
    assert x.numpy().tolist() == [0, 0, 0]


def ints(*values: Any) -> Tensor:
    return constant(np.array(values, np.int32))


ERRORS = [
    pytest.param(
        lambda x, u: scatter_add(x, ints([0], [3]), u),
        InvalidArgumentError,
        r"TensorScatter: index 3 at position \[1\] is out of range for axis 0 of size 3",
        id="range",
    ),
    pytest.param(
        lambda x, u: scatter_add(x, ints([0]), u),
        ShapeError,
        r"the indices name slices of shape \[1, 2\], the updates are .*\[2, 2\]",
        id="updates",
    ),
    pytest.param(
        lambda x, u: scatter_max(x, ints([0, 0, 0]), u), ShapeError, "3 indices for", id="axes"
    ),
    pytest.param(
        lambda x, u: scatter_max(x, constant(np.zeros((2, 1))), u),
        DTypeError,
        "indices must be integers",
        id="indices",
    ),
    pytest.param(
        lambda x, u: scatter_max(x, ints([0], [1]), constant(np.zeros((2, 2), np.int32))),
        DTypeError,
        "one dtype",
        id="dtype",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[..., Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((3, 2))), constant(np.zeros((2, 2))))


def test_an_unknown_mode() -> None:
    scatter = lookup("TensorScatter")
    with pytest.raises(InvalidArgumentError, match="mode must be one of .* got 'xor'"):
        scatter(constant(np.zeros(3)), constant(np.zeros(1)), ints(0), mode="xor")


def test_bools_do_not_add() -> None:
    x = constant(np.zeros(3, bool))
    with pytest.raises(DTypeError, match="bool values cannot be combined by add"):
        scatter_add(x, ints([0]), constant(np.ones(1, bool)))
