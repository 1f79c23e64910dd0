"""`tf.assert_*`: operations that fail where something does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import NUMERIC, Tensor, as_dtype
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .maths import reduce_all
from .values import operands, static, symbol, tensor


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


@v1()
def assert_rank_in(x: Any, ranks: Any, message: str | None = None, **more: Any) -> None:
    """Refuse a tensor whose number of axes is known and none of these."""
    found = tensor(x).shape.rank
    allowed = [int(static(rank)) for rank in ranks]
    if found is not None and found not in allowed:
        raise InvalidArgumentError(message or f"expected one of the ranks {allowed}, got {x!r}")


@v1()
def assert_scalar(tensor: Any, name: str | None = None, message: str | None = None) -> Any:
    """The tensor itself; one that is known to have axes is refused."""
    x = symbol(tensor)
    if x.shape.rank not in (None, 0):
        raise InvalidArgumentError(message or f"expected a scalar, got {x!r}")
    return x


@v1()
def assert_integer(x: Any, message: str | None = None) -> None:
    """Refuse a tensor of other than whole numbers."""
    found = tensor(x)
    if not found.dtype.is_integer:
        raise TypeError(message or f"expected whole numbers, got {found!r}")


@v1()
def assert_near(
    x: Any,
    y: Any,
    rtol: Any = None,
    atol: Any = None,
    data: Any = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> Any:
    """An operation that fails unless |x - y| <= atol + rtol * |y| everywhere.

    Both are ten times the distance of 1 to the next number, where they are not given.
    """
    a, b = operands(x, y)
    eps = 10 * float(np.finfo(a.dtype.numpy).eps)
    least, share = (tensor(eps if v is None else v, b.dtype) for v in (atol, rtol))
    apart = lookup("Abs")(lookup("Sub")(a, b))
    allowed = lookup("Add")(least, lookup("Mul")(share, lookup("Abs")(b)))
    condition = lookup("LessEqual")(apart, allowed)
    return _checked(condition, message or "expected x and y to be near", data, [a, b], summarize)


def assert_proper_iterable(values: Any) -> None:
    """Refuse what is not several things: a tensor, an array, a string or no iterable."""
    if isinstance(values, str | bytes | np.ndarray | Tensor | SparseValues):
        raise TypeError(f"expected a list of things, got the one {type(values).__name__}")
    if not hasattr(values, "__iter__"):
        raise TypeError(f"expected something to iterate over, got {type(values).__name__}")


def assert_same_float_dtype(tensors: Any = None, dtype: Any = None) -> Any:
    """The one floating type of tensors, float32 where there are none.

    Raises:
        ValueError: their types differ, or are not floating.
    """
    kinds = {as_dtype(t.dtype) for t in tensors or () if t is not None}
    wanted = as_dtype(dtype) if dtype is not None else next(iter(kinds), as_dtype("float32"))
    if kinds - {wanted} or not wanted.is_floating:
        raise ValueError(f"expected tensors of one floating type, got {sorted({*kinds, wanted})}")
    return wanted


def is_numeric_tensor(tensor: Any) -> bool:
    """Whether it is a tensor of numbers."""
    return isinstance(tensor, Tensor) and tensor.dtype in NUMERIC


def _pairwise(op: str) -> Callable[..., Any]:
    @v1()
    def holds(x: Any) -> Any:
        flat = lookup("Reshape")(symbol(x), shape=(-1,))
        return reduce_all(lookup(op)(flat[:-1], flat[1:]))

    holds.__doc__ = "Whether each element, in row order, is not above the next, or below it."
    return holds


is_non_decreasing = _pairwise("LessEqual")
is_strictly_increasing = _pairwise("Less")
