"""Groups of variables, their initializers, and what is not initialised yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import GraphKeys
from laminar.engine.errors import AlreadyExistsError, FailedPreconditionError


@pytest.fixture(autouse=True)
def graph() -> Iterator[eng.Graph]:
    with eng.Graph().as_default() as fresh:
        yield fresh


def local(name: str) -> eng.Variable:
    return eng.Variable(0, name=name, trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])


def test_a_grouped_initializer_does_nothing_itself() -> None:
    v, w = eng.Variable(1.0, name="v"), eng.Variable(2.0, name="w")
    init = eng.variables_initializer([v, w])
    assert (init.type, init.inputs, init.outputs) == ("NoOp", (), ())
    assert init.control_inputs == [v.initializer, w.initializer]
    assert eng.global_variables_initializer().control_inputs == [v.initializer, w.initializer]
    assert eng.local_variables_initializer().control_inputs == []


def test_groups() -> None:
    v = eng.Variable(1.0, name="v")
    w = eng.Variable(1.0, name="w", trainable=False)
    n = local("n")
    assert [x.name for x in eng.global_variables()] == ["v", "w"]
    assert [x.name for x in eng.trainable_variables()] == ["v"]
    assert [x.name for x in eng.local_variables()] == ["n"]
    with eng.Session() as session:
        session.run(eng.global_variables_initializer())
        assert session.run([v, w]) == [1.0, 1.0]
        with pytest.raises(FailedPreconditionError, match="variable 'n'"):
            session.run(n)
        session.run(eng.local_variables_initializer())
        assert session.run(n) == 0


def test_one_initializer_initialises_one_variable() -> None:
    v, w = eng.Variable(1.0, name="v"), eng.Variable(2.0, name="w")
    with eng.Session() as session:
        session.run(v.initializer)
        assert session.run(v) == 1.0
        with pytest.raises(FailedPreconditionError, match="variable 'w'"):
            session.run(w)


def test_report() -> None:
    v, _ = eng.Variable(1.0, name="v"), eng.Variable(2.0, name="w")
    n = local("n")
    report = eng.report_uninitialized_variables()
    some = eng.report_uninitialized_variables([v], name="some")
    assert report.dtype == "string"
    with eng.Session() as session:
        assert session.run(report).tolist() == [b"v", b"w", b"n"]
        session.run([v.initializer, n.initializer])
        assert session.run(report).tolist() == [b"w"]
        session.run(eng.global_variables_initializer())
        found = session.run([report, some])
    assert [f.shape for f in found] == [(0,), (0,)]
    assert found[0].dtype == object


def test_report_without_variables() -> None:
    with eng.Session() as session:
        assert session.run(eng.report_uninitialized_variables()).shape == (0,)


def test_global_step(graph: eng.Graph) -> None:
    assert eng.get_global_step() is None
    with eng.name_scope("model"):
        step = eng.create_global_step()
    assert (step.name, step.dtype, step.shape, step.trainable) == (
        "global_step",
        "int64",
        (),
        False,
    )
    assert eng.get_global_step() is step
    assert eng.get_global_step(graph) is step
    assert step in [v for v in eng.global_variables() if v is step]
    assert eng.trainable_variables() == []
    with pytest.raises(AlreadyExistsError, match="has a global_step already"):
        eng.create_global_step(graph)
    more = step.assign_add(1)
    with eng.Session() as session:
        session.run(eng.global_variables_initializer())
        session.run(more)
        found = session.run(step)
    assert (found, found.dtype) == (1, np.int64)


def test_group() -> None:
    v, w = eng.Variable(1.0, name="v"), eng.Variable(2.0, name="w")
    both = eng.group(v.initializer, w.initializer, name="both")
    updates = eng.group(v.assign_add(1.0), w.assign_sub(1.0))
    assert (both.name, updates.name) == ("both", "group")
    with eng.Session() as session:
        assert session.run(both) is None
        assert session.run(updates) is None
        assert session.run([v, w]) == [2.0, 1.0]


def test_group_takes_the_graph_of_its_inputs(graph: eng.Graph) -> None:
    op = eng.no_op("first")
    with eng.eager_scope():
        assert eng.group(op).graph is graph
