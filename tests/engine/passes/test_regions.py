"""Regions: what is alive under the same conditions, in the same iterations."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from laminar import engine as eng
from laminar.engine.graph import Graph
from laminar.engine.ops.control.dataflow import (
    close_loop,
    enter,
    exit_loop,
    loop_cond,
    merge,
    next_iteration,
    switch,
)
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.math.arithmetic import add, multiply
from laminar.engine.ops.math.compare import greater, less
from laminar.engine.passes.regions import regions


def by_name(graph: Graph) -> dict[str, Hashable | None]:
    operations = graph.operations
    return dict(zip((op.name for op in operations), regions(operations, set()).of, strict=True))


def loop(graph: Graph, first: Any, second: Any, *, stays: bool = False) -> Any:
    """Two variables, of which the second goes on under a condition of its own if `stays`."""
    starts = [enter(x, "frame") for x in (first, second)]
    merged = [merge([x])[0] for x in starts]
    go = loop_cond(less(merged[0], 5.0, name="test"))
    (_, a), (out, b) = (switch(m, go) for m in merged)
    more: Any = multiply(b, a, name="product")
    if stays:
        more = switch(more, greater(more, 0.0))[1]
    close_loop(merged[0], next_iteration(add(a, 1.0, name="count")))
    close_loop(merged[1], next_iteration(more))
    return identity(exit_loop(out), name="after")


def test_sides_of_a_condition() -> None:
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [], name="x")
        p: Any = greater(x, 0.0, name="p")
        no, yes = switch(x, p)
        first = add(yes, 1.0, name="first")
        second = multiply(first, yes, name="second")
        other = add(no, 1.0, name="other")
        both = merge([other, second])[0]
        identity(both, name="both")
        alone = merge([first, switch(x, greater(x, 1.0))[0]])[0]
        identity(alone, name="one_of_two")
    found = by_name(graph)
    assert found["first"] == found["second"]
    assert found["both"] == found["p"] == found["x"]
    assert len({found[name] for name in ("p", "first", "other", "one_of_two")}) == 4
    assert None not in found.values()


def test_what_waits_for_a_side_is_on_it() -> None:
    with eng.Graph().as_default() as graph:
        x: Any = eng.placeholder("float32", [], name="x")
        yes: Any = identity(switch(x, greater(x, 0.0))[1], name="yes")
        with eng.control_dependencies([yes.op]):
            add(x, 1.0, name="waits")
    found = by_name(graph)
    assert found["waits"] == found["yes"] != found["x"]


def test_a_loop() -> None:
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [], name="x")
        loop(graph, eng.constant(0.0), x)
    found = by_name(graph)
    assert found["count"] == found["product"]
    assert found["after"] == found["x"]
    assert len({found[name] for name in ("x", "test", "count")}) == 3


def test_in_a_loop_that_is_not_regular_nothing_is_joined() -> None:
    """Its variables begin, or go on, under conditions that differ."""
    with eng.Graph().as_default() as begins:
        x: Any = eng.placeholder("float32", [], name="x")
        loop(begins, eng.constant(0.0), switch(x, greater(x, 0.0))[1])
    with eng.Graph().as_default() as goes_on:
        x = eng.placeholder("float32", [], name="x")
        loop(goes_on, eng.constant(0.0), x, stays=True)
    for graph in (begins, goes_on):
        found = by_name(graph)
        assert found["count"] is found["product"] is found["test"] is None
        assert found["x"] is not None


def test_what_leaves_a_loop_waits_for_its_iterations() -> None:
    """The last value of a variable depends on what only the body takes."""
    with eng.Graph().as_default() as graph:
        x = eng.placeholder("float32", [], name="x")
        loop(graph, eng.constant(0.0), x)
    operations = graph.operations
    (ends,) = regions(operations, set()).ends.values()
    assert [operations[i].type for i in ends] == ["NextIteration"] * 2
