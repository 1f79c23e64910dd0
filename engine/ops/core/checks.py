"""Checks at run time: of numbers, and of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError, NoGradientError, ShapeError
from ...graph import ANY, BOOLEAN, INEXACT, Array, OpView, Tensor, TensorShape, TensorSpec
from .convert import convert_to_tensor
from .late_checks import require
from .op_def import Grads
from .registry import define, no_gradient


@define("CheckNumerics", dtypes=INEXACT)
def _check_numerics(x: TensorSpec, *, message: str) -> TensorSpec:
    """`x` itself; InvalidArgumentError, beginning with `message`, if it has a NaN or infinity."""
    return x


@_check_numerics.reference
def _check_numerics_kernel(xp: Any, x: Array, *, message: str) -> Array:
    good = xp.isfinite(x)

    def not_finite() -> InvalidArgumentError:
        bad = int(x.size - xp.count_nonzero(good))
        nans = int(xp.count_nonzero(xp.isnan(x)))
        place = tuple(int(i) for i in xp.unravel_index(int(xp.argmin(good)), x.shape))
        return InvalidArgumentError(
            f"{message}: {nans} NaN and {bad - nans} infinite of {x.size} numbers, "
            f"the first is {x[place]} at {place}",
            remedy="check the input data, lower the learning rate, or clip the gradients",
        )

    require(xp, xp.all(good), not_finite)
    return x


@_check_numerics.grad
def _check_numerics_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)


def check_numerics(x: Any, message: str = "CheckNumerics", name: str | None = None) -> Tensor:
    """`x` itself, once it is known that all its numbers are finite.

    Args:
        x: a floating or complex tensor.
        message: the start of the error, best what `x` is.
        name: of the operation.

    Raises:
        InvalidArgumentError: at run time, if there is a NaN or an infinity; says which and where.

    Examples:
        >>> engine.check_numerics(engine.constant([1.0, 2.0]), "the loss")
        Tensor([1., 2.], shape=(2,), dtype=float32)
        >>> engine.check_numerics(engine.constant([1.0, float("nan")]), "the loss")
        Traceback (most recent call last):
            ...
        laminar.engine.errors.InvalidArgumentError: the loss: 1 NaN and 0 infinite of 2 numbers, ...
    """
    return _check_numerics(convert_to_tensor(x), name=name, message=message)


@define("Assert", dtypes={"condition": BOOLEAN}, stateful=True)
def assert_op(condition: TensorSpec, *data: TensorSpec, message: str, summarize: int) -> TensorSpec:
    """`condition` itself; InvalidArgumentError, with `message` and values of `data`, if any of its
    elements is false.
    """
    return condition


@assert_op.reference
def _assert_kernel(xp: Any, condition: Array, *data: Array, message: str, summarize: int) -> Array:
    def failed() -> InvalidArgumentError:
        shown = "".join(f"\n  {_summary(x, summarize)}" for x in data)
        return InvalidArgumentError(f"Assert: {message}{shown}")

    require(xp, xp.all(condition), failed)
    return condition


def _summary(x: Array, count: int) -> str:
    head = ", ".join(str(v) for v in x.reshape(-1)[:count].tolist())
    return f"{x.dtype}{list(x.shape)}: {head}{', ...' if x.size > count else ''}"


assert_op.grad(no_gradient)


def check(
    condition: Tensor, message: str, data: Sequence[Tensor] = (), *, summarize: int = 3
) -> Tensor:
    """Stop the step unless all elements of the bool `condition` hold.

    Args:
        condition: a bool tensor.
        message: what was expected.
        data: tensors of which the error shows the values.
        summarize: how many values of each.

    Returns:
        `condition`, once it is known to hold: in a graph, something to depend on.

    Raises:
        InvalidArgumentError: at run time, if an element is false.
    """
    return assert_op(condition, *data, message=message, summarize=summarize)


@define("PreventGradient", dtypes=ANY)
def prevent_gradient(x: TensorSpec, *, message: str = "") -> TensorSpec:
    """`x` itself; to ask for its gradient is a NoGradientError, with the message."""
    return x


@prevent_gradient.reference
def _prevent_gradient_kernel(xp: Any, x: Array, *, message: str) -> Array:
    return x


@prevent_gradient.grad
def _prevent_gradient_grad(op: OpView, dy: Tensor) -> Grads:
    reason = op.attrs["message"] or "no reason"
    raise NoGradientError(f"PreventGradient: this gradient is explicitly disabled: {reason}")


@define("EnsureShape", dtypes=ANY)
def _ensure_shape(x: TensorSpec, *, shape: TensorShape) -> TensorSpec:
    """`x` itself, once it is known to have the shape, as far as that is given."""
    return TensorSpec(TensorShape(shape).merge_with(x.shape), x.dtype)


@_ensure_shape.reference
def _ensure_shape_kernel(xp: Any, x: Array, *, shape: TensorShape) -> Array:
    if not TensorShape(shape).is_compatible_with(x.shape):
        raise ShapeError(f"EnsureShape: expected {TensorShape(shape)}, got {list(x.shape)}")
    return x


@_ensure_shape.grad
def _ensure_shape_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)


def ensure_shape(x: Any, shape: Any, name: str | None = None) -> Tensor:
    """`x` itself, of a shape that is checked: while the graph is built, and when it is run.

    Raises:
        ShapeError: it has another one.
    """
    return _ensure_shape(convert_to_tensor(x), name=name, shape=TensorShape(shape))
