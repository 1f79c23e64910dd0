"""Checks at run time: of numbers, and of conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...errors import InvalidArgumentError
from ...graph import BOOLEAN, INEXACT, Array, OpView, Tensor, TensorSpec
from .registry import Grads, define, no_gradient


@define("CheckNumerics", dtypes=INEXACT)
def _check_numerics(x: TensorSpec, *, message: str) -> TensorSpec:
    """`x` itself; InvalidArgumentError, beginning with `message`, if it has a NaN or infinity."""
    return x


@_check_numerics.reference
def _check_numerics_kernel(xp: Any, x: Array, *, message: str) -> Array:
    good = xp.isfinite(x)
    if not bool(xp.all(good)):
        bad = int(x.size - xp.count_nonzero(good))
        nans = int(xp.count_nonzero(xp.isnan(x)))
        place = tuple(int(i) for i in xp.unravel_index(int(xp.argmin(good)), x.shape))
        raise InvalidArgumentError(
            f"{message}: {nans} NaN and {bad - nans} infinite of {x.size} numbers, "
            f"the first is {x[place]} at {place}",
            remedy="check the input data, lower the learning rate, or clip the gradients",
        )
    return x


@_check_numerics.grad
def _check_numerics_grad(op: OpView, dy: Tensor) -> Grads:
    return (dy,)


def check_numerics(x: Tensor, message: str = "CheckNumerics") -> Tensor:
    """`x` itself, once it is known that all its numbers are finite.

    Args:
        x: a floating or complex tensor.
        message: the start of the error, best what `x` is.

    Raises:
        InvalidArgumentError: at run time, if there is a NaN or an infinity; says which and where.
    """
    return _check_numerics(x, message=message)


@define("Assert", dtypes={"condition": BOOLEAN}, stateful=True)
def assert_op(condition: TensorSpec, *data: TensorSpec, message: str, summarize: int) -> TensorSpec:
    """`condition` itself; InvalidArgumentError, with `message` and values of `data`, if any of its
    elements is false.
    """
    return condition


@assert_op.reference
def _assert_kernel(xp: Any, condition: Array, *data: Array, message: str, summarize: int) -> Array:
    if not bool(xp.all(condition)):
        shown = "".join(f"\n  {_summary(x, summarize)}" for x in data)
        raise InvalidArgumentError(f"Assert: {message}{shown}")
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
