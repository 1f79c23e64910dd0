"""The queue's state machine, driven by events, without threads; then threads on top."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine.errors import (
    CancelledError,
    DeadlineExceededError,
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.resources.batches import Element, split_batch, stack_batch
from laminar.engine.resources.queues import FIFO, Priority, Queue, RandomShuffle
from laminar.engine.resources.waiting import blocking

from ...sampling import examples


class Told:
    """Records what `done` is told."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, LaminarError | None]] = []

    def __call__(self, result: Any, error: LaminarError | None) -> None:
        self.calls.append((result, error))

    @property
    def is_done(self) -> bool:
        assert len(self.calls) <= 1, "told twice"
        return bool(self.calls)

    @property
    def values(self) -> list[int]:
        assert self.is_done
        assert self.calls[0][1] is None
        return [int(element[-1]) for element in self.calls[0][0]]

    @property
    def error(self) -> LaminarError | None:
        assert self.is_done
        return self.calls[0][1]


def one(value: int) -> Element:
    return (np.asarray(value),)


def put(queue: Queue, *values: int) -> Told:
    told = Told()
    queue.enqueue_many([one(v) for v in values], told)
    return told


def take(queue: Queue, n: int = 1, up_to: bool = False) -> Told:
    told = Told()
    queue.dequeue_many(n, told, up_to)
    return told


def test_elements_come_out_in_order_and_a_full_queue_blocks() -> None:
    queue = FIFO("q", 2)
    assert put(queue, 1).is_done
    assert put(queue, 2).is_done
    third = put(queue, 3)
    assert not third.is_done
    assert take(queue).values == [1]
    assert third.is_done
    assert take(queue, 2).values == [2, 3]


def test_a_dequeue_of_many_waits_for_the_last() -> None:
    queue = FIFO("q", 10)
    put(queue, 1, 2, 3)
    four = take(queue, 4)
    assert not four.is_done
    put(queue, 4)
    assert four.values == [1, 2, 3, 4]


def test_more_than_the_capacity_passes_through() -> None:
    queue = FIFO("q", 2)
    ten = take(queue, 10)
    ten_in = put(queue, *range(10))
    assert ten.values == list(range(10))
    assert ten_in.is_done


def test_those_who_wait_are_served_in_order() -> None:
    queue = FIFO("q", 10)
    first, second = take(queue, 2), take(queue, 1)
    put(queue, 1)
    assert not first.is_done
    assert not second.is_done
    put(queue, 2, 3)
    assert first.values == [1, 2]
    assert second.values == [3]


def test_a_closed_queue_is_drained_and_then_out_of_range() -> None:
    queue = FIFO("q", 10)
    put(queue, 1, 2, 3)
    queue.close()
    assert queue.is_closed
    assert isinstance(put(queue, 4).error, CancelledError)
    assert take(queue).values == [1]
    assert isinstance(take(queue, 3).error, OutOfRangeError)
    assert queue.size == 2  # what was too little is still there
    assert take(queue, 3, up_to=True).values == [2, 3]
    assert isinstance(take(queue, 3, up_to=True).error, OutOfRangeError)
    assert isinstance(take(queue).error, OutOfRangeError)


def test_closing_wakes_those_who_wait() -> None:
    queue = FIFO("q", 10)
    put(queue, 1, 2)
    too_many, after = take(queue, 4), take(queue)
    queue.close()
    assert isinstance(too_many.error, OutOfRangeError)
    assert after.values == [1]


def test_close_keeps_pending_enqueues_and_cancel_drops_them() -> None:
    queue = FIFO("q", 1)
    put(queue, 1)
    kept = put(queue, 2)
    queue.close()
    assert not kept.is_done
    assert take(queue).values == [1]
    assert kept.error is None
    assert take(queue).values == [2]
    assert isinstance(take(queue).error, OutOfRangeError)

    queue = FIFO("q", 1)
    put(queue, 1)
    dropped = put(queue, 2)
    queue.close(cancel_pending_enqueues=True)
    assert isinstance(dropped.error, CancelledError)
    assert take(queue).values == [1]
    assert isinstance(take(queue).error, OutOfRangeError)


def test_closing_later_with_cancel_drops_what_the_first_close_kept() -> None:
    queue = FIFO("q", 1)
    put(queue, 1)
    pending = put(queue, 2)
    queue.close()
    queue.close(cancel_pending_enqueues=True)
    assert isinstance(pending.error, CancelledError)


def test_a_cancelled_dequeue_gives_back_what_it_had() -> None:
    queue = FIFO("q", 10)
    told, after = Told(), Told()
    ticket = queue.dequeue_many(3, told)
    queue.dequeue_many(2, after)
    put(queue, 1, 2)
    assert ticket is not None
    assert ticket.cancel(CancelledError("enough"))
    assert isinstance(told.error, CancelledError)
    assert after.values == [1, 2]
    assert not ticket.cancel(CancelledError("again"))
    assert len(told.calls) == 1


