"""Prune: exactly what the fetches need, cut at the feeds."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.ops.array.join import split
from laminar.engine.ops.math.arithmetic import add
from laminar.engine.passes import needed_operations
from tests.engine import programs


def diamond() -> eng.Graph:
    """a -> c, b -> c, c -> f, d -> e; without data, g runs after a, and h after c."""
    with eng.Graph().as_default() as graph:
        a, b, d = (eng.placeholder("float32", [], name=n) for n in "abd")
        c = add(a, b, name="c")
        add(d, d, name="e")
        add(c, c, name="f")
        with eng.control_dependencies([a]):
            add(b, b, name="g")
        with eng.control_dependencies([c]):
            add(d, d, name="h")
    return graph


CASES: list[Any] = [
    pytest.param("f", "", "", "abcf", id="all-upstream"),
    pytest.param("f", "", "c", "f", id="fed-in-the-middle"),
    pytest.param("f", "", "b", "acf", id="fed-at-the-start"),
    pytest.param("f", "", "f", "", id="fed-itself"),
    pytest.param("g", "", "", "abg", id="control-edge"),
    pytest.param("g", "", "a", "bg", id="a-fed-placeholder-cuts-a-control-edge"),
    pytest.param("h", "", "c", "abdch", id="any-other-feed-does-not"),
    pytest.param("", "e", "", "de", id="target"),
    pytest.param("f", "e", "", "abdcef", id="both"),
    pytest.param("ff", "", "", "abcf", id="twice"),
    pytest.param("", "", "", "", id="nothing"),
]


@pytest.mark.parametrize(("fetches", "targets", "feeds", "expected"), CASES)
def test_needed_operations(fetches: str, targets: str, feeds: str, expected: str) -> None:
    graph = diamond()
    found = needed_operations(
        [graph.get_tensor_by_name(f"{n}:0") for n in fetches],
        [graph.get_operation_by_name(n) for n in targets],
        [graph.get_tensor_by_name(f"{n}:0") for n in feeds],
    )
    assert "".join(op.name for op in found) == expected


def test_one_output_of_several_may_be_fed() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [4], name="x")
        parts: Any = split(x, 2, axis=0)
        total: Any = add(*parts)
    both = needed_operations([total], (), parts)
    one = needed_operations([total], (), parts[:1])
    assert [op.type for op in both] == ["Add"]
    assert [op.name for op in one] == ["x", parts[0].op.name, "Add"]


@given(programs.programs(), st.integers(0, 99))
def test_random_graphs(program: programs.Program, pick: int) -> None:
    """What is kept computes the fetch; what is left out is not upstream; order is kept."""
    with eng.Graph().as_default() as graph:
        xs: list[Any] = [eng.placeholder("float64", [2, 2]) for _ in range(2)]
        values = programs.run(program, xs)
    wanted = pick % len(values)
    found = needed_operations([values[wanted]])
    kept = set(found)
    for op in found:
        assert {x.op for x in op.inputs} <= kept
    assert [op.id for op in found] == sorted(op.id for op in found)
    connected = programs.needed(program, wanted, 2)
    assert {i for i, v in enumerate(values) if v.op in kept} >= connected
    assert [x.op in kept for x in xs] == [i in connected for i in range(2)]
    assert kept <= set(graph.operations)
