"""The library of functions of a GraphDef: calls give what the nodes written out give."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    ResourceExhaustedError,
)
from laminar.engine.ops.math.arithmetic import add, multiply


def function(
    into: eng.GraphDef, name: str, inputs: list[str], outputs: list[str], build: Callable[[], Any]
) -> None:
    """Put what `build` builds into a library."""
    with eng.Graph().as_default() as inner:
        build()
    made = into.message.function.add(name=name, input=inputs, output=outputs)
    made.node.extend(inner.as_graph_def().message.node)


def scalar(name: str) -> Any:
    return eng.placeholder("float32", [], name=name)


def multiply_and_add() -> None:
    """p = a * b, q = a * b + a."""
    a, b = scalar("a"), scalar("b")
    add(multiply(a, b, name="p"), a, name="q")


def caller() -> eng.GraphDef:
    """x and y are given, f calls the function, z = square(f:1)."""
    with eng.Graph().as_default() as graph:
        scalar("x")
        scalar("y")
    found = graph.as_graph_def()
    function(found, "MulAdd", ["a", "b"], ["p", "q:0"], multiply_and_add)
    found.message.node.add(name="f", op="MulAdd", input=["x", "y"])
    found.message.node.add(name="z", op="Square", input=["f:1"])
    found.message.node_count = len(found.message.node)
    return found


def run(graph_def: eng.GraphDef, fetch: str, **feeds: float) -> Any:
    with eng.Graph().as_default() as graph:
        (y,) = eng.import_graph_def(graph_def, return_elements=[fetch], name="")
        with eng.Session(graph=graph) as session:
            return session.run(y, {f"{k}:0": v for k, v in feeds.items()})


def test_a_call_gives_what_its_nodes_give() -> None:
    graph_def = eng.GraphDef.from_bytes(caller().to_bytes())
    assert run(graph_def, "z:0", x=3.0, y=2.0) == (3.0 * 2.0 + 3.0) ** 2
    assert run(graph_def, "f:0", x=3.0, y=2.0) == 6.0
    with eng.Graph().as_default() as graph:
        eng.import_graph_def(graph_def, name="")
    assert [op.name for op in graph.operations] == ["x", "y", "f/p", "f/q", "z"]


def test_the_outputs_of_a_call_keep_their_names() -> None:
    graph_def = eng.GraphDef.from_bytes(caller().to_bytes())
    for prefix in ("", "inner/"):
        with eng.Graph().as_default() as graph:
            eng.import_graph_def(graph_def, name=prefix.rstrip("/"))
        feeds = {f"{prefix}x:0": 3.0, f"{prefix}y:0": 2.0}
        with eng.Session(graph=graph) as session:
            assert session.run([f"{prefix}f:0", f"{prefix}f:1"], feeds) == [6.0, 9.0]
            assert session.run(f"{prefix}z:0", {f"{prefix}f:1": 4.0}) == 16.0
            with pytest.raises(NotFoundError, match="has 2 outputs"):
                session.run(f"{prefix}f:2", feeds)


def calling_twice(depth: int) -> eng.GraphDef:
    """d, whose 2**depth copies of a node come of functions that call the next one twice."""
    found = eng.GraphDef()
    for i in range(depth):
        made = found.message.function.add(name=f"F{i}")
        for k in range(2):
            made.node.add(name=f"n{k}", op=f"F{i + 1}" if i < depth - 1 else "NoOp")
    found.message.node.add(name="d", op="F0")
    found.message.node_count = 1
    return found


@pytest.mark.parametrize("depth", [16, 40, 100])
def test_a_small_file_is_refused_before_it_grows(depth: int) -> None:
    graph_def = calling_twice(depth)
    start = time.perf_counter()
    with (
        eng.Graph().as_default() as graph,
        pytest.raises(
            ResourceExhaustedError, match=f"over {max(10_000, 200 * (2 * depth + 1))} nodes"
        ),
    ):
        eng.import_graph_def(graph_def)
    assert time.perf_counter() - start < 1  # writing out 2**16 nodes takes ten seconds
    assert graph.version == 0


def test_bodies_share_the_limit() -> None:
    """Each of 20 branches has 2**12 nodes, which are fewer than a file may have; all are more."""
    graph_def = calling_twice(12)
    message = graph_def.message
    for i in range(20):
        message.function.add(name=f"B{i}").node.add(name="d", op="F0")
    for i in range(10):
        case = message.node.add(name=f"c{i}", op="Case", input=["index"])
        for k in range(2):
            case.attr["branches"].list.item.add(function=f"B{2 * i + k}")
    message.node_count = len(message.node)
    with eng.Graph().as_default(), pytest.raises(ResourceExhaustedError, match="over 11000 nodes"):
        eng.import_graph_def(graph_def)


def test_functions_nest_a_hundred_deep() -> None:
    for depth, is_read in ((100, True), (101, False)):
        graph_def = eng.GraphDef()
        for i in range(depth):
            op = f"F{i + 1}" if i < depth - 1 else "NoOp"
            graph_def.message.function.add(name=f"F{i}").node.add(name="n", op=op)
        graph_def.message.node.add(name="d", op="F0")
        with eng.Graph().as_default() as graph:
            if is_read:
                eng.import_graph_def(graph_def, name="")
                assert [op.name for op in graph.operations] == ["d" + "/n" * depth]
            else:
                with pytest.raises(InvalidArgumentError, match="deeper than 100"):
                    eng.import_graph_def(graph_def)


def test_functions_call_functions() -> None:
    graph_def = caller()
    twice = graph_def.message.function.add(name="Twice", input=["c"], output=["second:1"])
    with eng.Graph().as_default() as inner:
        scalar("c")
    twice.node.extend(inner.as_graph_def().message.node)
    twice.node.add(name="first", op="MulAdd", input=["c", "c"])
    twice.node.add(name="second", op="MulAdd", input=["first:0", "c:0"])
    graph_def.message.node.add(name="t", op="Twice", input=["z"])
    graph_def.message.node.add(name="u", op="Square", input=["t"])
    graph_def.message.node_count += 2
    z = (3.0 * 2.0 + 3.0) ** 2
    assert run(graph_def, "u:0", x=3.0, y=2.0) == (z * z * z + z * z) ** 2


def test_a_function_may_give_its_argument() -> None:
    graph_def = caller()
    function(graph_def, "Same", ["a"], ["a"], lambda: scalar("a"))
    graph_def.message.node.add(name="s", op="Same", input=["f"])
    graph_def.message.node.add(name="v", op="Square", input=["s"])
    graph_def.message.node_count += 2
    assert run(graph_def, "v:0", x=3.0, y=2.0) == 36.0


def test_control_edges_go_around_the_call() -> None:
    graph_def = caller()
    graph_def.message.node.add(name="w", op="Square", input=["x", "^f"])
    graph_def.message.node[2].input.append("^y")
    graph_def.message.node_count += 1
    with eng.Graph().as_default() as graph:
        eng.import_graph_def(graph_def, name="")
    controls = {op.name: [c.name for c in op.control_inputs] for op in graph.operations}
    assert controls["w"] == ["f/p", "f/q"]
    assert controls["f/p"] == controls["f/q"] == ["y"]


def _recursive(m: Any) -> None:
    m.function[0].node.add(name="again", op="MulAdd", input=["a", "b"])


def _circle(m: Any) -> None:
    same = m.function.add(name="Same", input=["a"], output=["a"])
    same.node.append(m.function[0].node[0])
    m.node.add(name="s", op="Same", input=["t"])
    m.node.add(name="t", op="Same", input=["s"])
    m.node.add(name="v", op="Square", input=["t"])


def _explodes(m: Any) -> None:
    for i in range(40):
        made = m.function.add(name=f"F{i}")
        for k in range(2):
            made.node.add(name=f"n{k}", op=f"F{i + 1}" if i < 39 else "NoOp")
    m.node.add(name="s", op="F0")


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        (_recursive, InvalidArgumentError, "the function 'MulAdd' calls itself"),
        (_circle, InvalidArgumentError, "its own value"),
        (_explodes, ResourceExhaustedError, "over 1000 nodes"),
        (lambda m: m.node[2].input.append("x"), InvalidArgumentError, "takes 2 inputs, got 3"),
        (lambda m: m.function.add(name="MulAdd"), AlreadyExistsError, "two functions 'MulAdd'"),
        (lambda m: m.function[0].output.append("r"), NotFoundError, "has no node 'r'"),
        (lambda m: m.node.add(name="v", op="Square", input=["f:2"]), NotFoundError, "2 outputs"),
        (lambda m: m.node.add(name="f/p", op="NoOp"), InvalidArgumentError, "two nodes 'f/p'"),
    ],
)
def test_libraries_that_cannot_be(
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Any], Any],
    kind: type[LaminarError],
    message: str,
) -> None:
    monkeypatch.setattr("laminar.engine.graph.library.MOST_NODES", 1000)
    graph_def = caller()
    change(graph_def.message)
    with eng.Graph().as_default() as graph, pytest.raises(kind, match=message):
        eng.import_graph_def(graph_def)
    assert graph.version == 0
