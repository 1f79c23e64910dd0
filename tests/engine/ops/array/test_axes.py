"""Transpose, swapaxes, moveaxis, expand_dims, squeeze."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.array.axes import expand_dims, moveaxis, squeeze, swapaxes, transpose
from laminar.engine.ops.core.basic import constant, placeholder

from ..harness import check_op

rng = np.random.default_rng(3)

CASES = [
    pytest.param(transpose, np.transpose, (2, 3, 4), (), id="transpose"),
    pytest.param(transpose, np.transpose, (2, 3, 4), ((1, 0, 2),), id="transpose-order"),
    pytest.param(transpose, np.transpose, (2, 3, 4), ((-1, 0, -2),), id="transpose-negative"),
    pytest.param(transpose, np.transpose, (3, 0), (), id="transpose-empty"),
    pytest.param(transpose, np.transpose, (2, 3, 4, 5), ((2, 3, 1, 0),), id="transpose-cycle"),
    pytest.param(swapaxes, np.swapaxes, (2, 3, 4), (0, -1), id="swapaxes"),
    pytest.param(moveaxis, np.moveaxis, (2, 3, 4), (0, -1), id="moveaxis"),
    pytest.param(moveaxis, np.moveaxis, (2, 3, 4, 5), ([0, 1], [-1, -2]), id="moveaxis-two"),
    pytest.param(moveaxis, np.moveaxis, (2, 3, 4, 5), ([3, 0], [0, 2]), id="moveaxis-cross"),
    pytest.param(expand_dims, np.expand_dims, (2, 3), (0,), id="expand-front"),
    pytest.param(expand_dims, np.expand_dims, (2, 3), (-1,), id="expand-back"),
    pytest.param(expand_dims, np.expand_dims, (2, 3), ((0, 2, -1),), id="expand-several"),
    pytest.param(expand_dims, np.expand_dims, (), (0,), id="expand-scalar"),
    pytest.param(squeeze, np.squeeze, (1, 3, 1), (), id="squeeze-all"),
    pytest.param(squeeze, np.squeeze, (1, 3, 1), (0,), id="squeeze-first"),
    pytest.param(squeeze, np.squeeze, (1, 3, 1), (-1,), id="squeeze-last"),
    pytest.param(squeeze, np.squeeze, (1, 3, 1, 2), ((-2, 0),), id="squeeze-two"),
    pytest.param(squeeze, np.squeeze, (1, 1), (), id="squeeze-to-scalar"),
]


@pytest.mark.parametrize(("fn", "reference", "shape", "args"), CASES)
def test_op(
    fn: Callable[..., Any],
    reference: Callable[..., Any],
    shape: tuple[int, ...],
    args: tuple[Any, ...],
) -> None:
    check_op(
        lambda x: fn(x, *args),
        lambda x: reference(x, *args),
        [rng.normal(size=shape)],
        dtypes=["bfloat16", "complex64", "int16", "bool"],
    )


def test_the_same_order_is_the_tensor_itself() -> None:
    x = constant(np.zeros((2, 3)))
    assert transpose(x, (0, 1)) is x
    assert transpose(constant(1.0)).shape == ()


ERRORS = [
    pytest.param(lambda x: transpose(x, (0, 2)), r"axis 2 does not exist.* 2 axes", id="axis"),
    pytest.param(lambda x: transpose(x, (0, 0)), r"named twice in \(0, 0\)", id="twice"),
    pytest.param(lambda x: transpose(x, (0,)), r"has 2 axes, but .* names 1", id="few"),
    pytest.param(lambda x: squeeze(x, 0), r"axis 0 of .*\[2, 3\] has size 2, not 1", id="squeeze"),
    pytest.param(lambda x: expand_dims(x, 3), r"ExpandDims: axis 3 does not exist", id="expand"),
    pytest.param(lambda x: moveaxis(x, [0, 1], [0]), r"2 axes cannot move to 1", id="move"),
    pytest.param(lambda x: swapaxes(x, 0, 5), r"swapaxes: axis 5 does not exist", id="swap"),
]


@pytest.mark.parametrize(("call", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        call(constant(np.zeros((2, 3))))


def test_unknown_ranks() -> None:
    with Graph().as_default():
        x = placeholder("float32", None)
        assert transpose(x).shape.rank is None
        assert transpose(x, (1, 0)).shape == TensorShape([None, None])
        assert squeeze(x, 0).shape.rank is None
        assert expand_dims(x, 0).shape.rank is None
        assert squeeze(placeholder("float32", [None, 1])).shape.rank is None
        assert swapaxes(x, 0, 1).shape.rank is None
        with pytest.raises(ShapeError, match="number of axes"):
            moveaxis(x, 0, 1)
