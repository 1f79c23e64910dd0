"""Many threads at once on queues, sessions and coordinators; the watchdog ends what hangs."""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    Coordinator,
    FIFOQueue,
    Graph,
    QueueRunner,
    RandomShuffleQueue,
    Session,
    Variable,
    add_queue_runner,
    batch,
    constant,
    global_variables_initializer,
    placeholder,
    range_input_producer,
)
from laminar.engine.errors import LaminarError, OutOfRangeError

from .pipelines import drain, running

pytestmark = pytest.mark.usefixtures("no_thread_left")

WAIT = 60.0


def at_once(tasks: Sequence[Callable[[], None]]) -> None:
    """Run all in threads of their own, which begin together; the first error is raised."""
    gate = threading.Barrier(len(tasks))
    errors: list[BaseException] = []

    def run(task: Callable[[], None]) -> None:
        try:
            gate.wait(WAIT)
            task()
        except BaseException as error:  # raised below
            errors.append(error)

    threads = [threading.Thread(target=run, args=(t,), daemon=True) for t in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
        assert not thread.is_alive(), "a thread hangs"
    if errors:
        raise errors[0]


@pytest.mark.parametrize("kind", ["fifo", "shuffle"])
@pytest.mark.parametrize("capacity", [1, 3, 100])
def test_each_element_comes_out_once(kind: str, capacity: int) -> None:
    """8 threads bring 100 numbers each, one by one or in batches; 8 take them as they like."""
    graph = Graph()
    with graph.as_default():
        queue: Any = (
            FIFOQueue(capacity, ["int64"], [()])
            if kind == "fifo"
            else RandomShuffleQueue(capacity, capacity // 2, ["int64"], [()], seed=1)
        )
        one, many = placeholder("int64", ()), placeholder("int64", (None,))
        put, put_many, close = queue.enqueue(one), queue.enqueue_many(many), queue.close()
        take, take_some = queue.dequeue(), queue.dequeue_up_to(3)
    found: list[int] = []
    left = [8]
    lock = threading.Lock()
    with Session(graph=graph) as session:

        def bring(begin: int) -> None:
            for i in range(begin, begin + 100, 4):
                if begin % 200:
                    session.run(put_many, {many: np.arange(i, i + 4)})
                else:
                    for n in range(i, i + 4):
                        session.run(put, {one: n})
            with lock:
                left[0] -= 1
                last = not left[0]
            if last:
                session.run(close)

        def fetch(number: int) -> None:
            while True:
                try:
                    got = session.run(take_some if number % 2 else take)
                except OutOfRangeError:
                    return
                with lock:
                    found.extend(np.atleast_1d(got).tolist())

        tasks: list[Callable[[], None]] = []
        for i in range(8):
            tasks += [partial(bring, 100 * i), partial(fetch, i)]
        at_once(tasks)
    assert Counter(found) == Counter(range(800))


def test_closing_a_session_frees_all_who_wait() -> None:
    for _ in range(10):
        graph = Graph()
        with graph.as_default():
            empty = FIFOQueue(1, ["float32"], [()])
            full = FIFOQueue(1, ["float32"], [()])
            take, put = empty.dequeue(), full.enqueue(constant(1.0))
        session = Session(graph=graph)
        session.run(put)
        freed: list[type] = []

        def wait(op: Any, session: Session = session, freed: list[type] = freed) -> None:
            try:
                session.run(op)
            except LaminarError as error:
                freed.append(type(error))

        tasks = [partial(wait, op) for op in [take, put] * 8]
        at_once([*tasks, session.close])
        assert len(freed) == 16


def test_updates_of_many_threads_and_sessions_of_one_graph() -> None:
    """Each session has its own variable; of one session no update is lost."""
    graph = Graph()
    with graph.as_default():
        total = Variable(np.zeros(1000), name="total")
        add = total.assign_add(np.ones(1000))
        init = global_variables_initializer()
    sessions = [Session(graph=graph) for _ in range(3)]
    for session in sessions:
        session.run(init)

    def work(session: Session) -> None:
        for _ in range(50):
            session.run(add)

    at_once([partial(work, session) for session in sessions * 5])
    for session in sessions:
        np.testing.assert_array_equal(session.run(total.value), 250)
        session.close()


def test_one_of_many_threads_fails_and_all_stop() -> None:
    for seed in range(10):
        coord = Coordinator()
        bad = random.Random(seed).randrange(40)
        turns = [0] * 40

        def loop(i: int, coord: Coordinator = coord, bad: int = bad, turns: Any = turns) -> None:
            with coord.stop_on_exception():
                while not coord.should_stop():
                    turns[i] += 1
                    if i == bad and turns[i] == 20:
                        raise ValueError(f"thread {i}")
                    coord.wait_for_stop(1e-4)

        threads = [threading.Thread(target=loop, args=(i,), daemon=True) for i in range(40)]
        for thread in threads:
            coord.register_thread(thread)
            thread.start()
        with pytest.raises(ValueError, match=f"thread {bad}"):
            coord.join(stop_grace_period_secs=WAIT)
        assert not any(t.is_alive() for t in threads)


def test_pipelines_begin_and_end_again_and_again() -> None:
    """Some are used up, some stopped early, some while their threads begin."""
    for round_ in range(12):
        graph = Graph()
        with graph.as_default():
            number = range_input_producer(40, num_epochs=1, shuffle=True).dequeue()
            numbers = batch(number, 4, num_threads=6, capacity=4)
        if round_ % 3 == 0:
            found = np.concatenate(drain(graph, numbers))
            assert sorted(found) == list(range(40))
            continue
        with running(graph) as (session, _):
            for _ in range(round_ % 5):
                session.run(numbers)


def test_runners_of_a_queue_that_all_threads_drain() -> None:
    """The end of the input reaches each of 12 threads that take, whoever takes the last element."""
    graph = Graph()
    with graph.as_default():
        number = range_input_producer(300, num_epochs=1, shuffle=False).dequeue()
        queue = FIFOQueue(5, [number.dtype], [()])
        add_queue_runner(QueueRunner(queue, [queue.enqueue(number)] * 4))
        take = queue.dequeue()
    found: list[int] = []
    lock = threading.Lock()
    with running(graph) as (session, coord):

        def work() -> None:
            with coord.stop_on_exception():
                while not coord.should_stop():
                    got = session.run(take)
                    with lock:
                        found.append(int(got))

        at_once([work] * 12)
        assert coord.should_stop()
    assert sorted(found) == list(range(300))


def test_dequeues_that_fail_give_back_what_they_had() -> None:
    """Threads want more than there is when the queue is closed; what one held is not lost."""
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(100, ["int64"], [()])
        put = queue.enqueue_many(np.arange(30))
        take, rest = queue.dequeue_many(50), queue.dequeue_up_to(100)
        close = queue.close()
    with Session(graph=graph) as session:
        session.run(put)
        failed: list[type] = []

        def want() -> None:
            try:
                session.run(take)
            except LaminarError as error:
                failed.append(type(error))

        threads = [threading.Thread(target=want, daemon=True) for _ in range(6)]
        for thread in threads:
            thread.start()
        session.run(close)
        for thread in threads:
            thread.join(WAIT)
            assert not thread.is_alive()
        assert failed == [OutOfRangeError] * 6
        assert session.run(rest).tolist() == list(range(30))
