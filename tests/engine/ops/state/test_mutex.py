"""Mutexes as ops."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import (
    FIFOQueue,
    Graph,
    Mutex,
    Session,
    Variable,
    assign,
    control_dependencies,
    global_variables_initializer,
    group,
)
from laminar.engine.errors import FailedPreconditionError, OutOfRangeError


@pytest.mark.parametrize("named", [True, False])
def test_eight_threads_of_read_add_assign(named: bool) -> None:
    graph = Graph()
    with graph.as_default():
        counter = Variable(np.int32(0), name="counter")
        mutex = Mutex()
        lease = mutex.acquire()
        with control_dependencies([lease]):
            read = counter.read_value()
        with control_dependencies([assign(counter, read + 1)]):
            step = mutex.release(lease if named else None)
        init, held = global_variables_initializer(), mutex.is_held()
        value = counter.read_value()
    with Session(graph=graph) as session:
        session.run(init)

        def work() -> None:
            for _ in range(50):
                session.run(step)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert session.run(value) == 400
        assert not session.run(held)


def test_a_step_that_fails_gives_the_mutex_back() -> None:
    graph = Graph()
    with graph.as_default():
        mutex = Mutex()
        queue = FIFOQueue(3, "int32", [()])
        close = queue.close()
        with control_dependencies([mutex.acquire()]):
            fails = queue.dequeue()
        acquire, held = group(mutex.acquire()), mutex.is_held()
    with Session(graph=graph) as session:
        session.run(close)
        for _ in range(3):
            with pytest.raises(OutOfRangeError):
                session.run(fails)
            assert not session.run(held)
        session.run(acquire)  # it does not hang; a step that succeeds keeps it
        assert session.run(held)


def test_a_critical_section_in_a_graph() -> None:
    graph = Graph()
    with graph.as_default():
        counter = Variable(np.int32(0), name="counter")
        mutex = Mutex()

        def increment() -> Any:
            return assign(counter, counter.read_value() + 1)

        result = mutex.execute(increment)
        init, held = global_variables_initializer(), mutex.is_held()
    with Session(graph=graph) as session:
        session.run(init)
        run = session.make_callable(result)
        found: list[int] = []

        def work() -> None:
            found.extend(int(run()) for _ in range(30))

        threads = [threading.Thread(target=work, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(found) == list(range(1, 121))
        assert not session.run(held)


def test_eagerly() -> None:
    mutex = Mutex()
    lease = mutex.acquire()
    assert bool(mutex.is_held())
    mutex.release(lease)
    mutex.release()
    with pytest.raises(FailedPreconditionError, match="this thread has not acquired it"):
        Mutex().release()
    assert not bool(mutex.is_held())
    assert mutex.execute(lambda: bool(mutex.is_held()))
    with pytest.raises(ZeroDivisionError):
        mutex.execute(lambda: 1 // 0)
    assert not bool(mutex.is_held())


# Executing


def test_executing_under_it_once_more_is_refused() -> None:
    """It would wait for itself."""
    with eng.Graph().as_default():
        mutex, same, other = eng.Mutex("box"), eng.Mutex("box"), eng.Mutex()
        for inner in (mutex, same):
            execute = inner.execute
            with pytest.raises(FailedPreconditionError, match="under it once more"):
                mutex.execute(lambda: execute(lambda: eng.constant(1.0)))  # noqa: B023  # now
        y = mutex.execute(lambda: other.execute(lambda: eng.constant(1.0)))
        with eng.Session() as session:
            assert session.run(y) == 1.0
    one, two = eng.Mutex(), eng.Mutex()
    assert one.execute(lambda: two.execute(lambda: 3)) == 3
    with pytest.raises(FailedPreconditionError, match="under it once more"):
        one.execute(lambda: two.execute(lambda: one.execute(lambda: 3)))


def test_what_is_taken_from_outside_is_there_before() -> None:
    """The second waits for the first, which needs the mutex too."""
    with eng.Graph().as_default():
        mutex = eng.Mutex()
        first = mutex.execute(lambda: eng.constant(1.0) + 1.0)
        second = mutex.execute(lambda: first * 3.0)
        with eng.Session() as session:
            limit = eng.RunOptions(timeout_in_ms=20_000)
            for _ in range(5):
                assert session.run(second, options=limit) == 6.0


def test_in_loops_branches_and_functions() -> None:
    def count(mutex: eng.Mutex, n: Any) -> Any:
        def body(i: Any, s: Any) -> Any:
            return i + 1, mutex.execute(lambda: s + i)

        total = eng.while_loop(lambda i, s: i < n, body, (0, 0))[1]
        return eng.cond(n > 3, lambda: mutex.execute(lambda: total * 2), lambda: total)

    with eng.Graph().as_default():
        n = eng.placeholder("int32", [])
        y = count(eng.Mutex(), n)
        with eng.Session() as session:
            limit = eng.RunOptions(timeout_in_ms=20_000)
            assert [session.run(y, {n: k}, limit) for k in (0, 3, 5)] == [0, 3, 20]
    mutex = eng.Mutex()
    assert eng.function(lambda n: count(mutex, n))(np.int32(5)) == 20


def test_a_function_that_ends_in_an_operation() -> None:
    with eng.Graph().as_default():
        v = eng.Variable(0.0)
        added: Any = v.assign_add
        step = eng.Mutex().execute(lambda: added(1.0).op)
        with eng.Session() as session:
            session.run(v.initializer)
            session.run(step)
            assert session.run(v) == 1.0
