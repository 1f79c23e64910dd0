"""Tensors made of a rule: constants, ranges, grids, diagonals, windows."""

from __future__ import annotations

import operator
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import INTEGER, Tensor, as_dtype, float64
from laminar.engine.ops.array import creation as engine
from laminar.engine.ops.array.axes import expand_dims
from laminar.engine.ops.array.broadcast import broadcast_like
from laminar.engine.ops.core import basic
from laminar.engine.ops.math import arithmetic
from laminar.engine.ops.math import elementary as mathematics
from laminar.engine.ops.math.cast import cast

from ..typing import DTypeLike, ShapeLike, TensorLike
from .arguments import (
    common,
    dtype_or_float,
    known_array,
    tensor,
)
from .recording import public

__all__ = [
    "arange",
    "array",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "geomspace",
    "linspace",
    "logspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


@public
def array(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `x`: a number, nested list, array or tensor.

    Args:
        x: Python's floats become the default float, its integers int32; arrays keep their type.
        dtype: element type; a number with a fraction is no integer.

    Raises:
        InvalidArgumentError: the rows of a list differ in length, or a number does not fit `dtype`.

    Examples:
        >>> ops.array([1, 2], dtype="float32")
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """
    return tensor(x, None if dtype is None else as_dtype(dtype))


def _filled(shape: ShapeLike, value: TensorLike, dtype: DTypeLike | None) -> Tensor:
    return engine.full(shape, tensor(value, dtype_or_float(dtype)))


@public
def full(shape: ShapeLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with `fill_value` everywhere.

    Args:
        shape: ints or scalar integer tensors.
        fill_value: a number, or anything that broadcasts to `shape`.
        dtype: element type, by default the default float.

    Examples:
        >>> ops.full((2, 2), 7)
        Tensor([[7., 7.],
                [7., 7.]], shape=(2, 2), dtype=float32)
    """
    return _filled(shape, fill_value, dtype)


@public
def zeros(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with 0 everywhere; by default of the default float.

    Examples:
        >>> ops.zeros((2,))
        Tensor([0., 0.], shape=(2,), dtype=float32)
    """
    return _filled(shape, 0, dtype)


@public
def ones(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` with 1 everywhere; by default of the default float.

    Examples:
        >>> ops.ones((2,))
        Tensor([1., 1.], shape=(2,), dtype=float32)
    """
    return _filled(shape, 1, dtype)


@public
def empty(shape: ShapeLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of `shape` whose values do not matter (they are 0).

    Examples:
        >>> ops.empty((2, 3)).shape
        (2, 3)
    """
    return _filled(shape, 0, dtype)


@public
def full_like(x: TensorLike, fill_value: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor of the shape of `x`, and by default of its type, with `fill_value` everywhere.

    Examples:
        >>> ops.full_like([1, 2], 7)
        Tensor([7, 7], shape=(2,), dtype=int32)
    """
    x = tensor(x)
    return broadcast_like(tensor(fill_value, x.dtype if dtype is None else as_dtype(dtype)), x)


@public
def zeros_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Zeros of the shape of `x`, and by default of its type.

    Examples:
        >>> ops.zeros_like([5, 6])
        Tensor([0, 0], shape=(2,), dtype=int32)
    """
    found = basic.zeros_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


@public
def ones_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """Ones of the shape of `x`, and by default of its type.

    Examples:
        >>> ops.ones_like([5, 6])
        Tensor([1, 1], shape=(2,), dtype=int32)
    """
    found = basic.ones_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


@public
def empty_like(x: TensorLike, dtype: DTypeLike | None = None) -> Tensor:
    """A tensor like `x` whose values do not matter (they are 0).

    Examples:
        >>> ops.empty_like([[1, 2, 3]]).shape
        (1, 3)
    """
    found = basic.zeros_like(tensor(x))
    return found if dtype is None else cast(found, dtype)


@public
def arange(
    start: TensorLike,
    stop: TensorLike | None = None,
    step: TensorLike | None = None,
    dtype: DTypeLike | None = None,
) -> Tensor:
    """The vector start, start + step, ... while below `stop` (above it for a negative step).

    Args:
        start: the first element; where `stop` is left out, 0 to `start` is meant.
        stop: the bound, itself left out.
        step: the distance, by default 1.
        dtype: element type; by default what the numbers have in common.

    Examples:
        >>> ops.arange(1, 10, 3)
        Tensor([1, 4, 7], shape=(3,), dtype=int32)
    """
    if stop is None:
        start, stop = 0, start
    if dtype is None:
        dtype = common(*(v for v in (start, stop, step) if v is not None))
    return engine.arange(start, stop, 1 if step is None else step, as_dtype(dtype))


@public
def linspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Any:
    """`num` values from `start` to `stop` at equal distances.

    Args:
        start: the first value, a number or a tensor.
        stop: the last value; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether `stop` is the last value.
        retstep: whether to return the distance too, as a second result.
        dtype: element type, by default floating; values are rounded down to integers.
        axis: the place of the new axis.

    Examples:
        >>> ops.linspace(0.0, 1.0, num=5)
        Tensor([0.  , 0.25, 0.5 , 0.75, 1.  ], shape=(5,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    first, last = tensor(start, wide), tensor(stop, wide)
    count = operator.index(num)
    values = engine.linspace(first, last, count, endpoint, axis=axis)
    values = cast(arithmetic.floor(values) if found in INTEGER else values, found)
    if not retstep:
        return values
    parts = count - 1 if endpoint else count
    step = arithmetic.divide(arithmetic.subtract(last, first), tensor(float(parts), wide))
    return values, step


@public
def logspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    base: TensorLike = 10,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """`num` values from base**start to base**stop, each the same factor times the one before.

    Args:
        start: the first exponent, a number or a tensor.
        stop: the last exponent; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether base**stop is the last value.
        base: what is raised to the powers.
        dtype: element type, by default floating.
        axis: the place of the new axis.

    Examples:
        >>> ops.logspace(0.0, 3.0, num=4)
        Tensor([   1.,   10.,  100., 1000.], shape=(4,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    exponents = engine.linspace(tensor(start, wide), tensor(stop, wide), num, endpoint, axis=axis)
    return cast(mathematics.power(tensor(base, wide), exponents), found)


@public
def geomspace(
    start: TensorLike,
    stop: TensorLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tensor:
    """`num` values from `start` to `stop`, each the same factor times the one before.

    Args:
        start: the first value, a number or a tensor, not 0.
        stop: the last value, of the same sign; without `endpoint`, the one after it.
        num: how many values.
        endpoint: whether `stop` is the last value.
        dtype: element type, by default floating.
        axis: the place of the new axis.

    Raises:
        InvalidArgumentError: an end is 0.

    Examples:
        >>> ops.geomspace(1.0, 1000.0, num=4)
        Tensor([   1.    ,   10.    ,  100.    , 1000.0001], shape=(4,), dtype=float32)
    """
    found = common(start, stop, 0.0) if dtype is None else as_dtype(dtype)
    wide = found if found.is_floating else float64
    first, last = tensor(start, wide), tensor(stop, wide)
    for name, end in (("start", first), ("stop", last)):
        known = known_array(end)
        if known is not None and (known == 0).any():
            raise InvalidArgumentError(f"geomspace: no factor leads to or from 0, got it as {name}")
    sign = arithmetic.sign(first)
    low, high = (mathematics.log(arithmetic.multiply(v, sign)) for v in (first, last))
    values = mathematics.exp(engine.linspace(low, high, num, endpoint, axis=axis))
    return cast(arithmetic.multiply(values, expand_dims(sign, axis)), found)
