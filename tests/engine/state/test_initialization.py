"""Groups of variables, their initializers, and what is not initialised yet."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, random
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


def test_a_random_initial_value_stands_alone() -> None:
    w = eng.Variable(random.normal((3,)), name="w")
    u = eng.Variable(random.normal((3,)), name="u")
    with eng.Session() as session:
        session.run(u.initializer)  # draws come one after the other, so that of w is made too
        alone = session.run(u)
        session.run(w.initializer)
        assert len({*session.run(w), *alone}) == 6
    for init in (eng.global_variables_initializer(), eng.variables_initializer([u, w])):
        with eng.Session() as session:
            session.run(init)
            np.testing.assert_array_equal(session.run(u), alone)
            assert np.isfinite(session.run(random.normal((2,)))).all()  # the generator goes on


def test_initial_values_that_depend_on_each_other() -> None:
    x = eng.placeholder("float32", [], name="x")
    w = eng.Variable(x * 1.0, name="w")
    u = eng.Variable(w * 2.0, name="u")
    t = eng.Variable(ops.where(u > 4.0, u + w, w.initialized_value() - u), name="t")
    orders = [[t, u, w], [w, u, t], [u, t], [t], [u]]
    inits = [eng.variables_initializer(order) for order in orders]
    for order, init in zip(orders, inits, strict=True):
        with eng.Session(config=eng.SessionConfig(inter_op_threads=[4])) as session:
            for value in (1.0, 5.0):  # a second run goes by the values that the first one gave
                session.run(init, {x: value})
            found = dict(zip([v.name for v in order], session.run(order), strict=True))
            expected = {"w": 5.0, "u": 10.0, "t": 15.0}
            assert found == {name: expected[name] for name in found}


def test_initial_values_go_by_what_is_initialised() -> None:
    w = eng.Variable(1.0, name="w")
    u = eng.Variable(w * 2.0, name="u")
    init = eng.variables_initializer([u, w])
    with eng.Session() as session:
        session.run(w.initializer)
        session.run(w.assign(5.0))
        session.run(u.initializer)
        assert session.run([w, u]) == [5.0, 10.0]
        session.run(init)
        assert session.run([w, u]) == [1.0, 2.0]


def test_an_initial_value_alone_leaves_the_others_as_they_are() -> None:
    w = eng.Variable(3.0, name="w")
    doubled = w * 2.0
    u = eng.Variable(doubled, name="u")
    with eng.Session() as session:
        session.run(u.initializer)
        assert session.run(u) == 6.0
        for wanted in (w, doubled):  # what is read elsewhere still needs a value
            with pytest.raises(FailedPreconditionError, match="variable 'w' is read before"):
                session.run(wanted)


def test_an_initial_value_that_a_branch_reads() -> None:
    w = eng.Variable(3.0, name="w")
    u = eng.Variable(ops.cond(w > 2.0, lambda: w * 2.0, lambda: w * 3.0), name="u")
    init = eng.variables_initializer([u, w])
    with eng.Session() as session:
        session.run(u.initializer)
        assert session.run([u, w]) == [6.0, 3.0]
        session.run(w.assign(1.0))
        session.run(u.initializer)
        assert session.run(u) == 3.0
        session.run(init)
        assert session.run([u, w]) == [6.0, 3.0]


def test_an_initial_value_that_updates() -> None:
    n = eng.Variable(1.0, name="n")
    u = eng.Variable(n.assign_add(1.0) * 10.0, name="u")
    with eng.Session() as session:
        session.run(u.initializer)
        assert session.run([u, n]) == [20.0, 2.0]
        session.run(eng.global_variables_initializer())
        assert session.run([u, n]) == [20.0, 2.0]


def test_the_report_over_several_devices() -> None:
    with eng.device("/cpu:1"):
        w = eng.Variable(1.0, name="w")
    with eng.device("/cpu:0"):
        eng.Variable(2.0, name="u")
    report = eng.report_uninitialized_variables()
    with eng.Session(config=eng.SessionConfig(device_count={"CPU": 2})) as session:
        assert session.run(report).tolist() == [b"w", b"u"]
        session.run(w.initializer)
        assert session.run(report).tolist() == [b"u"]


def test_the_report_tells_of_tables() -> None:
    eng.Variable(1.0, name="w")
    table = eng.HashTable(eng.KeyValueTensorInitializer(["a"], [1]), -1, name="words")
    eng.MutableHashTable("string", "int64", 0)  # is never without a value
    report, tables = eng.report_uninitialized_variables(), eng.report_uninitialized_resources()
    with eng.Session() as session:
        assert session.run(report).tolist() == [b"w", b"words"]
        assert session.run(tables).tolist() == [b"words"]
        session.run(table.initializer)
        assert session.run(report).tolist() == [b"w"]
        assert session.run(tables).tolist() == []
