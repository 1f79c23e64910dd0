"""Softmax and its logarithm, along one axis or several together."""

from __future__ import annotations

from typing import Any

from ... import ops
from ...graph import FLOATING, Array, Axes, OpView, Tensor, TensorSpec, canonical_axes
from ..core.arrays import greatest, rounded, summed, widened
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from ..math.arithmetic import multiply, subtract


@define("Softmax", dtypes=FLOATING)
def _softmax(x: TensorSpec, *, axes: tuple[int, ...]) -> TensorSpec:
    """y = exp(x) / (sum of exp(x) over `axes`)."""
    _check_axes("Softmax", x, axes)
    return x


@define("LogSoftmax", dtypes=FLOATING)
def _log_softmax(x: TensorSpec, *, axes: tuple[int, ...]) -> TensorSpec:
    """y = x - log(sum of exp(x) over `axes`)."""
    _check_axes("LogSoftmax", x, axes)
    return x


def _check_axes(who: str, x: TensorSpec, axes: tuple[int, ...]) -> None:
    if x.shape.rank is not None:
        canonical_axes(who, axes, len(x.shape))


def shifted(xp: Any, x: Array, axes: tuple[int, ...]) -> Array:
    """`x` less its maximum over `axes`, so that exp cannot overflow; half types in float32."""
    x = widened(xp, x)
    return x - greatest(xp, x, axes, True) if x.size else x


@_softmax.reference
def _softmax_kernel(xp: Any, x: Array, *, axes: tuple[int, ...]) -> Array:
    y = xp.exp(shifted(xp, x, axes))
    y /= summed(xp, y, axes, True)
    return rounded(y, x.dtype)


@_log_softmax.reference
def _log_softmax_kernel(xp: Any, x: Array, *, axes: tuple[int, ...]) -> Array:
    y = shifted(xp, x, axes)
    return rounded(y - xp.log(summed(xp, xp.exp(y), axes, True)), x.dtype)


@_softmax.grad
def _softmax_grad(op: OpView, dy: Tensor) -> Grads:
    return (through_softmax(op.outputs[0], dy, op.attrs["axes"]),)


def through_softmax(y: Tensor, dy: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient for the input of y = softmax(x): y * (dy - sum(y * dy))."""
    return multiply(y, subtract(dy, ops.reduce.reduce_sum(multiply(y, dy), axes, keepdims=True)))


@_log_softmax.grad
def _log_softmax_grad(op: OpView, dy: Tensor) -> Grads:
    return (through_log_softmax(op.outputs[0], dy, op.attrs["axes"]),)


def through_log_softmax(y: Tensor, dy: Tensor, axes: tuple[int, ...]) -> Tensor:
    """The gradient for the input of y = log_softmax(x): dy - exp(y) * sum(dy)."""
    return subtract(
        dy, multiply(ops.elementary.exp(y), ops.reduce.reduce_sum(dy, axes, keepdims=True))
    )


def _over(op: OpDef, x: Tensor, axis: Axes) -> Tensor:
    return op(x, axes=(axis,) if isinstance(axis, int) else tuple(axis))


def softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """exp(x) / sum(exp(x)): positive numbers that add up to 1 along `axis`.

    Args:
        x: a floating tensor; half types are computed in float32.
        axis: one axis, or several over which the sum runs together.

    Raises:
        ShapeError: an axis does not exist.
    """
    return _over(_softmax, x, axis)


def log_softmax(x: Tensor, axis: Axes = -1) -> Tensor:
    """log(softmax(x)) = x - log(sum(exp(x))), exact where softmax rounds to 0; see `softmax`."""
    return _over(_log_softmax, x, axis)
