"""Reductions: sums, means, extremes and their like over some axes.

`axis` is a tuple of axes, or None for all of them; `keepdims` leaves the reduced axes with size 1.
Half-precision types accumulate in float32 and are rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import (
    ANY,
    BOOLEAN,
    COMPLEX,
    FLOATING,
    INEXACT,
    INTEGER,
    NUMERIC,
    REAL,
    Array,
    DType,
    OpView,
    Tensor,
    TensorSpec,
    as_dtype,
    bfloat16,
    canonical_axes,
    canonical_axis,
    float16,
    float32,
    int64,
)
from ..array.axes import expand_dims
from ..array.broadcast import broadcast_like
from ..array.by_vectors import reduction_order, transpose_by
from ..array.open_axis import from_front, is_open_axis, to_front
from ..array.shape import dim_of, reshape_to_shape, shape_of, size_of
from ..core.arrays import greatest, rounded, summed, widened
from ..core.basic import constant, zeros_like
from ..core.entries import known_value
from ..core.kernels import HOST
from ..core.op_def import Gradient, Grads, OpDef
from ..core.registry import define, no_gradient, register
from .arithmetic import add, conjugate, divide, multiply, subtract
from .cast import cast
from .compare import equal, is_finite, where
from .cumulative import cumprod
from .elementary import divide_no_nan, exp, flat_at_zero, sqrt

Axis: TypeAlias = int | Sequence[int] | None
Axes: TypeAlias = tuple[int, ...] | None


def normalize_axes(who: str, axis: Axis, rank: int | None) -> Axes:
    """The axes of a reduction as the attribute holds them: counted from the front and in order.

    All axes are None. Of unknown rank, the axes stay as they are given.

    Raises:
        ShapeError: one does not exist, or is named twice.
    """
    if axis is None:
        return None
    if rank is None:
        return tuple(axis) if isinstance(axis, Sequence) else (axis,)
    found = tuple(sorted(canonical_axes(who, axis, rank)))
    return None if len(found) == rank else found


def _reduced(who: str, x: TensorSpec, axis: Axes, keepdims: bool, dtype: Any = None) -> TensorSpec:
    """The spec of a reduction of `x`."""
    dtype = dtype or x.dtype
    rank = x.shape.rank
    if rank is None:
        known = axis is None and not keepdims
        return TensorSpec(() if known else None, dtype)
    axes = range(rank) if axis is None else canonical_axes(who, axis, rank)
    if keepdims:
        return TensorSpec([1 if i in axes else d for i, d in enumerate(x.shape)], dtype)
    return TensorSpec([d for i, d in enumerate(x.shape) if i not in axes], dtype)


def _reduction(
    type: str,
    doc: str,
    kernel: Callable[..., Array],
    *,
    dtypes: Collection[DType],
    grad: Gradient,
) -> OpDef:
    """Define an op that reduces `x` over `axis` by `kernel(xp, x, axis, keepdims)`.

    The kernel gets half-precision types as float32.
    """

    def rule(x: TensorSpec, *, axis: Axes = None, keepdims: bool = False) -> TensorSpec:
        return _reduced(type, x, axis, keepdims)

    rule.__doc__ = doc
    op = OpDef(type, rule, dtypes=dtypes)

    @op.reference
    def reference(xp: Any, x: Array, *, axis: Axes, keepdims: bool) -> Array:
        return rounded(kernel(xp, widened(xp, x), axis, keepdims), x.dtype)

    op.grad(grad)
    return register(op)


def _count(x: Array, axis: Axes) -> int:
    """How many elements are reduced to one."""
    return math.prod(x.shape if axis is None else (x.shape[i] for i in axis))


def _kept(y: Tensor, op: OpView) -> Tensor:
    """A result, or its gradient, with the reduced axes put back at size 1."""
    axis = op.attrs["axis"]
    if op.attrs["keepdims"] or axis is None:
        return y
    if op.inputs[0].shape.rank is None:
        return reshape_to_shape(y, _kept_shape(shape_of(op.inputs[0]), axis=axis))
    return expand_dims(y, axis)


@define("KeptShape", dtypes=INTEGER)
def _kept_shape(shape: TensorSpec, *, axis: tuple[int, ...]) -> TensorSpec:
    """The dimensions that the vector `shape` holds, with 1 for those of the axes."""
    return shape


@_kept_shape.reference
def _kept_shape_kernel(xp: Any, shape: Array, *, axis: tuple[int, ...]) -> Array:
    kept = shape.copy()
    kept[list(axis)] = 1
    return kept


_kept_shape.grad(no_gradient)


def _spread(dy: Tensor, op: OpView) -> Tensor:
    """The gradient of each result for each element it was made of."""
    return broadcast_like(_kept(dy, op), op.inputs[0])


def _wide(x: Tensor) -> Tensor:
    """Half-precision types as float32: they cannot hold large counts."""
    return cast(x, float32) if x.dtype in (float16, bfloat16) else x


def _over_count(dy: Tensor, op: OpView) -> Tensor:
    """`dy` over the number of elements that each result was made of."""
    (x,), axis = op.inputs, op.attrs["axis"]
    wide = _wide(dy)
    if x.shape.rank is None:
        count = cast(size_of(x), wide.dtype)
        if axis is not None:
            count = divide_no_nan(count, cast(size_of(dy), wide.dtype))
    else:
        axes = range(len(x.shape)) if axis is None else axis
        known = math.prod(d for i in axes if (d := x.shape[i]) is not None)
        count = constant(known, wide.dtype)
        for i in axes:
            if x.shape[i] is None:
                count = multiply(count, cast(dim_of(x, axis=i), wide.dtype))
    return cast(divide(wide, count), dy.dtype)


def _mean_kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    return summed(xp, x, axis, keepdims) / _count(x, axis)


def _variance_kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    # In two passes: the mean of squares less the square of the mean would cancel.
    x = x - _mean_kernel(xp, x, axis, True)
    x *= x
    return _mean_kernel(xp, x, axis, keepdims)


def _variance_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    centred = subtract(x, reduce_mean(x, op.attrs["axis"], keepdims=True))
    doubled = add(centred, centred)
    return (multiply(_spread(_over_count(dy, op), op), doubled),)


def _prod_kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    return xp.prod(x, axis=axis, dtype=x.dtype, keepdims=keepdims)


def _prod_grad(op: OpView, dy: Tensor) -> Grads:
    # One axis after another: the slope for an element is the product of the others, from both
    # sides, which needs no division and so is right where there are zeros.
    x = conjugate(op.inputs[0])
    if x.shape.rank is None:
        raise ShapeError(f"the number of axes of {x!r} must be known for the gradient of Prod")
    axis = op.attrs["axis"]
    axes = tuple(range(len(x.shape))) if axis is None else axis
    dx = _kept(dy, op) if axis is not None or op.attrs["keepdims"] else expand_dims(dy, axes)
    stages = [x]
    for i in axes[:-1]:
        stages.append(reduce_prod(stages[-1], i, keepdims=True))
    for i, stage in zip(axes[::-1], stages[::-1], strict=False):
        before = cumprod(stage, i, exclusive=True)
        after = cumprod(stage, i, exclusive=True, reverse=True)
        dx = multiply(multiply(dx, before), after)  # the product of both can overflow
    return (dx,)


def _extreme(name: str, who: str) -> Callable[..., Array]:
    of_host: np.ufunc = getattr(HOST, f"{name}imum")

    def kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
        if x.size == 0 and _count(x, axis) == 0:
            raise InvalidArgumentError(
                f"{who}: there is no element to choose from in {x.dtype}{list(x.shape)}",
                remedy="make sure that the reduced axes are not empty",
            )
        if xp is HOST:  # what np.max does, without its own way there
            found: Array = of_host.reduce(x, axis=axis, keepdims=keepdims)
            return found
        return getattr(xp, name)(x, axis=axis, keepdims=keepdims)

    return kernel


def _extreme_grad(op: OpView, dy: Tensor) -> Grads:
    """Equal extremes share the gradient equally."""
    (x,), (y,) = op.inputs, op.outputs
    chosen = equal(x, broadcast_like(_kept(y, op), x))
    weight = cast(chosen, _wide(dy).dtype)
    share = divide(weight, reduce_sum(weight, op.attrs["axis"], keepdims=True))
    return (multiply(_spread(dy, op), cast(share, dy.dtype)),)


def _logsumexp_kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    if _count(x, axis) == 0:
        return summed(xp, x, axis, keepdims) - xp.inf
    high = greatest(xp, x, axis, True)
    high = xp.where(xp.isfinite(high), high, 0)  # inf - inf would be NaN
    total = xp.log(summed(xp, xp.exp(x - high), axis, True)) + high
    return total if keepdims else xp.squeeze(total, axis=axis)


def _logsumexp_grad(op: OpView, dy: Tensor) -> Grads:
    (x,), y = op.inputs, _kept(op.outputs[0], op)
    y = where(is_finite(y), y, zeros_like(y))  # of -inf alone the slopes are 0
    return (multiply(_spread(dy, op), exp(subtract(x, y))),)


def _norm_kernel(xp: Any, x: Array, axis: Axes, keepdims: bool) -> Array:
    if _count(x, axis) == 0:
        return summed(xp, x, axis, keepdims)
    if x.dtype.kind in "iu":
        x = x.astype(xp.float64)  # not scaled: a root that is whole stays so
        return xp.sqrt(summed(xp, x * x, axis, keepdims))
    x = xp.abs(x)
    scale = greatest(xp, x, axis, True)  # squares could overflow
    safe = xp.where((scale > 0) & xp.isfinite(scale), scale, 1)
    x = x / safe
    x *= x
    y = xp.sqrt(summed(xp, x, axis, True)) * safe
    return y if keepdims else xp.squeeze(y, axis=axis)


def _norm_grad(op: OpView, dy: Tensor) -> Grads:
    (x,), (y,) = op.inputs, op.outputs
    if x.dtype in COMPLEX:  # the norm is real, so that the imaginary part of `dy` has no effect
        dy = divide(add(dy, conjugate(dy)), constant(2, dy.dtype))
    return (multiply(_spread(dy, op), divide_no_nan(x, broadcast_like(_kept(y, op), x))),)


_sum: OpDef = _reduction(
    "Sum",
    "The sum; integers keep their dtype.",
    summed,
    dtypes=NUMERIC,
    grad=lambda op, dy: (_spread(dy, op),),
)
_mean: OpDef = _reduction(
    "Mean",
    "The sum over the number of elements; NaN of none.",
    _mean_kernel,
    dtypes=INEXACT,
    grad=lambda op, dy: (_spread(_over_count(dy, op), op),),
)
_variance: OpDef = _reduction(
    "Variance",
    "The mean of (x - mean(x))**2.",
    _variance_kernel,
    dtypes=FLOATING,
    grad=_variance_grad,
)
_prod: OpDef = _reduction(
    "Prod",
    "The product; integers keep their dtype.",
    _prod_kernel,
    dtypes=NUMERIC,
    grad=_prod_grad,
)
_max: OpDef = _reduction(
    "Max",
    "The greatest element; NaN if there is one. Equal ones share the gradient.",
    _extreme("max", "Max"),
    dtypes=REAL,
    grad=_extreme_grad,
)
_min: OpDef = _reduction(
    "Min",
    "The least element; NaN if there is one. Equal ones share the gradient.",
    _extreme("min", "Min"),
    dtypes=REAL,
    grad=_extreme_grad,
)
_all: OpDef = _reduction(
    "All",
    "Whether all are true.",
    lambda xp, x, axis, keepdims: xp.all(x, axis=axis, keepdims=keepdims),
    dtypes=BOOLEAN,
    grad=no_gradient,
)
_any: OpDef = _reduction(
    "Any",
    "Whether one is true.",
    lambda xp, x, axis, keepdims: xp.any(x, axis=axis, keepdims=keepdims),
    dtypes=BOOLEAN,
    grad=no_gradient,
)
_logsumexp: OpDef = _reduction(
    "LogSumExp",
    "log(sum of exp(x)), without overflow; -inf of no elements.",
    _logsumexp_kernel,
    dtypes=FLOATING,
    grad=_logsumexp_grad,
)
_norm: OpDef = _reduction(
    "EuclideanNorm",
    "sqrt(sum of |x|**2), without overflow, in the dtype of x; an integer is cut off. The slope at "
    "0 is 0.",
    _norm_kernel,
    dtypes=NUMERIC,
    grad=_norm_grad,
)


def _reduce(op: OpDef, x: Tensor, axis: Any, keepdims: bool) -> Tensor:
    axis = known_value(axis)
    if isinstance(axis, Tensor):
        return _reduce_by(op, x, axis, keepdims)
    return op(x, axis=normalize_axes(op.type, axis, x.shape.rank), keepdims=keepdims)


def _reduce_by(op: OpDef, x: Tensor, axes: Tensor, keepdims: bool) -> Tensor:
    """A reduction over axes that a run knows: they are brought to the end, and made one."""
    order, sizes, kept = reduction_order.many(shape_of(x, dtype=int64), axes)
    y = op(reshape_to_shape(transpose_by(x, order), sizes), axis=(-1,), keepdims=False)
    return reshape_to_shape(y, kept) if keepdims else y


def reduce_sum(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The sum of the elements over one axis, several, or (None) all."""
    return _reduce(_sum, x, axis, keepdims)