def test_a_cancelled_enqueue_lets_the_next_in() -> None:
    queue = FIFO("q", 2)
    put(queue, 1)
    told = Told()
    ticket = queue.enqueue_many([one(2), one(3)], told)
    following = put(queue, 4)
    assert ticket is not None
    ticket.cancel(CancelledError("enough"))
    assert isinstance(told.error, CancelledError)
    assert not following.is_done  # 2 was stored before the cancel
    assert take(queue).values == [1]
    assert following.is_done
    assert take(queue, 2).values == [2, 4]


def test_one_who_raises_does_not_keep_others_waiting() -> None:
    queue = FIFO("q", 10)

    def fail(result: Any, error: LaminarError | None) -> None:
        raise RuntimeError("a bug")

    queue.dequeue(fail)
    second = take(queue)
    with pytest.raises(RuntimeError, match="a bug"):
        put(queue, 1, 2)
    assert second.values == [2]


def test_a_shuffling_queue_keeps_its_minimum_until_it_is_closed() -> None:
    queue = RandomShuffle("q", 20, min_after_dequeue=10, seed=1)
    put(queue, *range(12))
    got = take(queue).values + take(queue).values
    third = take(queue)
    assert not third.is_done
    put(queue, 12)
    got += third.values
    queue.close()
    got += take(queue, 10).values
    assert sorted(got) == list(range(13))
    assert isinstance(take(queue).error, OutOfRangeError)


def shuffled(seed: int | None) -> list[int]:
    queue = RandomShuffle("q", 500, min_after_dequeue=250, seed=seed)
    fill = put(queue, *range(1000))
    got: list[int] = []
    while not fill.is_done:
        got += take(queue).values
    queue.close()
    while queue.size:
        got += take(queue).values
    return got


def test_shuffled_each_once_in_an_order_of_the_seed() -> None:
    order = shuffled(7)
    assert sorted(order) == list(range(1000))
    assert order != list(range(1000))
    assert order == shuffled(7)
    assert order != shuffled(8)
    assert shuffled(None) != shuffled(None)


def test_a_priority_queue_gives_the_least_first_and_equals_in_order() -> None:
    queue = Priority("q", 10)
    for priority, value in [(3, 0), (1, 1), (2, 2), (1, 3)]:
        queue.enqueue((np.asarray(priority), np.asarray(value)), Told())
    assert take(queue, 4).values == [1, 3, 2, 0]
    many = take(queue, 2)
    queue.enqueue((np.asarray(5), np.asarray(5)), Told())
    assert not many.is_done
    queue.enqueue((np.asarray(4), np.asarray(4)), Told())
    assert many.values == [4, 5]


def test_a_priority_queue_refuses_what_can_never_come() -> None:
    with pytest.raises(InvalidArgumentError, match="never fit"):
        take(Priority("q", 3), 4)


def test_a_closed_priority_queue_gives_what_is_left() -> None:
    queue = Priority("q", 5)
    queue.enqueue((np.asarray(1), np.asarray(7)), Told())
    waiting, up_to = take(queue, 3), take(queue, 3, up_to=True)
    queue.close()
    assert isinstance(waiting.error, OutOfRangeError)
    assert up_to.values == [7]


@pytest.mark.parametrize("capacity", [0, -3])
def test_a_queue_has_room(capacity: int) -> None:
    with pytest.raises(InvalidArgumentError, match="capacity"):
        FIFO("q", capacity)


@pytest.mark.parametrize("least", [-1, 5])
def test_the_minimum_must_leave_room(least: int) -> None:
    with pytest.raises(InvalidArgumentError, match="min_after_dequeue"):
        RandomShuffle("q", 5, min_after_dequeue=least)


def test_shapes_are_checked_before_anything_is_stored() -> None:
    queue = FIFO("q", 5, [(2, None)])
    queue.enqueue((np.zeros((2, 7)),), Told())
    with pytest.raises(ShapeError, match=r"component 0 must have shape \[2, \?\], got \[3, 1\]"):
        queue.enqueue_many([(np.zeros((2, 1)),), (np.zeros((3, 1)),)], Told())
    assert queue.size == 1
    with pytest.raises(InvalidArgumentError):
        take(queue, -1)


def test_batches_are_split_and_joined() -> None:
    words = np.array([b"a", b"bc"], object)
    parts = split_batch((np.arange(6).reshape(2, 3), words))
    assert len(parts) == 2
    numbers, text = stack_batch("q", parts)
    assert numbers.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert text.tolist() == [b"a", b"bc"]
    with pytest.raises(ShapeError, match="one length"):
        split_batch((np.zeros(2), np.zeros(3)))
    with pytest.raises(ShapeError, match="one length"):
        split_batch((np.zeros(()),))


