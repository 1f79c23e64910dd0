"""What queues, tables, generators and variables hold, by their ops."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import engine
from laminar.engine import FIFOQueue, GradientTape, MutableHashTable, Variable
from laminar.engine.graph import uint32
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.random.source import random_generator, random_next
from laminar.engine.ops.state.contents import resource_state, set_resource_state
from laminar.engine.ops.state.variable import ensure_initialized, initialized_value

from ..harness import check_op

X = np.random.default_rng(0).normal(size=(3, 4))


def test_a_queue_holds_what_another_one_held() -> None:
    first, other = (FIFOQueue(9, ["float32"], [[]]) for _ in range(2))
    first.enqueue_many([np.array([1, 2], "float32")])
    other.enqueue([np.float32(7)])
    set_resource_state.many(other.handle, resource_state(first.handle))
    assert [float(other.dequeue()) for _ in range(2)] == [1, 2]
    assert first.size().numpy() == 2


def test_a_table_holds_what_another_one_held() -> None:
    first, other = (MutableHashTable("string", "int64", -1) for _ in range(2))
    first.insert(np.array([b"a", b"b"], object), np.array([3, 4]))
    set_resource_state.many(other.handle, resource_state(first.handle))
    found = other.lookup(convert_to_tensor(np.array([b"b", b"c"], object)))
    assert found.numpy().tolist() == [4, -1]


def test_draws_of_a_generator_differ_and_begin_alike() -> None:
    def states(seed: int) -> list[Any]:
        handle = random_generator(seed=seed, container="", shared_name=f"of {seed}")
        found = [random_next(handle) for _ in range(3)]
        assert all(s.dtype == uint32 and s.shape == (4,) for s in found)
        return [s.numpy().tolist() for s in found]

    first = states(1)
    assert first[0] != first[1] != first[2]
    assert states(1) == first
    assert states(2) != first


def test_a_value_that_is_there_is_kept() -> None:
    with engine.Graph().as_default() as graph:
        v = Variable(np.array([1.0, 2.0]), name="v")
        other = engine.constant([5.0, 6.0], "float64")
        now = initialized_value(v.handle, other)
        ensure_initialized.many(v.handle, other)
        ensure = graph.get_operations()[-1]
        change = v.assign([7.0, 8.0])
    with engine.Session(graph=graph) as session:
        assert session.run(now).tolist() == [5, 6]
        session.run(ensure)
        assert session.run(v).tolist() == [5, 6]
        session.run(change)
        session.run(ensure)
        assert session.run(now).tolist() == [7, 8]


def test_the_gradient_of_an_initial_value_is_that_of_a_read() -> None:
    """It is found inside `fn`, whose own derivatives then go through it."""
    v = Variable(np.full((3, 4), 2.0))
    unused = np.zeros((3, 4))

    def slope_times_x(x: Any) -> Any:
        with GradientTape() as tape:
            tape.watch(v)
            now = initialized_value(v.handle, convert_to_tensor(unused))
            y = now * now * x
        return tape.gradient(y, v) * x

    check_op(slope_times_x, lambda x: 4 * x * x, [X])
