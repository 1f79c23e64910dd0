"""`tf.assert_*`: operations that fail where something does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.registry import lookup

from .adapting import v1
from .maths import reduce_all
from .values import operands, tensor


def _checked(condition: Any, message: str, data: Any, shown: Any, summarize: Any) -> Any:
    found = check(
        reduce_all(condition),
        message,
        [tensor(d) for d in (shown if data is None else data)],
        summarize=summarize or 3,
    )
    return getattr(found, "op", None)


def _of_two(op: str, holds: str) -> Callable[..., Any]:
    @v1()
    def checked(
        x: Any,
        y: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        a, b = operands(x, y)
        text = message or f"expected x {holds} y for all elements"
        return _checked(lookup(op)(a, b), text, data, [a, b], summarize)

    checked.__doc__ = f"An operation that fails unless x {holds} y everywhere."
    return checked


def _of_one(op: str, holds: str) -> Callable[..., Any]:
    @v1()
    def checked(
        x: Any,
        data: Any = None,
        summarize: int | None = None,
        message: str | None = None,
        name: str | None = None,
    ) -> Any:
        a = tensor(x)
        text = message or f"expected x {holds} 0 for all elements"
        return _checked(lookup(op)(a, tensor(0, a.dtype)), text, data, [a], summarize)

    checked.__doc__ = f"An operation that fails unless x {holds} 0 everywhere."
    return checked


assert_equal = _of_two("Equal", "==")
assert_none_equal = _of_two("NotEqual", "!=")
assert_less = _of_two("Less", "<")
assert_less_equal = _of_two("LessEqual", "<=")
assert_greater = _of_two("Greater", ">")
assert_greater_equal = _of_two("GreaterEqual", ">=")
assert_negative = _of_one("Less", "<")
assert_positive = _of_one("Greater", ">")
assert_non_negative = _of_one("GreaterEqual", ">=")
assert_non_positive = _of_one("LessEqual", "<=")


@v1()
def assert_rank(x: Any, rank: int, message: str | None = None, **more: Any) -> None:
    """Refuse a tensor whose number of axes is known and another."""
    found = tensor(x).shape.rank
    if found is not None and found != rank:
        raise InvalidArgumentError(message or f"expected a tensor of rank {rank}, got {x!r}")


@v1()
def assert_rank_at_least(x: Any, rank: int, message: str | None = None, **more: Any) -> None:
    """Refuse a tensor whose number of axes is known and smaller."""
    found = tensor(x).shape.rank
    if found is not None and found < rank:
        raise InvalidArgumentError(message or f"expected at least rank {rank}, got {x!r}")


@v1()
def assert_type(tensor: Any, tf_type: Any, message: str | None = None) -> None:
    """Refuse a tensor of another element type."""
    if tensor.dtype != tf_type:
        raise TypeError(message or f"expected a tensor of {tf_type}, got {tensor!r}")
