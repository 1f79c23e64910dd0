"""Barriers, staging areas and stacks in sessions, in functions and at once."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    CancelledError,
    DTypeError,
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ShapeError,
)


def test_a_barrier() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        barrier = eng.Barrier(("float32", "int64"), shapes=((), (2,)))
        first = barrier.insert_many(0, ["a", "b", "c"], [1.0, 2.0, 3.0])
        second = barrier.insert_many(1, ["c", "a"], [[3, 3], [1, 1]])
        indices, keys, (x, y) = barrier.take_many(2)
        assert [str(t.spec) for t in (indices, keys, x, y)] == [
            "int64[2]",
            "string[2]",
            "float32[2]",
            "int64[2, 2]",
        ]
        found: list[Any] = []
        thread = threading.Thread(target=lambda: found.append(session.run([keys, x, y])))
        thread.start()
        session.run([first])
        session.run(second)
        thread.join(20)
        assert [v.tolist() for v in found[0]] == [[b"a", b"c"], [1, 3], [[1, 1], [3, 3]]]
        assert session.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 1]
        session.run(barrier.close())
        with pytest.raises(CancelledError, match="is closed"):
            session.run(second)
        with pytest.raises(OutOfRangeError, match="too few"):
            session.run(keys)


def test_what_a_barrier_refuses() -> None:
    with eng.Graph().as_default():
        barrier = eng.Barrier(("float32", "float32"), shapes=((), (8,)))
        with pytest.raises(ShapeError):
            barrier.insert_many(1, ["a"], [[1.0, 2.0]])
        with pytest.raises(DTypeError):
            barrier.insert_many(0, ["a"], eng.constant([1]))
        with pytest.raises(InvalidArgumentError, match="there is no 2"):
            barrier.insert_many(2, ["a"], [1.0])
        with pytest.raises(ShapeError, match="has no elements"):
            eng.Barrier("float32", shapes=(0,))


def test_a_staging_area() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        x = eng.placeholder("float32", [2])
        area = eng.StagingArea(["float32", "float32"], shapes=[(2,), ()], names=["x", "total"])
        put = area.put({"x": x, "total": eng.constant(7.0)})
        taken = area.get()
        assert str(taken["x"].spec) == "float32[2]"
        session.run(put, {x: [1.0, 2.0]})
        seen = session.run(area.peek(0)["x"])
        # What is put down in this step is taken by the next one.
        both = session.run([taken, put], {x: [3.0, 4.0]})
        assert seen.tolist() == both[0]["x"].tolist() == [1.0, 2.0]
        assert session.run(area.size()) == 1
        session.run(area.clear())
        assert session.run(area.size()) == 0


def test_an_area_under_keys() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        key = eng.placeholder("int64", [])
        area = eng.MapStagingArea(["float32", "string"], shapes=[(), ()], ordered=True)
        numbers, words = area.put(key, [1.5], [0]), area.put(key, ["w"], 1)
        session.run(numbers, {key: 4})
        assert session.run([area.size(), area.incomplete_size()]) == [0, 1]
        session.run(words, {key: 4})
        session.run(area.put(2, [2.5, "v"]))
        assert session.run(area.peek(4)) == [1.5, b"w"]
        found_key, values = session.run(area.get())
        assert (found_key, values) == (2, [2.5, b"v"])
        assert session.run(area.get(4, indices=[1])[1]) == b"w"
        assert session.run(area.get(4, indices=0)) == (4, 1.5)
        assert session.run(area.size()) == 0


def test_names_of_an_area_under_keys() -> None:
    area = eng.MapStagingArea(["float32", "int32"], names=["x", "n"])
    area.put(1, {"n": 3})
    area.put(1, {"x": 2.0})
    _, found = area.get(1, indices="n")
    assert found["n"].numpy() == 3
    assert area.peek(1, "x")["x"].numpy() == 2.0
    with pytest.raises(InvalidArgumentError, match="there is no component 'y'"):
        area.get(1, "y")
    with pytest.raises(InvalidArgumentError, match="expected a dict"):
        area.put(1, [2.0])
    area.clear()
    assert (area.size().numpy(), area.incomplete_size().numpy()) == (0, 0)


def test_a_stack() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        stack = eng.Stack("float32", shape=[2])
        first = stack.push([1.0, 2.0])
        with eng.control_dependencies([first]):
            second = stack.push([3.0, 4.0])
        with eng.control_dependencies([second]):
            top = stack.pop()
        with eng.control_dependencies([top]):
            below = stack.pop()
        assert str(top.spec) == "float32[2]"
        for _ in range(2):  # each step has a stack of its own
            assert [v.tolist() for v in session.run([top, below])] == [[3.0, 4.0], [1.0, 2.0]]


def test_a_stack_in_a_function() -> None:
    @eng.function
    def reversed_(x: Any) -> Any:
        stack = eng.Stack("float32", max_size=3)
        for i in range(3):
            stack.push(x[i])
        popped = [stack.pop() for _ in range(3)]
        stack.close()
        return popped

    assert [float(v) for v in reversed_(np.asarray([1.0, 2.0, 3.0], "float32"))] == [3, 2, 1]
    stack = eng.Stack("int32", max_size=1)
    stack.push(1)
    with pytest.raises(LaminarError, match="room for 1"):
        stack.push(2)