def test_padding_fills_with_zeros_and_empty_strings() -> None:
    words = [np.array([b"a"], object), np.array([b"b", b"c"], object)]
    numbers = [np.ones((1, 2), np.int32), np.ones((2, 1), np.int32)]
    left, right = stack_batch("q", list(zip(words, numbers, strict=True)), pad=True)
    assert left.tolist() == [[b"a", b""], [b"b", b"c"]]
    assert right.tolist() == [[[1, 1], [0, 0]], [[1, 0], [1, 0]]]
    with pytest.raises(ShapeError, match="cannot be joined"):
        stack_batch("q", [(words[0],), (words[1],)])


def test_nothing_is_copied() -> None:
    queue = FIFO("q", 5)
    array = np.zeros(10)
    queue.enqueue((array,), Told())
    told = Told()
    queue.dequeue(told)
    assert told.calls[0][0][0][0] is array
    (row, *_) = split_batch((array.reshape(5, 2),))
    assert np.shares_memory(row[0], array)


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["put", "take", "up_to", "close", "drop", "cancel"]), st.integers(0, 5)
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(1, 6), st.sampled_from([FIFO, RandomShuffle]))
@examples(300)
def test_no_element_is_lost_or_doubled_whatever_happens(
    actions: list[tuple[str, int]], capacity: int, kind: Callable[..., Queue]
) -> None:
    """Conservation: what went in is what came out, what is inside and what was refused."""
    queue = kind("q", capacity)
    enqueues: list[tuple[list[int], Told]] = []
    dequeues: list[tuple[int, bool, Told]] = []
    tickets: deque[Any] = deque()
    fresh = iter(range(10_000))
    for action, n in actions:
        told = Told()
        if action == "put":
            values = [next(fresh) for _ in range(n)]
            tickets.append(queue.enqueue_many([one(v) for v in values], told))
            enqueues.append((values, told))
        elif action in ("take", "up_to"):
            tickets.append(queue.dequeue_many(n, told, action == "up_to"))
            dequeues.append((n, action == "up_to", told))
        elif action == "cancel" and tickets:
            ticket = tickets.popleft()
            if ticket is not None:
                ticket.cancel(CancelledError("enough"))
        elif action in ("close", "drop"):
            queue.close(action == "drop")
        assert queue.size <= capacity + sum(n for n, _, _ in dequeues)
    queue.close(cancel_pending_enqueues=True)
    assert queue.waiting == (0, 0)
    rest = take(queue, queue.size).values
    out = [v for _, _, told in dequeues if told.error is None for v in told.values]
    for wanted, up_to, told in dequeues:
        if told.error is None:
            assert len(told.values) <= wanted
            assert up_to or len(told.values) == wanted
    stored = Counter(out + rest)
    assert max(stored.values(), default=1) == 1
    for values, told in enqueues:
        if told.error is None:
            assert all(stored[v] == 1 for v in values)
    if kind is FIFO and not any(action == "cancel" for action, _ in actions):
        assert out + rest == sorted(out + rest)


def test_a_blocked_thread_is_released_by_time_or_by_the_other_side() -> None:
    queue = FIFO("q", 2)
    with pytest.raises(DeadlineExceededError):
        blocking(queue.dequeue, timeout=0.01)
    assert queue.waiting == (0, 0)
    got: list[int] = []
    thread = threading.Thread(target=lambda: got.append(int(blocking(queue.dequeue)[0][0])))
    thread.start()
    blocking(lambda done: queue.enqueue(one(5), done))
    thread.join(10)
    assert got == [5]


def test_many_threads_pass_every_element_once() -> None:
    queue = FIFO("q", 7)
    got: list[list[int]] = [[] for _ in range(4)]

    def produce(start: int) -> None:
        for i in range(start, start + 500):
            blocking(partial(queue.enqueue, one(i)))

    def consume(into: list[int]) -> None:
        while True:
            try:
                into.append(int(blocking(queue.dequeue)[0][0]))
            except OutOfRangeError:
                return

    producers = [threading.Thread(target=produce, args=(1000 * i,)) for i in range(4)]
    consumers = [threading.Thread(target=consume, args=(into,)) for into in got]
    for thread in producers + consumers:
        thread.start()
    for thread in producers:
        thread.join(30)
    queue.close()
    for thread in consumers:
        thread.join(30)
    assert not any(thread.is_alive() for thread in producers + consumers)
    expected = [1000 * i + j for i in range(4) for j in range(500)]
    assert sorted(v for into in got for v in into) == expected
