"""Queues as ops: eagerly, in Session graphs and in functions; what waits for them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    FIFOQueue,
    Graph,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
    Session,
    constant,
    container,
    control_dependencies,
    convert_to_tensor,
    function,
    group,
    placeholder,
)
from laminar.engine.errors import (
    CancelledError,
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ShapeError,
)


class Runs:
    """A call in a thread of its own."""

    def __init__(self, call: Callable[[], Any]) -> None:
        self.result: Any = None
        self.error: LaminarError | None = None
        self._call = call
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self.result = self._call()
        except LaminarError as error:
            self.error = error

    @property
    def is_blocked(self) -> bool:
        self._thread.join(0.05)
        return self._thread.is_alive()

    def join(self) -> Any:
        self._thread.join(20)
        assert not self._thread.is_alive(), "it hangs"
        return self.result


def test_counting_queue_of_three() -> None:
    """A queue primed with [0, 0, 0]; x = dequeue, enqueue x + 1, four times: [1, 1, 2] is left."""
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(3, "int32", [()])
        init = queue.enqueue_many([[0, 0, 0]])
        increment = queue.enqueue(queue.dequeue() + 1)
        rest, size = queue.dequeue_many(3), queue.size()
    assert rest.shape == (3,)
    with Session(graph=graph) as session:
        session.run(init)
        for _ in range(4):
            session.run(increment)
        assert session.run(size) == 3
        assert session.run(rest).tolist() == [1, 1, 2]


@pytest.mark.parametrize("mode", ["eager", "session"])
def test_a_full_queue_blocks_and_elements_come_in_order(mode: str) -> None:
    graph = Graph()
    if mode == "eager":
        queue = FIFOQueue(2, "float32", [()])

        def put(v: float) -> Any:
            return queue.enqueue(v)

        def take() -> float:
            return float(queue.dequeue())

    else:
        with graph.as_default():
            queue = FIFOQueue(2, "float32", [()])
            value = placeholder("float32", ())
            enqueue, dequeue = queue.enqueue(value), queue.dequeue()
        session = Session(graph=graph)

        def put(v: float) -> Any:
            return session.run(enqueue, {value: v})

        def take() -> float:
            return float(session.run(dequeue))

    put(1.0)
    put(2.0)
    third = Runs(lambda: put(3.0))
    assert third.is_blocked
    assert take() == 1.0
    third.join()
    assert [take(), take()] == [2.0, 3.0]


@pytest.mark.parametrize("mode", ["eager", "session"])
def test_close(mode: str) -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(3, "int32", [()])
        many = queue.enqueue_many([[1, 2, 3]])
        one, close, take = queue.enqueue(9), queue.close(), queue.dequeue()
        closed, four = queue.is_closed(), queue.dequeue_many(4)
    if mode == "eager":
        eager = FIFOQueue(3, "int32", [()])
        eager.enqueue_many([[1, 2, 3]])
        eager.close()
        assert bool(eager.is_closed())
        with pytest.raises(CancelledError, match="closed"):
            eager.enqueue(9)
        with pytest.raises(OutOfRangeError):
            eager.dequeue_many(4)
        assert [int(eager.dequeue()) for _ in range(3)] == [1, 2, 3]
        with pytest.raises(OutOfRangeError):
            eager.dequeue()
        return
    with Session(graph=graph) as session:
        session.run(many)
        assert not session.run(closed)
        session.run(close)
        assert session.run(closed)
        with pytest.raises(CancelledError, match="closed"):
            session.run(one)
        with pytest.raises(OutOfRangeError, match=f"operation {four.op.name!r}"):
            session.run(four)
        assert [session.run(take) for _ in range(3)] == [1, 2, 3]
        start = time.perf_counter()
        with pytest.raises(OutOfRangeError) as raised:
            session.run(take)
        assert time.perf_counter() - start < 5  # it does not wait for elements
        assert raised.value.location is not None
        assert raised.value.location.filename == __file__


@pytest.mark.parametrize("cancel", [False, True])
def test_a_pending_enqueue_survives_close_unless_it_is_cancelled(cancel: bool) -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(1, "int32", [()])
        put, take, close = queue.enqueue(1), queue.dequeue(), queue.close(cancel)
    with Session(graph=graph) as session:
        session.run(put)
        pending = Runs(lambda: session.run(put))
        assert pending.is_blocked
        session.run(close)
        if cancel:
            pending.join()
            assert isinstance(pending.error, CancelledError)
            assert session.run(take) == 1
        else:
            assert pending.is_blocked
            assert session.run(take) == 1
            pending.join()
            assert pending.error is None
            assert session.run(take) == 1
        with pytest.raises(OutOfRangeError):
            session.run(take)


def test_enqueue_and_dequeue_in_one_step_do_not_wait_for_each_other() -> None:
    """The dequeue comes first in the graph: while it waits the step goes on with the enqueue."""
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(1, "int32", [()])
        taken, put = queue.dequeue(), queue.enqueue(5)
        twice = queue.dequeue_many(3)
        puts = [queue.enqueue(i) for i in range(3)]
    with Session(graph=graph) as session:
        assert session.run([taken, put])[0] == 5
        assert sorted(session.run([twice, *puts])[0].tolist()) == [0, 1, 2]


def test_a_hundred_waiting_dequeues_hold_no_thread() -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(200, "int32", [()])
        waiting = [queue.dequeue() for _ in range(100)]
        fill = queue.enqueue_many([np.arange(100, dtype=np.int32)])
    with Session(graph=graph) as session:
        before = threading.active_count()
        step = Runs(lambda: session.run(waiting))
        assert step.is_blocked
        assert threading.active_count() - before <= 3
        session.run(fill)
        assert sorted(step.join()) == list(range(100))


def test_a_step_that_fails_gives_up_what_waits() -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(5, "int32", [()])
        taken = queue.dequeue()
        bad = placeholder("int32", ())
        put, size = queue.enqueue(7), queue.size()
        closed = FIFOQueue(5, "int32", [()])
        close, fail = closed.close(), closed.dequeue()
    with Session(graph=graph) as session:
        session.run(close)
        with pytest.raises(OutOfRangeError):
            session.run([taken, fail])
        with pytest.raises(InvalidArgumentError, match="not fed"):
            session.run([taken, bad])
        session.run(put)
        assert session.run(size) == 1  # no waiter was left that would take it


def test_closing_the_session_ends_what_waits() -> None:
    graph = Graph()
    with graph.as_default():
        taken = FIFOQueue(5, "int32", [()]).dequeue()
    session = Session(graph=graph)
    step = Runs(lambda: session.run(taken))
    assert step.is_blocked
    session.close()
    step.join()
    assert isinstance(step.error, CancelledError)


def test_sessions_share_a_queue_by_name_in_a_container() -> None:
    def build() -> tuple[Graph, Any, Any]:
        graph = Graph()
        with graph.as_default(), container("shared_queues"):
            queue = FIFOQueue(10, "int32", [()], shared_name="numbers")
            return graph, queue.enqueue(3), queue.dequeue()

    (graph_a, put, _), (graph_b, _, take) = build(), build()
    with Session(graph=graph_a) as a, Session(graph=graph_b) as b:
        a.run(put)
        assert b.run(take) == 3
        waiting = Runs(lambda: b.run(take))
        assert waiting.is_blocked
        a.run(put)
        assert waiting.join() == 3
        Session.reset(containers=["shared_queues"])
        a.run(put)
        assert b.run(take) == 3
    with Graph().as_default() as other, container("shared_queues"):
        wrong = FIFOQueue(11, "int32", [()], shared_name="numbers")
        size = wrong.size()
        kind = PriorityQueue(10, [], shared_name="numbers").size()
    with Session(graph=other) as session:
        with pytest.raises(InvalidArgumentError, match="declare it alike"):
            session.run(size)
        with pytest.raises(InvalidArgumentError, match="expected a priority"):
            session.run(kind)
    Session.reset(containers=["shared_queues"])


def test_sessions_have_queues_of_their_own_otherwise() -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(10, "int32", [()])
        put, size = queue.enqueue(3), queue.size()
    with Session(graph=graph) as a, Session(graph=graph) as b:
        a.run(put)
        assert (a.run(size), b.run(size)) == (1, 0)


def test_min_after_dequeue_blocks_until_there_is_one_more() -> None:
    queue = RandomShuffleQueue(200, 100, "int32", [()])
    queue.enqueue_many([np.arange(100, dtype=np.int32)])
    waiting = Runs(queue.dequeue)
    assert waiting.is_blocked
    queue.enqueue(100)
    assert 0 <= int(waiting.join()) <= 100


def test_a_queue_in_a_function() -> None:
    queue = FIFOQueue(10, "float32", [()])

    @function
    def double(x: Any) -> Any:
        queue.enqueue(x)
        queue.enqueue(x + 1.0)
        return queue.dequeue() * 2.0

    assert float(double(constant(3.0))) == 6.0
    assert float(double(constant(5.0))) == 8.0
    assert int(queue.size().numpy()) == 2
    made: list[FIFOQueue] = []

    @function
    def inside(x: Any) -> Any:
        if not made:
            made.append(FIFOQueue(10, "float32", [()]))
        made[0].enqueue(x)
        return made[0].size()

    assert [int(inside(constant(1.0))) for _ in range(3)] == [1, 2, 3]


def test_a_graph_may_use_a_queue_from_outside() -> None:
    queue = FIFOQueue(10, "int32", [()])
    graph = Graph()
    with graph.as_default():
        put = queue.enqueue(4)
    with Session(graph=graph) as session:
        session.run(put)
    assert int(queue.dequeue().numpy()) == 4


@pytest.mark.parametrize("up_to", [False, True], ids=["many", "up_to"])
def test_elements_that_cannot_be_joined_stay(up_to: bool) -> None:
    """Whether the dequeue took them at once or had to wait for the last one."""
    queue = FIFOQueue(10, ["int32"])
    take = queue.dequeue_up_to if up_to else queue.dequeue_many
    for sizes in (1, 2, 2):
        queue.enqueue(np.arange(sizes, dtype=np.int32))
    with pytest.raises(ShapeError, match="different shapes"):
        take(3)
    assert queue.size().numpy() == 3
    waiting = Runs(lambda: take(4))
    queue.enqueue(np.zeros(3, np.int32))
    waiting.join()
    assert isinstance(waiting.error, ShapeError)
    shapes = [tuple(queue.dequeue().shape) for _ in range(4)]
    assert shapes == [(1,), (2,), (2,), (3,)]


def test_a_random_or_sorted_batch_goes_back_too() -> None:
    shuffled = RandomShuffleQueue(10, 0, ["int32"], seed=1)
    by_rank = PriorityQueue(10, ["int32"], [None])
    for n in (3, 1, 2):
        shuffled.enqueue(np.full(n, n, np.int32))
        by_rank.enqueue([np.int64(n), np.full(n, n, np.int32)])
    for queue in (shuffled, by_rank):
        with pytest.raises(ShapeError, match="different shapes"):
            queue.dequeue_many(3)
        assert queue.size().numpy() == 3
    assert [int(by_rank.dequeue()[0]) for _ in range(3)] == [1, 2, 3]


def test_n_may_be_a_tensor() -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(10, "int32", [()])
        fill = queue.enqueue_many([np.arange(6, dtype=np.int32)])
        n = placeholder("int32", ())
        many, up_to = queue.dequeue_many(n), queue.dequeue_up_to(n)
    assert many.shape == (None,)
    with Session(graph=graph) as session:
        session.run(fill)
        assert session.run(many, {n: 2}).tolist() == [0, 1]
        assert session.run(up_to, {n: 3}).tolist() == [2, 3, 4]
        with pytest.raises(InvalidArgumentError, match="-1 elements"):
            session.run(many, {n: -1})


def test_control_edges_hold_an_enqueue_back() -> None:
    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(10, "int32", [()])
        first = queue.enqueue(1)
        with control_dependencies([first]):
            second = queue.enqueue(2)
        both = group(second)
        rest = queue.dequeue_many(2)
    with Session(graph=graph) as session:
        for _ in range(20):
            session.run(both)
            assert session.run(rest).tolist() == [1, 2]


def test_a_batch_of_a_megabyte_is_not_copied() -> None:
    batch = convert_to_tensor(np.zeros(250_000, np.float32))
    queue = FIFOQueue(2, "float32", [(250_000,)])
    queue.enqueue(batch)
    assert np.shares_memory(queue.dequeue().value, batch.value)  # type: ignore[attr-defined]  # it is eager


def test_many_steps_leak_nothing() -> None:
    import gc
    import tracemalloc

    graph = Graph()
    with graph.as_default():
        queue = FIFOQueue(4, "float32", [(64,)])
        step = [queue.dequeue(), queue.enqueue(np.zeros(64, np.float32))]
    with Session(graph=graph) as session:
        run = session.make_callable(step)
        for _ in range(50):
            run()
        gc.collect()
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(500):
            run()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
    assert grown < 20_000, f"{grown} bytes more after 500 steps"


def test_the_queue_dies_with_its_object() -> None:
    import weakref

    queue = FIFOQueue(4, "float32")
    held = weakref.ref(queue.handle.value)  # type: ignore[attr-defined]  # it is eager
    queue.enqueue(np.zeros(1000, np.float32))
    del queue
    assert held() is None


def test_a_queue_of_a_list() -> None:
    """As TensorFlow's QueueBase.from_list: the index is looked at by each operation on it."""
    with Graph().as_default(), Session() as session:
        one, two = FIFOQueue(3, ["int32"], [[]]), RandomShuffleQueue(3, 0, ["int32"], [[]])
        index = placeholder("int32", [])
        chosen = QueueBase.from_list(index, [one, two])
        add, take, size = chosen.enqueue(7), chosen.dequeue(), chosen.size()
        session.run([one.enqueue(1), two.enqueue(2)])
        assert [session.run(take, {index: i}) for i in (1, 0)] == [2, 1]
        session.run(add, {index: 0})
        assert [session.run(size, {index: i}) for i in (0, 1)] == [1, 0]
        found: list[Any] = []
        waits = threading.Thread(target=lambda: found.append(session.run(take, {index: 1})))
        waits.start()
        session.run(two.enqueue(5))
        waits.join(60)
        assert found == [5]
        refused: list[Any] = [[], [one, 3], [one, FIFOQueue(3, ["float32"])]]
        for wrong in refused:
            with pytest.raises(TypeError, match="from_list"):
                QueueBase.from_list(index, wrong)
    queues = [FIFOQueue(3, ["int32"], [[]]) for _ in range(2)]

    @function
    def add_to(i: Any) -> Any:
        chosen = QueueBase.from_list(i, queues)
        chosen.enqueue(i)
        return chosen.size()

    assert [int(add_to(constant(i))) for i in (1, 0, 1)] == [1, 1, 2]
