"""Conditions: Python's choice on eager values, one operation while a graph is built."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..errors import DTypeError, InvalidArgumentError, ShapeError
from ..graph import INTEGER, EagerTensor, GraphTensor, Operation, Tensor, bool_, int32
from ..ops.control.structured import CASE
from ..ops.core.basic import constant
from ..ops.core.checks import assert_op
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.math.arithmetic import add
from ..ops.math.cast import cast
from ..ops.math.compare import less_equal, logical_and
from ..tree import map_structure
from .carried import flows_of, with_arrays
from .func_graph import FuncGraph
from .subgraph import (
    Subgraph,
    as_output,
    graph_for,
    inside,
    names_of,
    one_element,
    same_structure,
    share_captures,
    trace,
)


def cond(
    pred: Any,
    true_fn: Callable[[], Any],
    false_fn: Callable[[], Any],
    *,
    name: str | None = None,
) -> Any:
    """The result of `true_fn()` if `pred` holds, of `false_fn()` if not.

    On an eager value this is Python's choice; on a tensor of a graph, one operation of which only
    the branch that is taken runs.

    Args:
        pred: one bool or number, of any number of axes.
        true_fn, false_fn: return structures of tensors (and None) of one form, with the same
            dtypes; where shapes differ, what they have in common is known of the result. They may
            use tensors and variables from outside, and update variables. In a graph they may end
            in an operation (or, in one of them, None) instead of a tensor: the result is then the
            operation that runs the one that is taken, and so it is in a session's graph where both
            return None.

    Raises:
        InvalidArgumentError: the structures differ, or `pred` has several elements.
        DTypeError: an output has another type in each branch.

    Examples:
        >>> x = engine.constant(3.0)
        >>> engine.cond(x > 2, lambda: x * 10, lambda: x)
        Tensor(30., shape=(), dtype=float32)
    """
    tensor = _scalar("cond", "the condition", pred)
    if not isinstance(tensor, GraphTensor):
        return true_fn() if tensor else false_fn()
    if tensor.dtype != bool_:
        tensor = cast(tensor, bool_)
    return choose("cond", tensor, [false_fn, true_fn], ["false_fn", "true_fn"], name)


def switch_case(
    index: Any,
    branches: Sequence[Callable[[], Any]] | Mapping[int, Callable[[], Any]],
    default: Callable[[], Any] | None = None,
    *,
    name: str | None = None,
) -> Any:
    """The result of branches[index](); of `default()` (the last branch without one) for others.

    Args:
        index: one integer.
        branches: functions as those of `cond`, by number.

    Raises:
        InvalidArgumentError: there is no branch, the structures differ, or `index` is no scalar.
        DTypeError: an output has another type in a branch, or `index` is no integer.

    Examples:
        >>> engine.switch_case(1, [lambda: engine.constant(10), lambda: engine.constant(20)])
        Tensor(20, shape=(), dtype=int32)
    """
    table = dict(branches if isinstance(branches, Mapping) else enumerate(branches))
    if not table:
        raise InvalidArgumentError("switch_case: there must be at least one branch")
    last = default or table[max(table)]
    tensor = _scalar("switch_case", "the index", index)
    if not isinstance(tensor, GraphTensor):
        return table.get(int(tensor), last)()
    if tensor.dtype not in INTEGER:
        raise DTypeError(f"switch_case: the index must be an integer, got {tensor.spec}")
    if min(table) < 0 or max(table) >= 2 * len(table) + 8:
        raise InvalidArgumentError(
            f"switch_case: in a graph the branches are numbered from 0 on, got {sorted(table)}"
        )
    full = [table.get(i, last) for i in range(max(table) + 1)]
    if default is not None:
        full.append(default)
    tensor = tensor if tensor.dtype == int32 else cast(tensor, int32)
    return choose("switch_case", tensor, full, [f"branch {i}" for i in range(len(full))], name)


def case(
    pairs: Sequence[tuple[Any, Callable[[], Any]]],
    default: Callable[[], Any] | None = None,
    *,
    exclusive: bool = False,
    name: str | None = None,
) -> Any:
    """The result of the first function whose condition holds, else of `default()`.

    Args:
        pairs: (condition, function), in order; see `cond`.
        default: without one, the last function serves.
        exclusive: refuse more than one condition that holds; in a graph at run time.

    Raises:
        InvalidArgumentError: there are no pairs, or several conditions hold and may not.

    Examples:
        >>> x = engine.constant(3.0)
        >>> engine.case([(x > 5, lambda: x * 10), (x > 2, lambda: x * 2)], default=lambda: x)
        Tensor(6., shape=(), dtype=float32)
    """
    if not pairs:
        raise InvalidArgumentError("case: there must be at least one pair (condition, function)")
    if exclusive:
        pairs = [(_one_alone([p for p, _ in pairs]), pairs[0][1]), *pairs[1:]]
    (pred, fn), *rest = pairs
    if not rest:
        return fn() if default is None else cond(pred, fn, default, name=name)
    return cond(pred, fn, lambda: case(rest, default), name=name)


def _one_alone(conditions: Sequence[Any]) -> Any:
    """The first condition, once it is known that no two of all hold."""
    held = [cast(_truth(_scalar("case", "a condition", p)), int32) for p in conditions]
    count = functools.reduce(add, held)
    message = "case: more than one condition holds, and exclusive=True"
    alone = assert_op(less_equal(count, 1), *held, message=message, summarize=len(held))
    return logical_and(cast(held[0], bool_), alone)


def _truth(value: Any) -> Tensor:
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype == bool_ else cast(tensor, bool_)


def _scalar(who: str, what: str, value: Any) -> Any:
    """A tensor of a graph as a scalar, an eager value as a Python number."""
    if hasattr(value, "__laminar_tensor__"):
        value = value.__laminar_tensor__()
    if isinstance(value, EagerTensor) and value.size == 1:
        return value.item()
    if isinstance(value, Tensor):
        single = one_element(value) if isinstance(value, GraphTensor) else None
        if single is None:
            raise ShapeError(
                f"{who}: {what} must be a scalar, got {value.spec}",
                remedy="reduce it with all() or any(), or choose element by element with where()",
            )
        return single
    if isinstance(value, np.ndarray) and value.size != 1:
        return _scalar(who, what, convert_to_tensor(value))
    return value


def choose(
    who: str,
    index: GraphTensor | Tensor,
    functions: Sequence[Callable[[], Any]],
    names: Sequence[str],
    name: str | None = None,
    *,
    unify: Callable[[Sequence[FuncGraph], list[Any]], list[Any]] | None = None,
    root: str = "result",
) -> Any:
    """The result of functions[index](), in the graph of the index.

    Args:
        who: what messages begin with.
        index: a bool, or an integer.
        functions: one for each value.
        names: what messages call them.
        name: of the operation.
        unify: makes of the results of all functions, each in its graph, what is joined.
        root: what messages call the result.
    """
    outer = graph_for(who, [index])
    assert outer is not None
    with inside(outer):
        graphs = [FuncGraph(f"{who}_{n.replace(' ', '_')}", outer=outer) for n in names]
        # Of a condition, what is true comes first, as it is read: Python code may rely on that.
        first_true = -1 if index.dtype == bool_ else 1
        pairs = list(zip(graphs, functions, strict=True))[::first_true]
        results = [trace(g, fn, (), ()) for g, fn in pairs][::first_true]
        if unify is not None:
            results = unify(graphs, results)
        rebuild = with_arrays(results[-1])
        results = [flows_of(result) for result in results]
        structure = results[-1]
        said = f"{who}: the branches must return one structure; {names[-1]} and"
        leaves = [
            same_structure(structure, result, f"{said} {n}")
            for result, n in zip(results, names, strict=True)
        ]
        # Where nothing but a session runs operations, something to run must be there.
        nothing = structure is None and not outer.captures_values
        operations = _end_in_operations(graphs, leaves, always=nothing)
        columns = [
            _column(who, graphs, names, column, place)
            for column, place in zip(
                zip(*leaves, strict=True), names_of(structure, root), strict=True
            )
        ]
        kept = [c for c in columns if c is not None]
        given, inputs = share_captures(outer, graphs, every_run=False)
        branches = tuple(
            Subgraph(g, taken, [column[i] for column in kept], g.effects)
            for i, (g, taken) in enumerate(zip(graphs, inputs, strict=True))
        )
        op = CASE[any(b.stateful for b in branches)]
        found = iter(apply(op, [index, *given], {"branches": branches}, name or who))
        values = [None if c is None else next(found) for c in columns]
        packed = iter(
            v.op if i in operations and isinstance(v, GraphTensor) else v
            for i, v in enumerate(values)
        )
        result = map_structure(lambda _: next(packed), structure)
        return result if rebuild is None else rebuild(result)


def _end_in_operations(
    graphs: Sequence[FuncGraph], leaves: list[list[Any]], *, always: bool
) -> set[int]:
    """Put tensors where branches end in operations; which places of the result these are."""
    places = {
        i
        for i, column in enumerate(zip(*leaves, strict=True))
        if (always or any(isinstance(leaf, Operation) for leaf in column))
        and all(leaf is None or isinstance(leaf, Operation) for leaf in column)
    }
    for graph, own in zip(graphs, leaves, strict=True):
        for i in places:
            own[i] = _ran(graph, own[i])
    return places


def _ran(graph: FuncGraph, operation: Operation | None) -> Tensor:
    """A tensor of `graph` that is there when an operation has run."""
    with graph.as_default(), graph.control_dependencies([] if operation is None else [operation]):
        return constant(True)


def _column(
    who: str,
    graphs: Sequence[FuncGraph],
    names: Sequence[str],
    values: Sequence[Any],
    place: str,
) -> list[GraphTensor] | None:
    """One output as each branch gives it; None where it is None in all of them."""
    if all(v is None for v in values):
        return None
    for value, branch in zip(values, names, strict=True):
        if value is None:
            raise InvalidArgumentError(
                f"{who}: {place} is None in {branch}, and a tensor in another branch",
                remedy="return a tensor from each branch, or None from each",
            )
    typed = next((v.dtype for v in values if hasattr(v, "dtype")), None)
    found = [
        as_output(graph, value, typed, f"{who}: {place} of {branch}")
        for graph, value, branch in zip(graphs, values, names, strict=True)
    ]
    for y, branch in zip(found, names, strict=True):
        if y.dtype != found[-1].dtype:
            raise DTypeError(
                f"{who}: {place} is {y.spec} in {branch} and {found[-1].spec} in {names[-1]}",
                remedy=f'cast one to the type of the other: cast(x, "{y.dtype}")',
            )
    return found
