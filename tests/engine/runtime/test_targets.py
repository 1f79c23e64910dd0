"""Session engines: targets, what travels to them, and graphs that grow."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    AlreadyExistsError,
    FailedPreconditionError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    UnavailableError,
)
from laminar.engine.ops.math.arithmetic import add, square
from laminar.engine.runtime.direct import DirectSession

_numbers = itertools.count()


class Recorder(DirectSession):
    """An engine that writes down what it is sent."""

    made: list[Recorder] = []
    resets: list[Any] = []

    def __init__(self, target: str, graph: eng.Graph, config: eng.SessionConfig) -> None:
        super().__init__(target, graph, config)
        self.target = target
        self.sent: list[list[str]] = []
        self.closed = 0
        self.made.append(self)

    def extend(self, operations: Sequence[eng.Operation]) -> None:
        """Keep the names."""
        self.sent.append([op.name for op in operations])

    def close(self) -> None:
        """Count."""
        self.closed += 1
        super().close()


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    Recorder.made.clear()
    with eng.Graph().as_default() as fresh:
        yield fresh


def register(factory: Any = Recorder) -> str:
    scheme = f"test{next(_numbers)}"
    eng.register_session_target(scheme, factory, lambda *args: Recorder.resets.append(args))
    return f"{scheme}://there"


def test_only_new_operations_travel() -> None:
    target = register()
    x = eng.placeholder("float32", [], name="x")
    y = square(x, name="y")
    with eng.Session(target) as session:
        (engine,) = Recorder.made
        assert engine.target == target
        assert engine.sent == []
        assert session.run(y, {x: 3.0}) == 9.0
        assert session.run(y, {x: 4.0}) == 16.0
        assert engine.sent == [["x", "y"]]
        z = square(y, name="z")
        assert session.run(z, {x: 2.0}) == 16.0
        assert engine.sent == [["x", "y"], ["z"]]
        square(z, name="w")
        assert session.make_callable(y, [x])(1.0) == 1.0
        assert engine.sent[2:] == [["w"]]
    session.close()
    assert engine.closed == 1


def test_containers_of_a_target() -> None:
    target = register()
    eng.Session.reset(target, ["a"])
    assert Recorder.resets == [(target, ["a"])]


def test_targets_are_registered_once() -> None:
    scheme = register().partition(":")[0]
    with pytest.raises(AlreadyExistsError):
        eng.register_session_target(scheme, Recorder)
    with pytest.raises(InvalidArgumentError, match="is not a scheme"):
        eng.register_session_target("a://", Recorder)
    with pytest.raises(NotFoundError, match="no session serves the target 'nowhere://x'"):
        eng.Session("nowhere://x")


def test_an_engine_that_cannot_be_made() -> None:
    def broken(*args: Any) -> Any:
        raise OSError("no wire")

    def refused(*args: Any) -> Any:
        raise UnavailableError("nobody listens")

    with pytest.raises(InternalError, match="no session could be made for .*: no wire"):
        eng.Session(register(broken))
    with pytest.raises(UnavailableError, match="nobody listens"):
        eng.Session(register(refused))


# Graphs that grow


def nodes(graph: eng.Graph, *names: str) -> eng.GraphDef:
    """Some nodes of a graph as data."""
    found = graph.as_graph_def()
    kept = [n for n in found.message.node if n.name in names]
    del found.message.node[:]
    found.message.node.extend(kept)
    return found


def test_extend_brings_new_nodes_and_keeps_state() -> None:
    with eng.Graph().as_default() as source:
        v = eng.Variable(2.0, name="v")
        total = add(v.assign_add(1.0), 0.5, name="total")
        square(total, name="more")
    first = [op.name for op in source.operations if op.name != "more"]
    with eng.Session(graph=eng.Graph()) as session:
        session.extend(nodes(source, *first))
        session.run(v.initializer.name)
        assert session.run("total:0") == 3.5
        session.extend(nodes(source, "more"))
        assert session.run("more:0") == 4.5**2  # the variable was 3
        with pytest.raises(InvalidArgumentError, match="'more' already"):
            session.extend(nodes(source, "more"))
        assert session.run("total:0") == 5.5
    with pytest.raises(FailedPreconditionError, match="the session is closed"):
        session.extend(nodes(source, "more"))


def test_extend_refuses_nodes_without_their_inputs(graph: eng.Graph) -> None:
    with eng.Graph().as_default() as source:
        square(eng.placeholder("float32", [], name="x"), name="y")
    with eng.Session() as session:
        with pytest.raises(InvalidArgumentError, match="takes 'x', which the GraphDef does not"):
            session.extend(nodes(source, "y"))
        assert graph.version == 0
        session.extend(eng.GraphDef())
