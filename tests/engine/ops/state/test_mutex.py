"""Mutexes as ops."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

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
from laminar.engine.errors import OutOfRangeError


def test_eight_threads_of_read_add_assign() -> None:
    graph = Graph()
    with graph.as_default():
        counter = Variable(np.int32(0), name="counter")
        mutex = Mutex()
        lease = mutex.acquire()
        with control_dependencies([lease]):
            read = counter.read_value()
        with control_dependencies([assign(counter, read + 1)]):
            step = mutex.release(lease)
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
    mutex.release(lease)
    assert not bool(mutex.is_held())
    assert mutex.execute(lambda: bool(mutex.is_held()))
    with pytest.raises(ZeroDivisionError):
        mutex.execute(lambda: 1 // 0)
    assert not bool(mutex.is_held())
