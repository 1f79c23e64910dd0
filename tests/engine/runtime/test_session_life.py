"""Sessions: opening and closing, defaults, state of their own, containers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from laminar.engine.ops.math.arithmetic import square


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    """A graph of its own for each test."""
    with eng.Graph().as_default() as fresh:
        yield fresh


def test_closing() -> None:
    x = eng.constant(1.0)
    session = eng.Session()
    session.run(x)
    session.close()
    session.close()
    with pytest.raises(RuntimeError, match="the session is closed"):
        session.run(x)


def test_sessions_have_state_of_their_own() -> None:
    v = eng.Variable(1.0, name="v")
    add_one = v.assign_add(1.0)
    one, two = eng.Session(), eng.Session()
    one.run(v.initializer)
    assert one.run(add_one) == 2.0
    with pytest.raises(FailedPreconditionError, match="variable 'v' is read before it is init"):
        two.run(v)
    two.run(v.initializer)
    assert (one.run(v), two.run(v)) == (2.0, 1.0)
    one.close()
    assert two.run(v) == 1.0
    two.close()
    with eng.Session() as fresh, pytest.raises(FailedPreconditionError):
        fresh.run(v)


def test_a_session_keeps_its_graph() -> None:
    with eng.Graph().as_default() as other:
        y = square(eng.constant(3.0))
    session = eng.Session(graph=other)
    del other
    assert session.run(y) == 9.0
    session.close()


def test_the_default_session(graph: eng.Graph) -> None:
    x = eng.constant(2.0)
    assert eng.get_default_session() is None
    with eng.Session() as session:
        assert eng.get_default_session() is session
        assert eng.get_default_graph() is graph
        assert x.eval() == 2.0  # type: ignore[attr-defined]  # in a graph
        eng.no_op().run()
    assert eng.get_default_session() is None
    with pytest.raises(RuntimeError, match="closed"):
        session.run(x)
    with pytest.raises(ValueError, match="needs a session and none is the default"):
        eng.no_op().run()


def test_as_default_does_not_close() -> None:
    x = eng.constant(2.0)
    session = eng.Session()
    with session.as_default() as entered:
        assert entered is session
        assert x.eval() == 2.0  # type: ignore[attr-defined]  # in a graph
    assert session.run(x) == 2.0
    session.close()


def test_default_sessions_nest() -> None:
    one, two = eng.Session(), eng.Session()
    with one.as_default(), two.as_default():
        with one.as_default():
            assert eng.get_default_session() is one
        assert eng.get_default_session() is two
    assert eng.get_default_session() is None


def test_each_thread_has_its_own_default_session() -> None:
    x: Any = eng.constant(2.0)
    found: list[Any] = []

    def look() -> None:
        found.append(eng.get_default_session())
        try:
            x.eval()
        except InvalidArgumentError as error:
            found.append(error.message)

    with eng.Session():
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert found == [None, "Const:0.eval() needs a session and none is the default"]


def test_a_session_is_left_and_closed_after_an_error() -> None:
    session = eng.Session()
    with pytest.raises(KeyError), session:
        raise KeyError
    assert eng.get_default_session() is None
    with pytest.raises(RuntimeError, match="closed"):
        session.run([])


def test_interactive_sessions() -> None:
    with eng.Graph().as_default() as other:
        x: Any = eng.constant(2.0)
    one = eng.InteractiveSession(graph=other)
    assert eng.get_default_session() is one
    assert eng.get_default_graph() is other
    assert x.eval() == 2.0
    two = eng.InteractiveSession()
    assert eng.get_default_session() is two
    one.close()  # not in order
    one.close()
    assert eng.get_default_session() is two
    two.close()
    assert eng.get_default_session() is None


@pytest.mark.parametrize("target", ["foo://x", "grpc", "local"])
def test_targets_that_nothing_serves(target: str) -> None:
    with pytest.raises(NotFoundError, match="no session serves the target"):
        eng.Session(target)
    with pytest.raises(NotFoundError, match="no session serves the target"):
        eng.Session.reset(target)


# Containers


def test_containers_are_reset_by_name() -> None:
    with eng.container("experiment0"):
        a = eng.Variable(1.0, name="a")
    with eng.container("experiment1"):
        b = eng.Variable(2.0, name="b")
    c = eng.Variable(3.0, name="c")
    with eng.Session() as session:
        session.run(eng.global_variables_initializer())
        assert session.run([a, b, c]) == [1.0, 2.0, 3.0]
        eng.Session.reset("", ["experiment0"])
        with pytest.raises(FailedPreconditionError, match="variable 'a'"):
            session.run(a)
        assert session.run([b, c]) == [2.0, 3.0]
        eng.Session.reset()
        with pytest.raises(FailedPreconditionError, match="variable 'b'"):
            session.run(b)
        assert session.run(c) == 3.0


def test_sessions_share_named_containers() -> None:
    def counter(graph: eng.Graph, dtype: str = "float32") -> Any:
        with graph.as_default(), eng.container("shared"):
            return eng.Variable(0.0, dtype=dtype, name="n")

    graphs = [eng.Graph(), eng.Graph(), eng.Graph()]
    a, b = counter(graphs[0]), counter(graphs[1])
    with graphs[0].as_default():
        add_five = a.assign_add(5.0)
    with eng.Session(graph=graphs[0]) as one, eng.Session(graph=graphs[1]) as two:
        one.run(a.initializer)
        one.run(add_five)
        assert two.run(b) == 5.0
        different = counter(graphs[2], "float64")
        with (
            eng.Session(graph=graphs[2]) as three,
            pytest.raises(InvalidArgumentError, match="is float64.* here, and float32"),
        ):
            three.run(different.initializer)
        eng.Session.reset("", ["shared"])
        with pytest.raises(FailedPreconditionError):
            two.run(b)
