"""Running sums, products and their like along one axis.

Each op includes element i in result i; `exclusive` results are these, shifted by one, and begin
with that of no elements. `reverse` runs from the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...errors import ShapeError
from ...graph import FLOATING, INEXACT, NUMERIC, Array, OpView, Tensor, TensorSpec, canonical_axis
from ..array.open_axis import from_front, is_open_axis, like, to_front
from ..core.arrays import computing_dtype
from ..core.basic import zeros_like
from ..core.convert import convert_to_tensor
from ..core.entries import known_value
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from .arithmetic import conjugate, multiply, negative, subtract
from .compare import equal, where
from .elementary import exp, expm1


def _rule(who: str, x: TensorSpec, axis: int) -> TensorSpec:
    if x.shape.rank is not None:
        canonical_axis(who, axis, len(x.shape))
    return TensorSpec(x.shape, x.dtype)


def _axis(who: str, x: Tensor, axis: int) -> int:
    return axis if x.shape.rank is None else canonical_axis(who, axis, len(x.shape))


def _flipped(xp: Any, x: Array, axis: int, reverse: bool) -> Array:
    return xp.flip(x, axis) if reverse else x


def _placed(xp: Any, y: Array, axis: int, reverse: bool, exclusive: bool, first: float) -> Array:
    """Running results where they belong: shifted if they leave their own element out."""
    y = _flipped(xp, y, axis, reverse)
    return _shifted(xp, y, axis, reverse, first) if exclusive else y


def _cut(x: Array, axis: int, start: int | None, stop: int | None) -> Array:
    """The part x[start:stop] along an axis."""
    index = [slice(None)] * x.ndim
    index[axis] = slice(start, stop)
    return x[tuple(index)]


def _scan(
    xp: Any, combine: Callable[..., tuple[Array, ...]], xs: tuple[Array, ...], axis: int
) -> tuple[Array, ...]:
    """Running results of an associative `combine(earlier, later)`, in log2(size) steps.

    Source: Hillis and Steele, "Data parallel algorithms", CACM 29 (1986), "Sum of an array".
    """
    size, step = xs[0].shape[axis], 1
    while step < size:
        earlier = [_cut(x, axis, None, -step) for x in xs]
        later = [_cut(x, axis, step, None) for x in xs]
        xs = tuple(
            xp.concatenate([_cut(x, axis, None, step), y], axis)
            for x, y in zip(xs, combine(*earlier, *later), strict=True)
        )
        step *= 2
    return xs


@define("Shift", dtypes=NUMERIC)
def shift(x: TensorSpec, *, axis: int, reverse: bool = False, fill: float = 0.0) -> TensorSpec:
    """y[0] = fill and y[i] = x[i - 1] along `axis`; reversed, y[-1] = fill and y[i] = x[i + 1]."""
    return _rule("Shift", x, axis)


@shift.reference
def _shift_kernel(xp: Any, x: Array, *, axis: int, reverse: bool, fill: float) -> Array:
    return _shifted(xp, x, axis, reverse, fill)


def _shifted(xp: Any, x: Array, axis: int, reverse: bool, fill: float) -> Array:
    y = xp.full_like(x, fill)
    if reverse:
        _cut(y, axis, None, -1)[...] = _cut(x, axis, 1, None)
    else:
        _cut(y, axis, 1, None)[...] = _cut(x, axis, None, -1)
    return y


@shift.grad
def _shift_grad(op: OpView, dy: Tensor) -> Grads:
    return (shift(dy, axis=op.attrs["axis"], reverse=not op.attrs["reverse"]),)


@define("LinearRecurrence", dtypes=INEXACT)
def linear_recurrence(
    factor: TensorSpec, x: TensorSpec, *, axis: int, reverse: bool = False
) -> TensorSpec:
    """y[i] = x[i] + factor[i] * y[i - 1] along `axis`; reversed, with y[i + 1].

    `factor` and `x` have one shape; nothing stands before the first element.
    """
    if not factor.shape.is_compatible_with(x.shape):
        raise ShapeError(
            f"LinearRecurrence: factor and x must have one shape, got {factor} and {x}",
            remedy="broadcast one of them first",
        )
    shape = factor.shape.merge_with(x.shape)
    return _rule("LinearRecurrence", TensorSpec(shape, x.dtype), axis)


@linear_recurrence.reference
def _linear_recurrence_kernel(
    xp: Any, factor: Array, x: Array, *, axis: int, reverse: bool
) -> Array:
    # (a, x) stands for y -> x + a * y; doing first one, then another, is again of that form.
    def combine(a: Array, x: Array, b: Array, y: Array) -> tuple[Array, Array]:
        return a * b, y + b * x

    wide = computing_dtype(xp, x)
    given = tuple(_flipped(xp, v.astype(wide, copy=False), axis, reverse) for v in (factor, x))
    y = _scan(xp, combine, given, axis)[1]
    return _flipped(xp, y, axis, reverse).astype(x.dtype, copy=False)


@linear_recurrence.grad
def _linear_recurrence_grad(op: OpView, dy: Tensor) -> Grads:
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    factor = conjugate(op.inputs[0])
    following = shift(factor, axis=axis, reverse=not reverse)
    dx = linear_recurrence(following, dy, axis=axis, reverse=not reverse)
    before = shift(op.outputs[0], axis=axis, reverse=reverse)
    return multiply(dx, conjugate(before)), dx


@define("Cumsum", dtypes=NUMERIC)
def _cumsum(
    x: TensorSpec, *, axis: int, reverse: bool = False, exclusive: bool = False
) -> TensorSpec:
    """y[i] = x[0] + ... + x[i] along `axis`."""
    return _rule("Cumsum", x, axis)


@_cumsum.reference
def _cumsum_kernel(xp: Any, x: Array, *, axis: int, reverse: bool, exclusive: bool) -> Array:
    y = xp.cumsum(_flipped(xp, x, axis, reverse), axis, dtype=computing_dtype(xp, x))
    return _placed(xp, y, axis, reverse, exclusive, 0.0).astype(x.dtype, copy=False)


@_cumsum.grad
def _cumsum_grad(op: OpView, dy: Tensor) -> Grads:
    axis, reverse, exclusive = (op.attrs[name] for name in ("axis", "reverse", "exclusive"))
    return (_cumsum(dy, axis=axis, reverse=not reverse, exclusive=exclusive),)


@define("Cumprod", dtypes=NUMERIC)
def _cumprod(
    x: TensorSpec, *, axis: int, reverse: bool = False, exclusive: bool = False
) -> TensorSpec:
    """y[i] = x[0] * ... * x[i] along `axis`."""
    return _rule("Cumprod", x, axis)


@_cumprod.reference
def _cumprod_kernel(xp: Any, x: Array, *, axis: int, reverse: bool, exclusive: bool) -> Array:
    y = xp.cumprod(_flipped(xp, x, axis, reverse), axis, dtype=computing_dtype(xp, x))
    return _placed(xp, y, axis, reverse, exclusive, 1.0).astype(x.dtype, copy=False)


@_cumprod.grad
def _cumprod_grad(op: OpView, dy: Tensor) -> Grads:
    # dx[i] = (x[0] ... x[i-1]) * (dy[i] + x[i+1] * (dy[i+1] + x[i+2] * ...)): no division by x
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    x = conjugate(op.inputs[0])
    before = conjugate(op.outputs[0])
    if op.attrs["exclusive"]:
        dy = shift(dy, axis=axis, reverse=not reverse)
    else:
        before = shift(before, axis=axis, reverse=reverse, fill=1.0)
    following = shift(x, axis=axis, reverse=not reverse)
    after = linear_recurrence(following, dy, axis=axis, reverse=not reverse)
    return (multiply(before, after),)


@define("LogCumsumExp", dtypes=FLOATING)
def _logcumsumexp(
    x: TensorSpec, *, axis: int, reverse: bool = False, exclusive: bool = False
) -> TensorSpec:
    """y[i] = log(exp(x[0]) + ... + exp(x[i])) along `axis`, without overflow."""
    return _rule("LogCumsumExp", x, axis)


@_logcumsumexp.reference
def _logcumsumexp_kernel(xp: Any, x: Array, *, axis: int, reverse: bool, exclusive: bool) -> Array:
    def combine(a: Array, b: Array) -> tuple[Array]:
        return (xp.logaddexp(a, b),)

    given = _flipped(xp, x.astype(computing_dtype(xp, x), copy=False), axis, reverse)
    (y,) = _scan(xp, combine, (given,), axis)
    return _placed(xp, y, axis, reverse, exclusive, -math.inf).astype(x.dtype, copy=False)


@_logcumsumexp.grad
def _logcumsumexp_grad(op: OpView, dy: Tensor) -> Grads:
    # dx[i] = exp(x[i] - y[i]) * (sum over k >= i of dy[k] * exp(y[i] - y[k])). The sum obeys a
    # recurrence with the factor exp(y[i] - y[i+1]) = 1 - exp(x[i+1] - y[i+1]), which is <= 1.
    (x,), (y,) = op.inputs, op.outputs
    axis, reverse = op.attrs["axis"], op.attrs["reverse"]
    if op.attrs["exclusive"]:
        y = _logcumsumexp(x, axis=axis, reverse=reverse)
        dy = shift(dy, axis=axis, reverse=not reverse)
    gap = where(equal(x, y), zeros_like(x), subtract(x, y))  # also where both are infinite
    following = shift(negative(expm1(gap)), axis=axis, reverse=not reverse)
    after = linear_recurrence(following, dy, axis=axis, reverse=not reverse)
    return (multiply(exp(gap), after),)


def _running(
    op: OpDef, x: Any, axis: Any, exclusive: bool, reverse: bool, name: str | None
) -> Tensor:
    x = convert_to_tensor(x)
    if is_open_axis(axis):
        y = op(to_front(x, axis), name=name, axis=0, reverse=reverse, exclusive=exclusive)
        return like(from_front(y, x, axis), x)
    axis = _axis(op.type, x, known_value(axis))
    return op(x, name=name, axis=axis, reverse=reverse, exclusive=exclusive)


def cumsum(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """y[i] = x[0] + ... + x[i] along `axis`.

    Args:
        x: numbers; integers keep their dtype.
        axis: the axis to run along.
        exclusive: leave x[i] out of y[i], so that y[0] = 0.
        reverse: run from the end: y[i] = x[i] + ... + x[-1].
        name: of the operation.

    Raises:
        ShapeError: `x` has no such axis.

    Examples:
        >>> engine.cumsum(engine.constant([1, 2, 3]), reverse=True)
        Tensor([6, 5, 3], shape=(3,), dtype=int32)
    """
    return _running(_cumsum, x, axis, exclusive, reverse, name)


def cumprod(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """y[i] = x[0] * ... * x[i] along `axis`; as `cumsum`, and y[0] = 1 when exclusive.

    Args:
        x: numbers; integers keep their dtype.
        axis: the axis to run along.
        exclusive: leave x[i] out of y[i], so that y[0] = 1.
        reverse: run from the end: y[i] = x[i] * ... * x[-1].
        name: of the operation.

    Raises:
        ShapeError: `x` has no such axis.
        DTypeError: `x` holds bools.

    Examples:
        >>> engine.cumprod(engine.constant([1, 2, 3]), exclusive=True)
        Tensor([1, 1, 2], shape=(3,), dtype=int32)
    """
    return _running(_cumprod, x, axis, exclusive, reverse, name)


def logcumsumexp(
    x: Any,
    axis: int = 0,
    exclusive: bool = False,
    reverse: bool = False,
    name: str | None = None,
) -> Tensor:
    """y[i] = log(exp(x[0]) + ... + exp(x[i])); as `cumsum`, and y[0] = -inf when exclusive.

    Args:
        x: floats.
        axis: the axis to run along.
        exclusive: leave x[i] out of y[i], so that y[0] = -inf.
        reverse: run from the end.
        name: of the operation.

    Raises:
        ShapeError: `x` has no such axis.
        DTypeError: `x` holds no floats.

    Examples:
        >>> engine.logcumsumexp(engine.constant([0.0, 0.0, 0.0]))
        Tensor([0.    , 0.6931, 1.0986], shape=(3,), dtype=float32)
    """
    return _running(_logcumsumexp, x, axis, exclusive, reverse, name)
