from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import cumulative as c

from ..harness import check_op

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 5, 3))
ZEROS = X * (np.arange(5) % 2)[:, None]
HALF = ["float32", "float16", "bfloat16"]


def running(accumulate: Any, start: float) -> Any:
    """The reference: `accumulate` along an axis, shifted and flipped as asked."""

    def fn(x: Any, axis: int, exclusive: bool = False, reverse: bool = False) -> Any:
        x = np.flip(x, axis) if reverse else x
        y = accumulate(x, axis)
        if exclusive:
            y = np.roll(y, 1, axis)
            np.moveaxis(y, axis, 0)[:1] = start
        return np.flip(y, axis) if reverse else y

    return fn


FUNCTIONS = [
    pytest.param(c.cumsum, running(np.add.accumulate, 0.0), X, id="sum"),
    pytest.param(c.cumprod, running(np.multiply.accumulate, 1.0), X, id="prod"),
    pytest.param(c.cumprod, running(np.multiply.accumulate, 1.0), ZEROS, id="prod-zeros"),
    pytest.param(c.logcumsumexp, running(np.logaddexp.accumulate, -math.inf), X, id="logsumexp"),
]


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize(("fn", "reference", "x"), FUNCTIONS)
def test_running(
    fn: Any, reference: Any, x: Any, axis: int, exclusive: bool, reverse: bool
) -> None:
    attrs = {"axis": axis, "exclusive": exclusive, "reverse": reverse}
    is_infinite = fn is c.logcumsumexp and exclusive  # no slope at -inf
    check_op(fn, reference, [x], attrs=attrs, dtypes=HALF, grad=not is_infinite)


@pytest.mark.parametrize("shape", [(0,), (1,), (3, 0), (0, 3)])
@pytest.mark.parametrize(("fn", "reference", "x"), FUNCTIONS)
def test_small(fn: Any, reference: Any, x: Any, shape: Any) -> None:
    check_op(fn, reference, [np.ones(shape)], attrs={"axis": 0, "reverse": True})


def test_exclusive_logcumsumexp_has_slopes() -> None:
    def tail(x: Any) -> Any:
        return c.logcumsumexp(x, 0, exclusive=True)[1:]

    check_op(tail, lambda x: np.logaddexp.accumulate(x)[:-1], [X[0, :, 0]])


def test_logcumsumexp_far_apart() -> None:
    x = np.array([-math.inf, -1e4, 1e4, 0.0, 1e4])
    found = c.logcumsumexp(convert_to_tensor(x)).numpy()
    np.testing.assert_array_equal(found, [-math.inf, -1e4, 1e4, 1e4, 1e4 + math.log(2)])
    check_op(c.logcumsumexp, lambda x: np.logaddexp.accumulate(x), [x[1:]], atol=1e-12)


def recurrence(factor: Any, x: Any, axis: int, reverse: bool = False) -> Any:
    factor, x = np.moveaxis(factor, axis, 0), np.moveaxis(x, axis, 0)
    y = np.zeros_like(x)
    before = np.zeros_like(x[0])
    for i in range(len(x))[:: -1 if reverse else 1]:
        before = y[i] = x[i] + factor[i] * before
    return np.moveaxis(y, 0, axis)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("factor", [X[::-1], ZEROS], ids=["full", "zeros"])
def test_linear_recurrence(factor: Any, axis: int, reverse: bool) -> None:
    attrs = {"axis": axis, "reverse": reverse}
    check_op(c.linear_recurrence, recurrence, [factor, X], attrs=attrs, dtypes=HALF)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 9, 1000])
def test_recurrence_of_any_length(size: int) -> None:
    factor, x = rng.uniform(-1, 1, size=(2, size))
    found = c.linear_recurrence(convert_to_tensor(factor), convert_to_tensor(x), axis=0).numpy()
    np.testing.assert_allclose(found, recurrence(factor, x, 0), rtol=1e-12)


@pytest.mark.parametrize("reverse", [False, True])
def test_shift(reverse: bool) -> None:
    def reference(x: Any, axis: int, reverse: bool, fill: float) -> Any:
        y = np.roll(x, -1 if reverse else 1, axis)
        np.moveaxis(y, axis, 0)[-1 if reverse else 0] = fill
        return y

    attrs = {"axis": 1, "reverse": reverse, "fill": 2.5}
    check_op(c.shift, reference, [X], attrs=attrs, dtypes=["float32"])


def test_integers_keep_their_type() -> None:
    x = convert_to_tensor(np.array([100, 100, 100], np.uint8))
    assert c.cumsum(x).numpy().tolist() == [100, 200, 44]
    assert c.cumsum(x).numpy().dtype == np.uint8
    assert c.cumprod(convert_to_tensor(np.array([3, -2], np.int16))).numpy().tolist() == [3, -6]


def test_half_types_accumulate_in_float32() -> None:
    x = convert_to_tensor(np.ones(4096), "bfloat16")
    assert c.cumsum(x).numpy()[-1] == 4096


def test_unknown_rank_and_errors() -> None:
    with Graph().as_default():
        assert c.cumsum(placeholder("float32"), -1).shape.rank is None
    with pytest.raises(ShapeError) as caught:
        c.cumsum(convert_to_tensor(X), 3)
    assert caught.value.message == "Cumsum: axis 3 does not exist, the tensor has 3 axes"
    with pytest.raises(ShapeError) as differ:
        c.linear_recurrence(convert_to_tensor(X), convert_to_tensor(X[:1]), axis=0)
    assert differ.value.message == (
        "LinearRecurrence: factor and x must have one shape, "
        "got float64[2, 5, 3] and float64[1, 5, 3]"
    )
