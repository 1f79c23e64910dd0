"""`if` and conditional expressions: Python's, or both branches in a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..errors import InvalidArgumentError, ShapeError
from ..functions.conditions import choose as choose_branch
from ..functions.func_graph import FuncGraph
from ..functions.subgraph import one_element
from ..graph import GraphTensor, TensorSpec, bool_
from ..ops.array.creation import zeros
from ..ops.core.arrays import can_stand_for
from ..ops.core.convert import convert_to_tensor
from ..ops.core.lattice import result_type
from ..ops.core.recording import paused
from ..ops.math.cast import cast
from ..state.tensor_array import TensorArray
from ..tree import flatten, map_structure
from .lists import Cells, GrowsError, TensorList, spec_of_items
from .raising import end_here, in_branch, is_raised, never, put_raise
from .state import (
    Get,
    Set,
    Undefined,
    are_same,
    as_condition,
    check_bound,
    copied,
    is_internal,
    is_missing,
    is_stageable,
    label,
    put_back,
    refuse_change,
)

_BRANCHES = ("the else branch", "the if branch")


def if_(
    test: Any,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
) -> None:
    """if test: body() else: orelse(); a tensor of a graph has both traced.

    Args:
        test: the condition.
        body, orelse: the branches, which bind variables of the function around them.
        get, set_: read and bind the variables that the branches change.
        names: what they are called.
        kept: how many of them, the first ones, may be read later.
    """
    test = as_condition(test)
    if not isinstance(test, GraphTensor):
        if test:
            body()
        else:
            orelse()
        return
    _staged(as_bool("if", test), body, orelse, get, set_, names, kept)


def _staged(
    test: GraphTensor,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
) -> None:
    """Trace both branches, again where a list is to become one that can grow."""
    made: set[int] = set()
    while True:
        try:
            _traced(test, body, orelse, get, set_, names, kept, made)
            return
        except GrowsError as grows:
            before = get()
            for place, spec in grows.specs.items():
                before[place] = TensorList.of(before[place], spec)
                made.add(place)
            set_(before)


def _traced(
    test: GraphTensor,
    body: Callable[[], None],
    orelse: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
    made: set[int],
) -> None:
    """Trace both branches.

    Args:
        test, body, orelse, get, set_, names, kept: as for `if_`.
        made: the places of lists that were made for this condition: nothing else holds them.

    Raises:
        GrowsError: a list is to be made.
    """
    before = get()
    rebound: set[int] = set()
    ended: dict[int, Exception] = {}  # by the number of a branch, the exception that it raises
    for value in before:
        if isinstance(value, TensorList):
            _ = value.cells  # made here, for both branches
    passed: list[Any] = list(before)

    def branch(number: int, run: Callable[[], None]) -> Callable[[], list[Any]]:
        def traced() -> list[Any]:
            entered = [copied(v) for v in before]
            set_(entered)
            try:
                with in_branch():
                    run()
                after = get()
            except Exception as error:
                if not is_raised(error):
                    raise
                put_raise(error)
                ended[number] = error
                after = [copied(v) for v in before]
            for place, (a, b) in enumerate(zip(entered, after, strict=True)):
                check_bound(names[place], a, b)
                if b is not a and not are_same(b, before[place]):
                    rebound.add(place)
            return [
                a.read_before(b.cells)
                if isinstance(a, TensorList) and isinstance(b, TensorList)
                else a
                for a, b in zip(after, before, strict=True)
            ]

        return traced

    def unify(graphs: Sequence[FuncGraph], results: list[Any]) -> list[Any]:
        joined: list[dict[str, Any]] = [{}, {}]
        growing: dict[int, TensorSpec] = {}
        if len(ended) == 2:
            return list(joined)
        for place in range(kept):
            values = [r[place] for r in results]
            for number, error in ended.items():
                value = values[1 - number]
                if not _has_tensors(value):
                    values = [value, value]
                elif not isinstance(value, TensorList | TensorArray):
                    values[number] = never(graphs[number], value, error)
            if are_same(*values):
                passed[place] = before[place] if are_same(values[0], before[place]) else values[0]
                continue
            name = names[place]
            missing = [is_missing(v) for v in values]
            if any(missing):
                which = missing.index(False) if not all(missing) else 0
                if is_internal(name) and not all(missing):
                    values[1 - which] = zeros_like(graphs[1 - which], values[which])
                else:
                    where = _BRANCHES[which]
                    passed[place] = Undefined(name, f"has a value only in {where} of a condition")
                    continue
            if _grows(values):
                home = before[place]
                is_shared = place in rebound and place not in made
                if type(home) is list or (isinstance(home, TensorList) and is_shared):
                    spec = spec_of_items(name, *values)
                    assert spec is not None, "one of them has items"
                    growing[place] = spec
                    continue
                if isinstance(home, TensorList):
                    pairs = zip(graphs, values, strict=True)
                    values = [_moved(graph, v, home) for graph, v in pairs]
            _check(name, values)
            values = _of_one_kind(graphs, values)
            for values_of, value in zip(joined, values, strict=True):
                values_of[name] = value
        if growing:
            raise GrowsError(growing)
        return list(joined)

    try:
        found = choose_branch(
            "if",
            test,
            [branch(0, orelse), branch(1, body)],
            _BRANCHES,
            unify=unify,
            root="variable",
        )
    finally:
        set_(before)
    if len(ended) == 2:
        end_here(ended[1])
        why = "has no value after a condition both of whose branches raise"
        passed = [None if is_internal(n) else Undefined(n, why) for n in names]
    values = list(passed)
    for place, name in enumerate(names):
        if name in found:
            keeps = place not in rebound or isinstance(before[place], TensorList)
            values[place] = put_back(before[place] if keeps else None, found[name])
    set_(values)


def _has_tensors(value: Any) -> bool:
    """Whether a value is computed in a branch, and can be used after it as an output alone."""
    return any(isinstance(v, GraphTensor | TensorList | TensorArray) for v in flatten(value))


def _grows(values: Sequence[Any]) -> bool:
    """Whether they are lists whose lengths tensors decide."""
    if any(isinstance(v, TensorList) for v in values):
        return all(isinstance(v, TensorList) or type(v) is list for v in values)
    return all(type(v) is list for v in values) and len(values[0]) != len(values[1])


def _moved(graph: FuncGraph, value: Any, home: TensorList) -> Cells:
    with graph.as_default(), paused():
        found = value if isinstance(value, TensorList) else TensorList.of(value, home.spec)
        return found.moved_to(home.cells)


def _check(name: str, values: Sequence[Any]) -> None:
    if all(type(v) is list for v in values) and len(values[0]) != len(values[1]):
        raise InvalidArgumentError(
            f"if: {label(name)} is a list of {len(values[0])} in {_BRANCHES[0]}, and of "
            f"{len(values[1])} in {_BRANCHES[1]}",
            remedy="append in both, and choose what is appended with where()",
        )
    for value, branch in zip(values, _BRANCHES, strict=True):
        other = values[1] if value is values[0] else values[0]
        if value is None and other is not None:
            raise InvalidArgumentError(
                f"if: {label(name)} is None in {branch}, and not in the other",
                remedy="give it a tensor in both branches",
            )
        if value is not None and not is_stageable(value) and not hasattr(value, "shape"):
            if isinstance(value, list | tuple | dict):
                continue  # what differs in their structures is said leaf by leaf
            refuse_change("if", name, values, [f"in {b}" for b in _BRANCHES])


def _of_one_kind(graphs: Sequence[FuncGraph], values: list[Any]) -> list[Any]:
    """Two values as they are; an integer (or a bool) as a real number where the other is one.

    Python's own numbers change their type so, and `s = 0` before `s += x` is usual. So integers
    of two types are as those of one that holds both.
    """
    if all(type(v) is list for v in values) and len(values[0]) == len(values[1]):
        pairs = [_of_one_kind(graphs, list(pair)) for pair in zip(*values, strict=True)]
        return [list(items) for items in zip(*pairs, strict=True)] if pairs else values
    if any(isinstance(v, list | tuple | dict | TensorArray) or v is None for v in values):
        return values
    tensors = []
    for graph, v in zip(graphs, values, strict=True):
        with graph.as_default(), paused():
            tensors.append(convert_to_tensor(v))
    first, second = (t.dtype for t in tensors)
    if first == second:
        return values
    ups = can_stand_for(first, second), can_stand_for(second, first)
    if ups[0] == ups[1] and not (first.is_integer and second.is_integer):
        return values
    wider = result_type(first, second)
    for place, graph in enumerate(graphs):
        with graph.as_default(), paused():
            tensors[place] = cast(tensors[place], wider)
    return tensors


def zeros_like(graph: FuncGraph, value: Any) -> Any:
    """Zeros in the place of a value that another branch has, for one that is not looked at."""
    with graph.as_default(), paused():
        return map_structure(lambda leaf: None if leaf is None else _zeros(leaf), value)


def _zeros(leaf: Any) -> Any:
    spec = convert_to_tensor(leaf).spec
    if spec.shape.rank is None:
        raise ShapeError(
            f"a value of unknown rank ({spec}) is returned on some of the paths only",
            remedy="bind it to a variable on each path, and return that at the end",
        )
    return zeros([0 if d is None else d for d in spec.shape], spec.dtype)


def as_bool(who: str, test: GraphTensor) -> GraphTensor:
    """A condition as one bool.

    Raises:
        ShapeError: it has more than one element.
    """
    single = one_element(test)
    if single is None:
        raise ShapeError(
            f"{who}: the condition must be one bool, got {TensorSpec(test.shape, test.dtype)}",
            remedy="reduce it with all() or any(), or choose element by element with where()",
        )
    found = single if single.dtype == bool_ else cast(single, bool_)
    assert isinstance(found, GraphTensor)
    return found


def choose(test: Any, body: Callable[[], Any], orelse: Callable[[], Any]) -> Any:
    """body() if test else orelse()"""
    test = as_condition(test)
    if not isinstance(test, GraphTensor):
        return body() if test else orelse()
    functions = [orelse, body]

    def unify(graphs: Sequence[FuncGraph], results: list[Any]) -> list[Any]:
        return _of_one_kind(graphs, results)

    return choose_branch("if", as_bool("if", test), functions, _BRANCHES, unify=unify)
