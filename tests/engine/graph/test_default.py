"""The stack of default graphs."""

from __future__ import annotations

import threading

import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError
from laminar.engine.graph import building
from laminar.engine.graph.graph import stack


def test_default_graphs_nest() -> None:
    implicit = eng.get_default_graph()
    one, two = eng.Graph(), eng.Graph()
    with one.as_default() as entered:
        assert entered is one
        with two.as_default():
            assert eng.get_default_graph() is building() is two
            x = eng.constant(1.0)
        assert eng.get_default_graph() is one
    assert x.graph is two  # type: ignore[attr-defined]  # in a graph
    assert eng.get_default_graph() is implicit
    assert building() is None


def test_the_stack_is_restored_after_an_error() -> None:
    before = eng.get_default_graph()
    with pytest.raises(KeyError), eng.Graph().as_default():
        raise KeyError
    assert eng.get_default_graph() is before


def test_a_thread_does_not_inherit_it() -> None:
    found: list[object] = []
    implicit = eng.get_default_graph()
    with eng.Graph().as_default():
        thread = threading.Thread(
            target=lambda: found.extend((building(), eng.get_default_graph()))
        )
        thread.start()
        thread.join()
    assert found == [None, implicit]


def test_blocks_are_left_in_order() -> None:
    one, two = eng.Graph().as_default(), eng.Graph().as_default()
    one.__enter__()
    two.__enter__()
    with pytest.raises(FailedPreconditionError, match="in the order of entering"):
        one.__exit__(None, None, None)
    two.__exit__(None, None, None)
    stack.items.clear()


def test_reset() -> None:
    before = eng.get_default_graph()
    eng.reset_default_graph()
    assert eng.get_default_graph() is not before
    with (
        eng.Graph().as_default(),
        pytest.raises(FailedPreconditionError, match="inside a graph's as_default"),
    ):
        eng.reset_default_graph()


def test_eager_scope_computes_at_once() -> None:
    with eng.Graph().as_default() as graph:
        with eng.eager_scope():
            x = eng.constant(2.0) * 3.0
            assert building() is None
        assert graph.version == 0
        assert building() is graph
    assert float(x) == 6.0


def test_outside_of_graphs_everything_is_computed_at_once() -> None:
    eng.reset_default_graph()
    x = eng.constant(2.0) * 3
    assert x.numpy() == 6.0
    assert eng.get_default_graph().version == 0


def test_the_implicit_graph_is_built_through_its_symbols() -> None:
    eng.reset_default_graph()
    x = eng.placeholder("float32", [], name="x")
    y = x * 2.0 + 1.0
    assert y.graph is eng.get_default_graph()
    with eng.Session() as session:
        assert session.run(y, {x: 3.0}) == 7.0
