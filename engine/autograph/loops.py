"""`while` and `for`: Python's, or one loop of a graph where a tensor decides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..functions.loops import while_loop
from ..functions.scans import scan
from ..graph import GraphTensor, bool_
from ..ops.array.index import get_item
from ..ops.core.convert import convert_to_tensor
from ..ops.math.arithmetic import add
from ..ops.math.cast import cast
from ..ops.math.compare import less, logical_and, logical_not
from ..tree import map_structure
from .conditions import as_bool, if_
from .lists import TensorList
from .loop_state import LoopState, NoValueYetError
from .sequences import Sequential, as_sequential
from .state import Get, Set, as_condition


def while_(
    test: Callable[[], Any],
    body: Callable[[], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
    binds: bool,
) -> None:
    """while test(): body(); from the first test on that is a tensor of a graph, in the graph.

    Args:
        test, body: read and bind variables of the function around them.
        get, set_: read and bind those that the body changes.
        names: what they are called.
        kept: how many of them, the first ones, are read in another iteration or later.
        binds: whether the test binds variables.
    """
    while True:
        found = as_condition(test())
        if isinstance(found, GraphTensor):
            break
        if not found:
            return
        body()
    state = LoopState("while", get, set_, names, kept)

    def holds(carried: dict[str, Any]) -> Any:
        state.enter(carried)
        return _as_test(test())

    def step(carried: dict[str, Any]) -> dict[str, Any]:
        state.enter(carried)
        if binds:
            test()
        body()
        found = state.leave(carried)
        state.grow_lists()
        return found

    state.finish(state.staged(lambda: while_loop(holds, step, state.first_values())), {})
    if binds:
        test()


def _as_test(value: Any) -> Any:
    value = as_condition(value)
    return as_bool("while", value) if isinstance(value, GraphTensor) else bool(value)


def for_(
    items: Any,
    stopped: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
    reads: Sequence[str],
) -> None:
    """for item in items: body(item); over a tensor of a graph, or a range of them, in the graph.

    Args:
        items: what is iterated over.
        stopped: whether the loop has been left, None if nothing leaves it.
        body, get, set_, names, kept: as for `while_`.
        reads: those of the names that the body reads, and not only to append to them.
    """
    sequence = as_sequential(items)
    if sequence is None:
        _python_for(items, stopped, body, get, set_, names, kept)
        return

    def stage(sequence: Sequential) -> None:
        state = LoopState("for", get, set_, names, kept)
        if stopped is None:
            _scanned(sequence, state, body, reads)
        else:
            _stoppable(sequence, state, stopped, body)

    try:
        stage(sequence)
    except NoValueYetError:
        if not sequence.known_length:
            raise
        # There is a first iteration, which gives the variable its value.
        body(sequence.item(sequence.first_index(), sequence.row(0)))
        stage(sequence.without_first())


def _python_for(
    items: Iterable[Any],
    stopped: Callable[[], Any] | None,
    body: Callable[[Any], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
) -> None:
    for item in items:
        if stopped is not None:
            has_stopped = as_condition(stopped())
            if isinstance(has_stopped, GraphTensor):  # the rest runs where it has not
                _unless(has_stopped, item, body, get, set_, names, kept)
                continue
            if has_stopped:
                return
        body(item)


def _unless(
    has_stopped: GraphTensor,
    item: Any,
    body: Callable[[Any], None],
    get: Get,
    set_: Set,
    names: Sequence[str],
    kept: int,
) -> None:
    goes_on = logical_not(has_stopped)
    if_(goes_on, lambda: body(item), lambda: None, get, set_, names, kept)


def _scanned(
    sequence: Sequential, state: LoopState, body: Callable[[Any], None], reads: Sequence[str]
) -> None:
    """A loop that nothing leaves: what it appends to lists that it does not read is stacked."""

    def step(carry: Any, x: Any) -> tuple[Any, Any]:
        i, carried = carry
        state.enter(carried)
        body(sequence.item(i, x))
        found = state.leave(carried)
        state.grow_lists(reads)
        if i is not None:
            i = add(i, convert_to_tensor(1, i.dtype))
        return (i, found), {name: dict(enumerate(v)) for name, v in state.appended.items()}

    def run() -> Any:
        first = (sequence.first_index(), state.first_values())
        return scan(step, first, sequence.xs, sequence.length if sequence.xs is None else None)

    (_, carried), stacked = state.staged(run)
    lists: dict[str, Any] = {}
    for name, columns in (stacked or {}).items():
        before = state.list_before(name)
        ordered = [columns[i] for i in range(len(columns))]
        size = sequence.known_length
        if size is None:
            lists[name] = TensorList(before, ordered)
        else:
            before.extend(_row(y, i) for i in range(size) for y in ordered)
            lists[name] = before
    state.finish(carried, lists)


def _row(column: Any, i: int) -> Any:
    return map_structure(lambda y: None if y is None else get_item(y, i), column)


def _stoppable(
    sequence: Sequential,
    state: LoopState,
    stopped: Callable[[], Any],
    body: Callable[[Any], None],
) -> None:
    """A loop with `break`, or `return` inside."""
    length = convert_to_tensor(sequence.length)

    def holds(variables: tuple[Any, dict[str, Any]]) -> Any:
        i, carried = variables
        state.enter(carried)
        more = less(i, length)
        has_stopped = as_condition(stopped())
        if not isinstance(has_stopped, GraphTensor):
            return more if not has_stopped else cast(convert_to_tensor(False), bool_)
        return logical_and(more, logical_not(has_stopped))

    def step(variables: tuple[Any, dict[str, Any]]) -> Any:
        i, carried = variables
        state.enter(carried)
        body(sequence.item(i, sequence.row(i)))
        found = state.leave(carried)
        state.grow_lists()
        return {"i": add(i, convert_to_tensor(1, i.dtype)), "carried": found}

    def run() -> Any:
        first = {"i": convert_to_tensor(0, length.dtype), "carried": state.first_values()}
        return while_loop(
            lambda v: holds((v["i"], v["carried"])), lambda v: step((v["i"], v["carried"])), first
        )

    state.finish(state.staged(run)["carried"], {})
