"""The state of a step, fed with events: no threads, no kernels."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.control.dataflow import (
    DEAD,
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from laminar.engine.ops.core.basic import identity
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan
from laminar.engine.runtime.step_state import Runnable, StepState

Arithmetic = Callable[[str, list[Any]], Any]


def drive(
    state: StepState, kernel: Arithmetic, pick: Callable[[list[Runnable]], int] | None = None
) -> list[str]:
    """Run a state to its end with a kernel of (name, arguments); tells the order."""
    order = []
    ready = state.start()
    while ready:
        item = ready.pop(pick(ready) if pick else 0)
        name = item.node.op.name
        order.append(name)
        ready += state.finish(item, [kernel(name, state.arguments(item))])
    return order


def state_of(fetches: list[Any], feeds: list[Any], values: list[Any]) -> StepState:
    return StepState(Plan(StepGraph(fetches, feeds)).layout, values)


def test_a_diamond() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        a = identity(x, name="a")
        b, c = identity(a, name="b"), identity(a, name="c")
        d = b + c
    state = state_of([d], [x], [1.0])
    order = drive(state, lambda name, xs: sum(xs))
    assert order[0] == "a"
    assert sorted(order[1:3]) == ["b", "c"]
    assert len(order) == 4
    assert state.fetched() == [2.0]


@pytest.mark.parametrize("pred", [True, False])
def test_only_the_taken_branch_runs(pred: bool) -> None:
    with eng.Graph().as_default():
        x, p = eng.placeholder("float32", []), eng.placeholder("bool", [])
        f, t = switch(x, p)
        m, which = merge([identity(t, name="true"), identity(identity(f), name="false")])
    state = state_of([m, which], [x, p], [5.0, pred])
    order = drive(state, lambda name, xs: xs[0])
    assert order == (["true"] if pred else ["Identity", "false"])
    value, number = state.fetched()
    assert (value, int(number)) == (5.0, 0 if pred else 1)


def test_a_dead_fetch_is_told_of() -> None:
    with eng.Graph().as_default():
        x, p = eng.placeholder("float32", []), eng.placeholder("bool", [])
        _, t = switch(x, p)
        y = identity(identity(t), name="y")
    state = state_of([y], [x, p], [5.0, False])
    assert drive(state, lambda name, xs: xs[0]) == []
    with pytest.raises(InvalidArgumentError, match="y:0 has no value in this run"):
        state.fetched()


def test_a_dead_control_input_keeps_from_running() -> None:
    with eng.Graph().as_default():
        x, p = eng.placeholder("float32", []), eng.placeholder("bool", [])
        f, _ = switch(x, p)
        with eng.control_dependencies([identity(f, name="first")]):
            y = identity(x, name="second")
        m, _ = merge([y, x])
    state = state_of([m], [x, p], [5.0, True])
    assert drive(state, lambda name, xs: xs[0]) == []
    assert state.fetched() == [5.0]


def loop(n: Any, start: Any, parallel: int = 10, name: str = "loop", body: Any = None) -> Any:
    """The start plus 1 as often as n says (or what `body` makes of it), as a loop of primitives."""
    limit = enter(n, name, is_constant=True, parallel_iterations=parallel)
    zero = start - start  # a constant would be outside of the loop around this one
    i = merge([enter(zero, name, parallel_iterations=parallel)])[0]
    s = merge([enter(start, name, parallel_iterations=parallel)])[0]
    go = loop_cond(i < limit)
    _, i_in = switch(i, go)
    s_out, s_in = switch(s, go)
    close_loop(i, next_iteration(i_in + 1))
    close_loop(s, next_iteration(s_in + 1 if body is None else body(i_in, s_in)))
    return exit_loop(s_out)


def arithmetic(name: str, xs: list[Any]) -> Any:
    name = name.rpartition("/")[2].partition("_")[0].lower()
    if name == "less":
        return xs[0] < xs[1]
    if name == "add":
        return xs[0] + xs[1]
    if name == "sub":
        return xs[0] - xs[1]
    return xs[0]


@pytest.mark.parametrize("count", [0, 1, 7])
@pytest.mark.parametrize("parallel", [1, 3])
def test_a_loop(count: int, parallel: int) -> None:
    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        y = loop(n, n - n, parallel)
    state = state_of([y], [n], [count])
    rng = random.Random(count)
    order = drive(state, arithmetic, lambda ready: rng.randrange(len(ready)))
    assert state.fetched() == [count]
    assert sum(o.startswith("Add") for o in order) == 2 * count
    assert state.num_frames == 0  # nothing is left of the loop


@pytest.mark.parametrize("seed", range(5))
def test_a_loop_in_a_loop(seed: int) -> None:
    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        inner = enter(3, "outer", is_constant=True)
        y = loop(n, n - n, name="outer", body=lambda i, s: loop(inner, s, name="inner"))
    state = state_of([y], [n], [4])
    rng = random.Random(seed)
    order = drive(state, arithmetic, lambda ready: rng.randrange(len(ready)))
    assert state.fetched() == [12]
    assert sum(o.startswith("Add") for o in order) == 4 + 2 * 12
    assert state.num_frames == 0


def test_a_loop_on_a_branch_that_is_not_taken() -> None:
    with eng.Graph().as_default():
        x, p = eng.placeholder("int32", []), eng.placeholder("bool", [])
        f, t = switch(x, p)
        y, _ = merge([loop(t, t), identity(f, name="instead")])
    state = state_of([y], [x, p], [3, False])
    order = drive(state, arithmetic)
    assert order == ["instead"]
    assert state.fetched() == [3]
    assert state.num_frames == 0
    state = state_of([y], [x, p], [3, True])
    drive(state, arithmetic)
    assert state.fetched() == [6]


@pytest.mark.parametrize(("parallel", "most"), [(1, 1), (2, 2), (4, 4)])
def test_iterations_are_in_flight_together_up_to_a_limit(parallel: int, most: int) -> None:
    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        # The sum waits for what is slow; the counter runs ahead.
        limit = enter(n, "side", is_constant=True, parallel_iterations=parallel)
        i = merge([enter(0, "side", parallel_iterations=parallel)])[0]
        _, i_in = switch(i, loop_cond(i < limit))
        slow = identity(i_in, name="slow")
        kept = merge([enter(0, "side", parallel_iterations=parallel)])[0]
        kept_out, kept_in = switch(kept, loop_cond(i < limit))
        close_loop(kept, next_iteration(kept_in + slow))
        close_loop(i, next_iteration(i_in + 1))
        z = exit_loop(kept_out)
    state = state_of([z], [n], [6])
    ready, seen = state.start(), 0
    waiting: list[Runnable] = []
    while ready or waiting:
        if not ready:  # what is slow ends only when nothing else can run
            item = waiting.pop(0)
        else:
            item = ready.pop(0)
            if item.node.op.name.startswith("slow"):
                waiting.append(item)
                seen = max(seen, len({w.frame_iter for w in waiting}))
                continue
        ready += state.finish(item, [arithmetic(item.node.op.name, state.arguments(item))])
    assert state.fetched() == [15]
    assert seen == most


def test_iterations_have_names_that_are_equal_everywhere() -> None:
    names: list[set[Any]] = []
    for _ in range(2):
        with eng.Graph().as_default():
            n = eng.placeholder("int32", [])
            y = loop(n, n - n)
        state = state_of([y], [n], [3])
        ready, found = state.start(), set()
        while ready:
            item = ready.pop()
            found.add(item.frame_iter)
            ready += state.finish(item, [arithmetic(item.node.op.name, state.arguments(item))])
        names.append(found)
    assert names[0] == names[1]
    assert (0, 0) in names[0]  # outside
    assert len(names[0]) == 1 + 4  # three iterations, and the one that ends the loop


def test_an_operation_that_takes_what_is_dead() -> None:
    taken = eng.define("TestTakesDead", takes_dead=True)(_same)
    taken.effect(lambda context, x: x)
    with eng.Graph().as_default():
        x, p = eng.placeholder("float32", []), eng.placeholder("bool", [])
        y = taken(switch(x, p)[0])
    state = state_of([y], [x, p], [1.0, True])
    seen: list[Any] = []

    def kernel(name: str, xs: list[Any]) -> float:
        seen.extend(xs)
        return 7.0

    drive(state, kernel)
    assert seen == [DEAD]
    assert state.fetched() == [7.0]


def _same(x: Any) -> Any:
    """x."""
    return x


def cycle() -> Any:
    a: Any = identity(eng.constant(1.0))
    b: Any = identity(eng.constant(2.0))
    a.op.add_control_input(b.op)
    b.op.add_control_input(a.op)
    return a


BAD = [
    pytest.param(lambda x: identity(x) + enter(x, "f"), "frames do not match", id="mismatch"),
    pytest.param(lambda x: enter(x, "f") + enter(x, "g"), "frames do not match", id="two-frames"),
    pytest.param(lambda x: exit_loop(x), "outside of any loop", id="exit"),
    pytest.param(lambda x: enter(x, "f"), "inside of the loop '/f'", id="fetch"),
    pytest.param(lambda x: cycle(), "wait for each other in a cycle: 'Identity'", id="cycle"),
]


@pytest.mark.parametrize(("build", "message"), BAD)
def test_what_cannot_run_is_found_before_it_runs(build: Any, message: str) -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [])
        y = build(x)
        z = identity(x)
    with pytest.raises(InvalidArgumentError, match=message) as caught:
        Plan(StepGraph([y], [x]))
    assert caught.value.location is not None
    assert caught.value.location.filename == __file__
    with eng.Session(graph=graph) as session:
        with pytest.raises(InvalidArgumentError, match=message):
            session.run(y, {x: 1.0})
        assert session.run(z, {x: 3.0}) == 3.0
