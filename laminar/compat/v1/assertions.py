"""`tf.assert_*`: operations that fail where something does not hold."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import NUMERIC, GraphTensor, Tensor, as_dtype
from laminar.engine.ops.core.basic import no_op
from laminar.engine.ops.core.checks import check
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .flow import group
from .maths import reduce_all
from .values import operands, static, symbol, tensor


def _checked(condition: Any, message: str, data: Any, shown: Any, summarize: Any) -> Any:
    holds = _known(condition)
    if holds is not None and not np.all(holds):
        raise InvalidArgumentError(f"{message}; got {', '.join(map(repr, shown))}")
    found = check(
        reduce_all(condition),
        message,
        [tensor(d) for d in (shown if data is None else data)],
        summarize=summarize or 3,
    )
    return getattr(found, "op", None)


_ON_NUMBERS: dict[str, Callable[..., Any]] = {
    "Equal": np.equal,
    "NotEqual": np.not_equal,
    "Less": np.less,
    "LessEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterEqual": np.greater_equal,
}


def _known(condition: Any) -> Any:
    """What a comparison of constants of a graph gives, None of other tensors."""
    if not isinstance(condition, GraphTensor):
        return None
    compare = _ON_NUMBERS.get(condition.op.type)
    sides = [static(x) for x in condition.op.inputs]
    if compare is None or any(isinstance(x, Tensor) for x in sides):
        return None
    return compare(*sides)


def _of_ranks(x: Tensor, ranks: list[int], op: str, message: str) -> Any:
    """The operation that fails unless the number of axes is one of `ranks`, or at least it."""
    found = x.shape.rank
    if found is not None:
        if not any(_ON_NUMBERS[op](found, rank) for rank in ranks):
            raise InvalidArgumentError(f"{message}, got {x!r}")
        return no_op() if isinstance(x, GraphTensor) else None
    own = lookup("Rank")(x)
    held = [lookup(op)(own, tensor(rank, own.dtype)) for rank in ranks]
    condition = held[0]
    for other in held[1:]:
        condition = lookup("LogicalOr")(condition, other)
    return _checked(condition, message, None, [own], None)


def _rank_of(rank: Any) -> int:
    found = static(rank)
    if type(found) is not int:
        raise TypeError(f"a rank must be a whole number that is known, got {rank!r}")
    return found


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
def assert_rank(x: Any, rank: Any, message: str | None = None, **more: Any) -> Any:
    """An operation that fails unless a tensor has so many axes; refused where they are known."""
    text = message or f"expected a tensor of rank {rank}"
    return _of_ranks(symbol(x), [_rank_of(rank)], "Equal", text)


@v1()
def assert_rank_at_least(x: Any, rank: Any, message: str | None = None, **more: Any) -> Any:
    """An operation that fails where a tensor has fewer axes; refused where they are known."""
    text = message or f"expected a tensor of at least rank {rank}"
    return _of_ranks(symbol(x), [_rank_of(rank)], "GreaterEqual", text)


@v1()
def assert_type(tensor: Any, tf_type: Any, message: str | None = None) -> None:
    """Refuse a tensor of another element type."""
    if tensor.dtype != tf_type:
        raise TypeError(message or f"expected a tensor of {tf_type}, got {tensor!r}")


@v1()
def assert_rank_in(x: Any, ranks: Any, message: str | None = None, **more: Any) -> Any:
    """An operation that fails unless the rank is one of these; refused where it is known."""
    allowed = [_rank_of(rank) for rank in ranks]
    text = message or f"expected a tensor of one of the ranks {allowed}"
    return _of_ranks(symbol(x), allowed, "Equal", text)


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


@v1()
def assert_shapes(
    shapes: Any, data: Any = None, summarize: int | None = None, message: str | None = None
) -> Any:
    """An operation that fails where sizes of tensors are not as told.

    Args:
        shapes: (tensor, sizes) pairs, or a dictionary; a size is a number, None for any, or a name,
            which stands for one size everywhere.
        data: what an error shows; accepted.
        summarize: accepted.
        message: what an error says first.

    Raises:
        ValueError: it is known that they are not.
    """
    known: dict[Any, int] = {}
    first: dict[Any, Any] = {}
    checks = []
    who = message or "assert_shapes"
    for x, sizes in shapes.items() if isinstance(shapes, dict) else shapes:
        t = symbol(x)
        wanted = [sizes] if isinstance(sizes, int | str) else list(sizes)
        if t.shape.rank is not None and t.shape.rank != len(wanted):
            raise ValueError(f"{who}: {t.spec} has {t.shape.rank} axes, expected {len(wanted)}")
        for axis, size in enumerate(wanted):
            found = None if t.shape.rank is None else t.shape[axis]
            if size is None:
                continue
            expected = size if isinstance(size, int) else known.get(size)
            if found is not None:
                if expected is not None and expected != found:
                    raise ValueError(
                        f"{who}: axis {axis} of {t.spec} is {found}, expected {size} = {expected}"
                    )
                known.setdefault(size, found)
            own = lookup("Dim")(t, axis=axis)
            other = first.setdefault(size, symbol(size) if isinstance(size, int) else own)
            if found is None or expected is None:
                holds = lookup("Equal")(own, lookup("Cast")(other, dtype=own.dtype))
                text = f"{who}: axis {axis} is not {size!r}"
                checks.append(_checked(holds, text, None, [own], summarize))
    return group(*[c for c in checks if c is not None])
