"""State made in branches, bodies and functions of a plain graph is that graph's, per session."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine import (
    FIFOQueue,
    Graph,
    GraphKeys,
    RandomShuffleQueue,
    Session,
    SessionConfig,
    Variable,
    colocate_with,
    cond,
    constant,
    control_dependencies,
    device,
    function,
    get_default_graph,
    global_variables,
    global_variables_initializer,
    gradients,
    group,
    placeholder,
    while_loop,
)
from laminar.engine.errors import InvalidArgumentError


def counted() -> Any:
    """A variable that is made where it is used."""
    return Variable(np.float32(1.0), name="counter").assign_add(2.0)


def in_a_branch() -> Any:
    return cond(placeholder("bool", [], name="p"), counted, lambda: 0.0)


def counting() -> Any:
    """A function that makes a variable in its first call."""
    made: list[Variable] = []

    @function
    def step(x: Any) -> Any:
        if not made:
            made.append(Variable(np.float32(1.0), name="counter"))
        return made[0].assign_add(x)

    return step


def in_a_function() -> Any:
    return counting()(constant(2.0))


def in_a_function_in_a_branch() -> Any:
    step = counting()
    return cond(placeholder("bool", [], name="p"), lambda: step(constant(2.0)), lambda: 0.0)


def in_a_body() -> Any:
    def body(i: Any, x: Any) -> Any:
        return i + 1, counted()

    return while_loop(lambda i, x: i < 1, body, [0, 0.0])[1]


@pytest.mark.parametrize(
    "build", [in_a_branch, in_a_function, in_a_function_in_a_branch, in_a_body]
)
@pytest.mark.parametrize("compiled", [False, True])
def test_sessions_have_variables_of_their_own(build: Callable[[], Any], compiled: bool) -> None:
    with Graph().as_default() as graph:
        value = build()
        assert len(global_variables()) == 1
        start = global_variables_initializer()
        feeds = {"p:0": True} if "p" in [op.name for op in graph.operations] else {}
        config = SessionConfig(jit_compile=compiled)
        with Session(graph=graph, config=config) as one, Session(graph=graph, config=config) as two:
            one.run(start)
            two.run(start)
            assert [float(one.run(value, feeds)) for _ in range(3)] == [3.0, 5.0, 7.0]
            assert float(two.run(value, feeds)) == 3.0


def test_gradients_reach_a_variable_of_a_body() -> None:
    made: list[Variable] = []

    def body(i: Any, x: Any) -> Any:
        made.append(Variable(np.float32(2.0)))
        return i + 1, x * made[0]

    with Graph().as_default():
        y = while_loop(lambda i, x: i < 3, body, [0, 1.0])[1]
        (slope,) = gradients(y, [made[0]])
        with Session() as session:
            session.run(global_variables_initializer())
            assert session.run([y, slope]) == [8.0, 12.0]


def test_a_value_of_a_branch_cannot_initialise_a_variable() -> None:
    with Graph().as_default():
        x = placeholder("float32", [])
        with pytest.raises(InvalidArgumentError, match="the graph around it, which initialises"):
            cond(x > 0, lambda: Variable(x * 2.0, name="w") * 1.0, lambda: 0.0)


def test_queues_and_collections() -> None:
    def branch() -> Any:
        queue = FIFOQueue(9, "float32", [])
        get_default_graph().add_to_collection(GraphKeys.UPDATE_OPS, "note")
        with control_dependencies([queue.enqueue(1.0)]):
            return queue.size()

    with Graph().as_default() as graph:
        size = cond(placeholder("bool", [], name="p"), branch, lambda: 0)
        assert graph.get_collection(GraphKeys.UPDATE_OPS) == ["note"]
        with Session() as one, Session() as two:
            assert [int(one.run(size, {"p:0": True})) for _ in range(2)] == [1, 2]
            assert int(two.run(size, {"p:0": True})) == 1


def test_a_shared_shuffling_queue_under_the_seed_of_a_graph() -> None:
    with Graph().as_default() as graph:
        graph.seed = 3
        first, second = (
            RandomShuffleQueue(9, 0, "float32", [], shared_name="shared") for _ in range(2)
        )
        fill, take = first.enqueue_many([1.0, 2.0, 3.0]), second.dequeue_many(3)
        with Session() as session:
            session.run(fill)
            assert sorted(session.run(take)) == [1.0, 2.0, 3.0]


@pytest.mark.parametrize("as_operation", [False, True])
@pytest.mark.parametrize("kind", ["branch", "body", "function"])
def test_control_dependencies_on_what_is_outside(kind: str, as_operation: bool) -> None:
    """The read inside sees the update outside."""
    with Graph().as_default():
        v = Variable(np.float32(1.0))
        update = v.assign_add(5.0)
        before = group(update) if as_operation else update

        def read() -> Any:
            with control_dependencies([before]):
                return v + 0.0

        p = placeholder("bool", [])
        if kind == "branch":
            value = cond(p, read, lambda: 0.0)
        elif kind == "body":
            value = while_loop(lambda i, x: i < 1, lambda i, x: (i + 1, read()), [0, 0.0])[1]
        else:
            value = function(read)()
        with Session() as session:
            session.run(v.initializer)
            assert float(session.run(value, {p: True})) == 6.0
            assert float(session.run(value, {p: True})) == 11.0


def test_colocation_with_what_is_outside() -> None:
    with Graph().as_default():
        with device("/cpu:0"):
            x = constant(2.0)

        def branch() -> Any:
            with colocate_with(x), control_dependencies([x]):
                return ops.square(x)

        y = cond(placeholder("bool", [], name="p"), branch, lambda: 0.0)
        with Session() as session:
            assert float(session.run(y, {"p:0": True})) == 4.0


def test_tables_of_a_body() -> None:
    """They are filled by the graph around it, whose initializers they are among."""
    with eng.Graph().as_default():
        keys = eng.constant([1, 2, 3], "int32")

        def look_up(x: Any) -> Any:
            entries = eng.KeyValueTensorInitializer(keys, np.array([5, 10, 15], "int32"))
            return eng.HashTable(entries, -1).lookup(x)

        found = ops.map(look_up, np.array([2, 4, 1], "int32"))
        initializer = eng.tables_initializer()
        with eng.Session() as session:
            session.run(initializer)
            np.testing.assert_array_equal(session.run(found), [10, -1, 5])
