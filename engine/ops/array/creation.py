"""Tensors made of a rule: full, eye, range, linspace, one_hot, meshgrid."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import (
    FLOATING,
    INTEGER,
    Array,
    Dim,
    EagerTensor,
    OpView,
    Tensor,
    TensorSpec,
    as_dtype,
    bool_,
    broadcast_shapes,
    canonical_axis,
    float32,
    string,
)
from ..core.arrays import computing_dtype
from ..core.basic import constant
from ..core.convert import convert_to_tensor
from ..core.entries import known_value
from ..core.lattice import result_type
from ..core.naming import call_named
from ..core.op_def import Grads
from ..core.promotion import promote
from ..core.registry import define, no_gradient
from ..core.traits import Traits
from ..math.arithmetic import add, divide, multiply, subtract
from ..math.cast import cast
from ..math.compare import equal, less, where
from ..math.reduce import reduce_max
from .axes import expand_dims, moveaxis
from .broadcast import broadcast_to, broadcast_to_shape, sum_to
from .shape import dims_of, is_open, reshape, runtime_shape, split_shape


def full(shape: Any, value: Any, dtype: Any = None) -> Tensor:
    """A tensor of `shape` with `value` everywhere.

    Args:
        shape: ints or scalar integer tensors, or a vector of them all.
        value: a scalar, or anything that broadcasts to `shape`.
        dtype: element type; by default that of `value`.
    """
    if is_open(shape):
        return broadcast_to_shape(convert_to_tensor(value, dtype), shape)
    attribute, dims = split_shape(shape)
    return broadcast_to(convert_to_tensor(value, dtype), attribute, dims)


def zeros(shape: Any, dtype: Any = float32) -> Tensor:
    """A tensor of `shape` with 0 everywhere, False or ""."""
    return full(shape, "" if as_dtype(dtype) == string else 0, dtype)


def ones(shape: Any, dtype: Any = float32) -> Tensor:
    """A tensor of `shape` with 1 everywhere."""
    return full(shape, 1, dtype)


@define("Eye", dtypes={})
def _eye(*dims: TensorSpec, shape: tuple[Dim, Dim], offset: int, dtype: str) -> TensorSpec:
    """A matrix with 1 where j - i = offset, else 0; `dims` give each None in `shape`."""
    return TensorSpec(shape, as_dtype(dtype))


@_eye.reference
def _eye_kernel(xp: Any, *dims: Array, shape: tuple[Dim, Dim], offset: int, dtype: str) -> Array:
    rows, columns = runtime_shape(shape, dims)
    return xp.eye(rows, columns, offset, dtype=as_dtype(dtype).numpy)


_eye.grad(no_gradient)


def eye(rows: Any, columns: Any = None, k: int = 0, dtype: Any = float32) -> Tensor:
    """A matrix with 1 on diagonal `k` (above the main one if positive) and 0 elsewhere.

    Args:
        rows: number of rows, an int or a scalar integer tensor.
        columns: number of columns; by default that of rows.
        k: which diagonal.
        dtype: element type.
    """
    shape, dims = split_shape([rows, rows if columns is None else columns])
    rows_and_columns = (shape[0], shape[1])
    return _eye(*dims, shape=rows_and_columns, offset=k, dtype=as_dtype(dtype))


@define("Range", dtypes={}, traits=Traits(size_inputs=True))
def _range(
    *bounds: TensorSpec,
    start: float | None,
    stop: float | None,
    step: float | None,
    dtype: str,
) -> TensorSpec:
    """The vector start, start + step, ... while below `stop` (above it for a negative step).

    Each None of the three is given at run time by `bounds`, in order.
    """
    if step == 0:
        raise InvalidArgumentError("Range: the step cannot be 0")
    if start is None or stop is None or step is None:
        return TensorSpec([None], as_dtype(dtype))
    return TensorSpec([_count(start, stop, step)], as_dtype(dtype))


def _count(start: float, stop: float, step: float) -> int:
    if all(isinstance(v, int) for v in (start, stop, step)):
        return max(0, int(-((start - stop) // step)))  # exact, where a quotient might round
    return max(0, math.ceil((stop - start) / step))


@_range.reference
def _range_kernel(
    xp: Any,
    *bounds: Array,
    start: float | None,
    stop: float | None,
    step: float | None,
    dtype: str,
) -> Array:
    given = iter(bounds)
    first, last, delta = (next(given).item() if v is None else v for v in (start, stop, step))
    if delta == 0:
        raise InvalidArgumentError("Range: the step cannot be 0")
    # In 64 bits: start + i * step rounds once.
    return (first + delta * xp.arange(_count(first, last, delta))).astype(as_dtype(dtype).numpy)


_range.grad(no_gradient)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Tensor:
    """The vector start, start + step, ... while below `stop` (above it for a negative step).

    Args:
        start: the first element; where `stop` is left out, 0 to `start` is meant.
        stop: the bound, itself left out.
        step: the distance.
        dtype: element type; by default what the three have in common.

    The three are numbers or scalar tensors; with tensors the length is known at run time only.

    Raises:
        InvalidArgumentError: the step is 0.
    """
    if stop is None:
        start, stop = 0, start
    given = (start, stop, step)
    values = [v.item() if isinstance(v, EagerTensor) else known_value(v) for v in given]
    found = result_type(start, stop, step) if dtype is None else as_dtype(dtype)
    tensors = [v for v in values if isinstance(v, Tensor)]
    first, last, delta = (None if isinstance(v, Tensor) else v for v in values)
    return _range(*tensors, start=first, stop=last, step=delta, dtype=found)


@define("LinSpace", dtypes=FLOATING)
def _linspace(start: TensorSpec, stop: TensorSpec, *, num: int, endpoint: bool) -> TensorSpec:
    """y[i, ...] = start + (stop - start) * i / n for i < num; n = num - 1, or num without endpoint.

    With the endpoint the last element is `stop` itself. start and stop broadcast.
    """
    if num < 0:
        raise InvalidArgumentError(f"LinSpace: num cannot be negative, got {num}")
    shape = broadcast_shapes("LinSpace", start.shape, stop.shape)
    return TensorSpec(None if shape.rank is None else [num, *shape], start.dtype)


def _fractions(num: int, endpoint: bool) -> np.ndarray[Any, Any]:
    """i / n for the elements of LinSpace."""
    return np.arange(num) / max(num - endpoint, 1)


@_linspace.reference
def _linspace_kernel(xp: Any, start: Array, stop: Array, *, num: int, endpoint: bool) -> Array:
    dtype = start.dtype
    wide = computing_dtype(xp, start)
    start, stop = xp.broadcast_arrays(start.astype(wide), stop.astype(wide))
    weights = xp.asarray(_fractions(num, endpoint).astype(wide))
    y = start + (stop - start) * weights.reshape((num,) + (1,) * start.ndim)
    if endpoint and num > 1:
        y[-1] = stop
    return y.astype(dtype, copy=False)


@_linspace.grad
def _linspace_grad(op: OpView, dy: Tensor) -> Grads:
    start, stop = op.inputs
    fractions = _fractions(op.attrs["num"], op.attrs["endpoint"])
    weights = constant(fractions.reshape((-1,) + (1,) * (dy.ndim - 1)), dy.dtype)
    dstop = multiply(dy, weights)
    return sum_to(subtract(dy, dstop), start), sum_to(dstop, stop)


def linspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Tensor:
    """`num` values from `start` to `stop` at equal distances.

    Args:
        start: the first value; a number or a tensor.
        stop: the last value, or the one after it without `endpoint`; broadcasts with `start`.
        num: how many values; a number, or a scalar tensor.
        endpoint: whether `stop` is the last value.
        dtype: element type; by default that of `start` and `stop` together, made floating.
        axis: the place of the new axis.

    Raises:
        InvalidArgumentError: `num` is negative.
    """
    first, last = promote(start, stop, floating=True)
    num = known_value(num)
    if isinstance(num, Tensor):
        return _spaced(first, last, num, endpoint, dtype, axis)
    y = moveaxis(_linspace(first, last, num=num, endpoint=endpoint), 0, axis)
    return y if dtype is None else cast(y, dtype)


def _spaced(
    start: Tensor, stop: Tensor, num: Tensor, endpoint: bool, dtype: Any, axis: int
) -> Tensor:
    """As `linspace`, of a number of values that a run knows."""
    places = cast(arange(num), start.dtype)
    parts = cast(subtract(num, convert_to_tensor(int(endpoint), num.dtype)), start.dtype)
    least = convert_to_tensor(1, start.dtype)
    fractions = divide(places, where(less(parts, least), least, parts))
    first, last = (expand_dims(x, -1) for x in (start, stop))
    y = add(first, multiply(subtract(last, first), fractions))
    y = moveaxis(y, -1, axis)
    return y if dtype is None else cast(y, dtype)


@define("OneHot", dtypes=INTEGER)
def _one_hot(indices: TensorSpec, *, depth: int, axis: int, dtype: str) -> TensorSpec:
    """y[..., j, ...] = 1 where j = indices[...], else 0; j runs along the new axis `axis`.

    An index outside 0 ... depth - 1 gives zeros alone.
    """
    if depth < 0:
        raise InvalidArgumentError(f"OneHot: depth cannot be negative, got {depth}")
    if indices.shape.rank is None:
        return TensorSpec(None, as_dtype(dtype))
    dims = list(indices.shape)
    dims.insert(canonical_axis("OneHot", axis, len(dims) + 1), depth)
    return TensorSpec(dims, as_dtype(dtype))


@_one_hot.reference
def _one_hot_kernel(xp: Any, indices: Array, *, depth: int, axis: int, dtype: str) -> Array:
    axis %= indices.ndim + 1
    classes = xp.arange(depth).reshape((depth,) + (1,) * (indices.ndim - axis))
    hot: Array = xp.expand_dims(indices, axis) == classes
    return hot.astype(as_dtype(dtype).numpy, copy=False)


_one_hot.grad(no_gradient)


def one_hot(indices: Tensor, depth: Any, axis: int = -1, dtype: Any = float32) -> Tensor:
    """Each index as a vector with 1 at the index and 0 elsewhere.

    Args:
        indices: integers, any shape; those outside 0 ... depth - 1 give zeros alone.
        depth: the length of the vectors; a number, or a scalar tensor.
        axis: the place of the new axis.
        dtype: element type; "bool" gives True and False.
    """
    size = known_value(depth)
    if not isinstance(size, Tensor):
        return _one_hot(indices, depth=int(size), axis=axis, dtype=as_dtype(dtype))
    # The classes stand along the last axis, and move to their place.
    hot = equal(expand_dims(indices, -1), arange(cast(size, indices.dtype)))
    return cast(hot if axis == -1 else moveaxis(hot, -1, axis), dtype)


def sequence_mask(
    lengths: Any, maxlen: Any = None, dtype: Any = bool_, name: str | None = None
) -> Tensor:
    """mask[..., j] = whether j < lengths[...]: which places of padded sequences hold elements.

    Args:
        lengths: (...), integers.
        maxlen: the length of the padded sequences; by default the greatest of `lengths`.
        dtype: element type: 1 and 0 for True and False.
        name: of the operation.

    Returns:
        (..., maxlen).

    Examples:
        >>> engine.sequence_mask(engine.constant([1, 3]), maxlen=3)
        Tensor([[ True, False, False],
                [ True,  True,  True]], shape=(2, 3), dtype=bool)
    """

    def build() -> Tensor:
        given = convert_to_tensor(lengths)
        most = reduce_max(given) if maxlen is None else maxlen
        mask = less(arange(0, most, dtype=given.dtype), expand_dims(given, -1))
        return cast(mask, as_dtype(dtype))

    mask: Tensor = call_named(name, build)
    return mask


def meshgrid(*xs: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """The coordinates of the points of a grid: one tensor for each axis.

    Args:
        xs: the coordinates along each axis; those of a scalar or of an array of several axes are a
            vector of its elements, as in NumPy.
        indexing: "ij": the i-th vector runs along axis i; "xy": the first two are exchanged, so
            that the first runs along the columns.

    Raises:
        InvalidArgumentError: another `indexing`.
    """
    if indexing not in ("xy", "ij"):
        raise InvalidArgumentError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    vectors = [x if x.shape.rank == 1 else reshape(x, [-1]) for x in xs]
    places = [*range(len(xs))]
    if indexing == "xy" and len(xs) > 1:
        places[:2] = [1, 0]
    shape: list[Dim] = [None] * len(xs)
    dims: list[list[Tensor]] = [[] for _ in xs]
    for x, place in zip(vectors, places, strict=True):
        (shape[place],), dims[place] = dims_of(x)
    sizes = [size for each in dims for size in each]
    grids = []
    for x, place in zip(vectors, places, strict=True):
        x = expand_dims(x, [i for i in range(len(xs)) if i != place])
        grids.append(broadcast_to(x, shape, sizes))
    return tuple(grids)