def reduce_mean(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean of the elements over one axis, several, or (None) all."""
    return _reduce(_mean, x, axis, keepdims)


def reduce_variance(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The mean of (x - mean(x))**2 over one axis, several, or (None) all."""
    return _reduce(_variance, x, axis, keepdims)


def reduce_std(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The square root of `reduce_variance`. Where that is 0, the slope is taken as 0."""
    return flat_at_zero(sqrt, reduce_variance(x, axis, keepdims))


def reduce_prod(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The product of the elements over one axis, several, or (None) all."""
    return _reduce(_prod, x, axis, keepdims)


def reduce_max(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The greatest element over one axis, several, or (None) all.

    Raises:
        InvalidArgumentError: there are no elements.
    """
    return _reduce(_max, x, axis, keepdims)


def reduce_min(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """The least element over one axis, several, or (None) all; see `reduce_max`."""
    return _reduce(_min, x, axis, keepdims)


def reduce_all(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether all bools over one axis, several, or (None) all axes are true."""
    return _reduce(_all, x, axis, keepdims)


def reduce_any(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Whether one of the bools over one axis, several, or (None) all axes is true."""
    return _reduce(_any, x, axis, keepdims)


def logsumexp(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over one axis, several, or (None) all."""
    return _reduce(_logsumexp, x, axis, keepdims)


def euclidean_norm(x: Tensor, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """sqrt(sum(|x|**2)) over one axis, several, or (None) all."""
    return _reduce(_norm, x, axis, keepdims)


@define("CountNonzero", dtypes=ANY)
def _count_nonzero(
    x: TensorSpec, *, axis: Axes = None, keepdims: bool = False, dtype: str = "int32"
) -> TensorSpec:
    """How many elements are not zero (or not false, or not the empty string)."""
    return _reduced("CountNonzero", x, axis, keepdims, as_dtype(dtype))


@_count_nonzero.reference
def _count_nonzero_kernel(xp: Any, x: Array, *, axis: Axes, keepdims: bool, dtype: str) -> Array:
    zero = b"" if x.dtype.kind == "O" else 0
    return xp.sum(x != zero, axis=axis, keepdims=keepdims, dtype=dtype)


_count_nonzero.grad(no_gradient)


def count_nonzero(
    x: Tensor, axis: Axis = None, keepdims: bool = False, dtype: str = "int32"
) -> Tensor:
    """How many elements over one axis, several, or (None) all are not zero."""
    axes = normalize_axes("CountNonzero", axis, x.shape.rank)
    return _count_nonzero(x, axis=axes, keepdims=keepdims, dtype=dtype)


def _position(type: str, name: str, what: str) -> OpDef:
    @define(type, dtypes=REAL | BOOLEAN)
    def op(
        x: TensorSpec, *, axis: int | None = None, keepdims: bool = False, dtype: str = "int32"
    ) -> TensorSpec:
        axes = None if axis is None else (axis,)
        return _reduced(type, x, axes, keepdims, as_dtype(dtype))

    op.doc = f"The index along `axis`, or of the flattened `x`, of the {what} element."

    @op.reference
    def kernel(xp: Any, x: Array, *, axis: int | None, keepdims: bool, dtype: str) -> Array:
        if x.size == 0 and _count(x, None if axis is None else (axis,)) == 0:
            raise InvalidArgumentError(
                f"{type}: there is no element to choose from in {x.dtype}{list(x.shape)}",
                remedy="make sure that the axis is not empty",
            )
        found = getattr(xp, name)(x, axis=axis, keepdims=keepdims)
        return found.astype(dtype)

    op.grad(no_gradient)
    return op


_argmax = _position("ArgMax", "argmax", "first greatest")
_argmin = _position("ArgMin", "argmin", "first least")


def argmax(
    x: Tensor, axis: int | None = None, keepdims: bool = False, dtype: str = "int32"
) -> Tensor:
    """The index of the first greatest element along `axis`, or (None) of the flattened `x`.

    NaN counts as greatest.

    Raises:
        InvalidArgumentError: there are no elements.
    """
    if is_open_axis(axis):
        return _position_by(_argmax, x, axis, keepdims, dtype)
    return _argmax(x, axis=_one_axis("ArgMax", axis, x), keepdims=keepdims, dtype=dtype)


def argmin(
    x: Tensor, axis: int | None = None, keepdims: bool = False, dtype: str = "int32"
) -> Tensor:
    """The index of the first least element; as `argmax`. NaN counts as least."""
    if is_open_axis(axis):
        return _position_by(_argmin, x, axis, keepdims, dtype)
    return _argmin(x, axis=_one_axis("ArgMin", axis, x), keepdims=keepdims, dtype=dtype)


def _position_by(op: OpDef, x: Tensor, axis: Tensor, keepdims: bool, dtype: str) -> Tensor:
    """The index along an axis that a run knows."""
    y = op(to_front(x, axis), axis=0, keepdims=keepdims, dtype=dtype)
    return from_front(y, x, axis) if keepdims else y


def _one_axis(who: str, axis: int | None, x: Tensor) -> int | None:
    if axis is None or x.shape.rank is None:
        return axis
    return canonical_axis(who, axis, len(x.shape))
