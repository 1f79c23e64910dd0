"""Loops of a number of iterations that is known: in Python on eager values, else one Scan."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import INTEGER, GraphTensor, Tensor, TensorSpec, int32
from ..ops.array.index import get_item
from ..ops.array.join import stack
from ..ops.array.shape import dim_of
from ..ops.control.structured import SCAN
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.entries import whole
from ..ops.math.arithmetic import add, subtract
from ..ops.math.cast import cast
from ..tree import flatten, map_structure, pack_sequence_as
from .carried import flows_of, with_arrays
from .func_graph import FuncGraph
from .loop_tracing import Leaves, argument_names, as_value, pack_leaves, trace_body
from .subgraph import (
    Subgraph,
    as_output,
    graph_for,
    inside,
    same_structure,
    share_captures,
)


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any = None,
    length: Any = None,
    *,
    reverse: bool = False,
    unroll: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """Carry a value through a sequence: (carry, y) = f(carry, x) for each x of `xs`.

    On eager values this is a Python loop; while a graph is built, it is one operation, for
    sequences of any length.

    Args:
        f: one step; the carry that it returns nests as `init`, with the same types and shapes.
        init: the first carry, a structure of tensors.
        xs: a tensor, or a structure of them, whose slices along the first axis are the x; None
            passes None, `length` times.
        length: how many steps, where `xs` is None; a number or scalar.
        reverse: whether to go from the last slice to the first.
        unroll: write the steps out in the graph; their number must be known.

    Returns:
        The last carry, and the y stacked in the order of `xs` (None where f gives None).

    Raises:
        InvalidArgumentError: neither `xs` nor `length`, or they contradict each other.
        DTypeError, ShapeError: `f` changes the type or shape of a part of the carry, or the first
            axes of `xs` differ.

    Examples:
        >>> last, sums = engine.scan(
        ...     lambda c, x: (c + x, c + x), engine.constant(0), engine.constant([1, 2, 3])
        ... )
        >>> sums
        Tensor([1, 3, 6], shape=(3,), dtype=int32)
    """
    return _scan("scan", f, init, xs, length, reverse=reverse, unroll=unroll, name=name)


def _scan(
    who: str,
    f: Callable[[Any, Any], tuple[Any, Any]],
    init: Any,
    xs: Any,
    length: Any,
    *,
    reverse: bool = False,
    unroll: bool = False,
    name: str | None = None,
) -> tuple[Any, Any]:
    """`scan` for `who`, which is what errors name."""
    rebuild = with_arrays(init)
    if rebuild is not None:

        def step_on_flows(carry: Any, x: Any) -> tuple[Any, Any]:
            carry, y = f(rebuild(carry), x)
            return flows_of(carry), y

        begin = flows_of(init)
        carry, ys = _scan(
            who, step_on_flows, begin, xs, length, reverse=reverse, unroll=unroll, name=name
        )
        return rebuild(carry), ys
    first, items = Leaves.of(init, "init"), Leaves.of(xs, "xs")
    size = _size(who, items, length)
    outer = graph_for(who, [*first.tensors, *items.tensors, length])
    if outer is None or unroll:
        if size is None:
            raise InvalidArgumentError(
                f"{who}: the number of steps must be known where they are written out",
                remedy="leave unroll=False",
            )
        carry, ys = first.pack(first.tensors), []
        for i in reversed(range(size)) if reverse else range(size):
            carry, y = f(carry, items.pack([get_item(x, i) for x in items.tensors]))
            said = f"{who}: the carry that f returns does not match init"
            leaves = same_structure(init, carry, said)
            carry = pack_sequence_as(init, [as_value(leaf) for leaf in leaves])
            ys.append(y)
        if reverse:
            ys.reverse()
        return carry, _stack(ys) if ys else None
    with inside(outer):
        count = len(first.tensors)

        def step(graph: FuncGraph, tensors: list[GraphTensor]) -> tuple[Any, Any]:
            found = f(first.pack(tensors[:count]), items.pack(tensors[count:]))
            if not isinstance(found, tuple | list) or len(found) != 2:
                raise InvalidArgumentError(
                    f"{who}: f must return a pair (carry, y), got {found!r}",
                    remedy="return (carry, None) where there is no y",
                )
            return found[0], found[1]

        sliced = [TensorSpec(s.shape[1:], s.dtype) for s in items.specs]
        more = list(zip(argument_names(items.names), sliced, strict=True))
        traced = trace_body(who, outer, first, step, [None] * count, more)
        y_leaves = [
            None if y is None else as_output(traced.graph, y, None, f"{who}: a y that f returns")
            for y in flatten(traced.extra)
        ]
        given, (captured,) = share_captures(outer, [traced.graph], every_run=True)
        body = Subgraph(
            traced.graph,
            [*traced.graph.arguments[: count + len(sliced)], *captured],
            [*traced.outputs, *(y for y in y_leaves if y is not None)],
            traced.graph.effects,
        )
        attrs = {
            "body": body,
            "carries": count,
            "slices": len(sliced),
            "reverse": bool(reverse),
            "size": size,
        }
        steps = _steps(size, items, length)
        inputs = [steps, *first.tensors, *items.tensors, *given]
        results = apply(SCAN[body.stateful], inputs, attrs, name or who)
        return first.pack(results[:count]), pack_leaves(traced.extra, results[count:])


def _size(who: str, items: Leaves, length: Any) -> int | None:
    """The number of slices of all `items`, None where it is known at run time only.

    Raises:
        InvalidArgumentError: there is nothing to tell it, or `length` is another.
        ShapeError: sizes differ, or something has no first axis.
    """
    if not items.tensors:
        if length is None:
            raise InvalidArgumentError(f"{who}: give xs or length")
        return None if isinstance(length, GraphTensor) else max(_whole(who, length), 0)
    for name, spec in zip(items.names, items.specs, strict=True):
        if spec.shape.rank is None or not len(spec.shape):
            raise ShapeError(
                f"{who}: {name} is {spec}, and has no first axis to go along",
                remedy="give it one, and the tensor a shape if its rank is unknown",
            )
    sizes = sorted({s.shape[0] for s in items.specs if s.shape[0] is not None})
    if len(sizes) > 1:
        raise ShapeError(f"{who}: the first axes must have one size, got {sizes}")
    size = sizes[0] if sizes else None
    given = None if length is None or isinstance(length, GraphTensor) else _whole(who, length)
    if None not in (given, size) and given != size:
        raise InvalidArgumentError(f"{who}: length is {given}, but xs has {size} slices")
    return size


def _whole(who: str, length: Any) -> int:
    try:
        return operator.index(length)
    except TypeError:
        raise DTypeError(f"{who}: length must be an integer, got {length!r}") from None


def _steps(size: int | None, items: Leaves, length: Any) -> Tensor:
    if size is not None:
        return convert_to_tensor(size)
    return dim_of(items.tensors[0], axis=0) if length is None else convert_to_tensor(length)


def _stack(results: Sequence[Any]) -> Any:
    """Results of one structure, leaf by leaf, as the slices of a new first axis."""

    def stacked(*leaves: Any) -> Any:
        if leaves[0] is None:
            return None
        return stack([convert_to_tensor(leaf) for leaf in leaves])

    return map_structure(stacked, *results)


def fori_loop(
    lower: Any,
    upper: Any,
    body: Callable[[Any, Any], Any],
    init: Any,
    *,
    name: str | None = None,
) -> Any:
    """Apply value = body(i, value) for i from `lower` to `upper` - 1, from `init` on.

    Args:
        lower, upper: integers, or scalars that a graph computes.
        body: takes the number of the iteration (a scalar in a graph) and the value.
        init: the first value, a structure of tensors.

    Raises:
        DTypeError: a bound is no integer.
        DTypeError, ShapeError: `body` changes the type or shape of a part of the value.

    Examples:
        >>> engine.fori_loop(0, 3, lambda i, x: x * 2, engine.constant(1))
        Tensor(8, shape=(), dtype=int32)
    """
    if graph_for("fori_loop", [lower, upper, *flatten(init)]) is None:
        value = init
        first, end = (whole("fori_loop", "a bound", n) for n in (lower, upper))
        for i in range(first, end):
            value = body(i, value)
        return value
    bounds = []
    for bound in (lower, upper):
        tensor = convert_to_tensor(bound)
        if tensor.dtype not in INTEGER:
            raise DTypeError(f"fori_loop: a bound must be an integer, got {tensor.spec}")
        bounds.append(tensor if tensor.dtype == int32 else cast(tensor, int32))
    plain = isinstance(lower, int) and isinstance(upper, int)
    length = max(upper - lower, 0) if plain else subtract(bounds[1], bounds[0])

    def step(carry: Any, _: None) -> tuple[Any, None]:
        i, value = carry
        return (add(i, convert_to_tensor(1)), body(i, value)), None

    (_, value), _ = _scan("fori_loop", step, (bounds[0], init), None, length, name=name)
    return value


def map_slices(f: Callable[[Any], Any], xs: Any, *, name: str | None = None) -> Any:
    """`f` of each slice of `xs` along the first axis, stacked.

    Args:
        f: takes a slice (for a structure, a structure of slices), returns tensors.
        xs: a tensor, or a structure of tensors with first axes of one size.

    Raises:
        ShapeError: the first axes differ; or they are empty, and the form of the result is unknown
            because nothing is traced.

    Examples:
        >>> engine.map_slices(lambda row: row * 2, engine.constant([[1, 2], [3, 4]]))
        Tensor([[2, 4],
                [6, 8]], shape=(2, 2), dtype=int32)
    """
    items = Leaves.of(xs, "xs")
    if graph_for("map", items.tensors) is None and _size("map", items, None) == 0:
        raise ShapeError("map: the first axis is empty, so there is nothing to apply f to")
    _, ys = _scan("map", lambda _, x: ((), f(x)), (), xs, None, name=name)
    return ys
