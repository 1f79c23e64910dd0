"""Barriers, staging areas and stacks as state machines, without threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    OutOfRangeError,
    ResourceExhaustedError,
    ShapeError,
)
from laminar.engine.resources.barriers import FIRST_INDEX, Barrier
from laminar.engine.resources.stacks import Stack
from laminar.engine.resources.staging import MapStagingArea, StagingArea


class Told:
    """A `done`, and what it was given."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, LaminarError | None]] = []

    def __call__(self, result: Any, error: LaminarError | None) -> None:
        self.calls.append((result, error))

    @property
    def result(self) -> Any:
        ((result, error),) = self.calls
        assert error is None
        return result

    @property
    def error(self) -> Any:
        ((_, error),) = self.calls
        return error


def rows(*values: float) -> list[Any]:
    return [np.asarray(v) for v in values]


def keys_of(told: Told) -> list[bytes]:
    return [key for _, key, _ in told.result]


def test_an_element_goes_when_it_is_whole() -> None:
    barrier, told = Barrier("b", [(), ()]), Told()
    barrier.take_many(2, False, told)
    barrier.insert_many(0, [b"x", b"y"], rows(1, 2))
    barrier.insert_many(0, [b"z"], rows(3))
    assert (barrier.ready_size, barrier.incomplete_size) == (0, 3)
    barrier.insert_many(1, [b"z"], rows(30))
    assert (barrier.ready_size, barrier.incomplete_size) == (1, 2)
    barrier.insert_many(1, [b"y"], rows(20))
    assert [(i - FIRST_INDEX, k, [int(v) for v in c]) for i, k, c in told.result] == [
        (0, b"y", [2, 20]),
        (1, b"z", [3, 30]),
    ]
    assert (barrier.ready_size, barrier.incomplete_size) == (0, 1)


def test_a_closed_barrier() -> None:
    barrier = Barrier("b", [(), ()])
    small, whole, late = Told(), Told(), Told()
    barrier.insert_many(0, [b"x", b"y", b"z"], rows(1, 2, 3))
    barrier.insert_many(1, [b"x"], rows(1))
    barrier.close()
    barrier.take_many(4, False, whole)
    assert isinstance(whole.error, OutOfRangeError)  # three at most can come
    barrier.take_many(2, True, small)
    assert keys_of(small) == [b"x"]
    with pytest.raises(CancelledError, match="is closed: the key b'new'"):
        barrier.insert_many(0, [b"new"], rows(1))
    barrier.insert_many(1, [], [])
    barrier.take_many(2, True, late)
    assert not late.calls
    barrier.insert_many(1, [b"z"], rows(1))
    assert keys_of(late) == [b"z"]
    last = Told()
    barrier.take_many(1, True, last)
    barrier.close(cancel_pending_enqueues=True)
    assert isinstance(last.error, OutOfRangeError)
    with pytest.raises(CancelledError, match="is closed: nothing can be inserted"):
        barrier.insert_many(1, [], [])


def test_what_a_barrier_refuses_changes_nothing() -> None:
    barrier = Barrier("b", [(), (2,)])
    barrier.insert_many(0, [b"x"], rows(1))
    for component, keys, values, error in (
        (0, [b"new", b"x"], rows(1, 1), InvalidArgumentError),
        (0, [b"new", b"new"], rows(1, 1), InvalidArgumentError),
        (1, [b"new", b"x"], [np.zeros(2), np.zeros(3)], ShapeError),
    ):
        with pytest.raises(error):
            barrier.insert_many(component, keys, values)
    assert (barrier.ready_size, barrier.incomplete_size) == (0, 1)


def test_who_waits_can_give_up() -> None:
    barrier, first, second = Barrier("b", [()]), Told(), Told()
    ticket = barrier.take_many(1, False, first)
    barrier.take_many(1, False, second)
    assert ticket is not None
    assert ticket.cancel(CancelledError("over"))
    assert isinstance(first.error, CancelledError)
    barrier.insert_many(0, [b"x"], rows(1))
    assert keys_of(second) == [b"x"]
    assert not ticket.cancel(CancelledError("again"))
    assert barrier.num_waiting == 0


def test_a_staging_area_has_room() -> None:
    area = StagingArea("s", capacity=1)
    first, second, taken, again, seen = Told(), Told(), Told(), Told(), Told()
    area.peek(0, seen)
    area.put((np.int64(1),), first)
    assert first.result is None
    assert seen.result == (1,)
    area.put((np.int64(2),), second)
    assert not second.calls
    area.get(taken)
    assert taken.result == (1,)
    assert second.result is None
    area.clear()
    assert area.size == 0
    area.get(again)
    assert not again.calls


def test_the_memory_of_a_staging_area() -> None:
    area, first, second = StagingArea("s", memory_limit=100), Told(), Told()
    with pytest.raises(ResourceExhaustedError, match="800 bytes never fits into its 100"):
        area.put((np.zeros(100),), first)
    area.put((np.zeros(8),), first)
    area.put((np.zeros(8),), second)
    assert first.result is None
    assert not second.calls
    area.get(Told())
    assert second.result is None


def test_elements_under_keys() -> None:
    area, waits, any_of = MapStagingArea("m", 2, ordered=True), Told(), Told()
    area.get(5, [0, 1], waits)
    area.put(5, [1], rows(11), Told())
    assert (area.size, area.incomplete_size) == (0, 1)
    assert not waits.calls
    area.put(5, [0], rows(10), Told())
    assert [int(v) for v in waits.result[1]] == [10, 11]
    for key in (9, 3):
        area.put(key, [0, 1], rows(key, -key), Told())
    area.get(None, [0], any_of)
    assert any_of.result[0] == 3
    gone, rest, seen = Told(), Told(), Told()
    area.peek(3, [0], gone)
    assert isinstance(gone.error, InvalidArgumentError)
    area.get(3, [1], rest)
    assert int(rest.result[1][0]) == -3
    assert area.size == 1
    area.peek(9, [1], seen)
    assert int(seen.result[1][0]) == -9
    twice = Told()
    area.put(9, [0], rows(0), twice)
    assert isinstance(twice.error, InvalidArgumentError)


def test_a_map_without_order_gives_the_oldest() -> None:
    area, taken, full = MapStagingArea("m", 1, ordered=False, capacity=2), Told(), Told()
    for key in (9, 3):
        area.put(key, [0], rows(key), Told())
    area.put(1, [0], rows(1), full)
    assert not full.calls
    area.get(None, [0], taken)
    assert taken.result[0] == 9
    assert full.result is None
    area.clear()
    assert area.size == 0


def test_a_stack() -> None:
    stack = Stack("s", 2)
    stack.push(1)
    stack.push(2)
    with pytest.raises(ResourceExhaustedError, match="room for 2"):
        stack.push(3)
    assert (stack.pop(), stack.pop()) == (2, 1)
    with pytest.raises(InvalidArgumentError, match="is empty"):
        stack.pop()
    stack.close()
    with pytest.raises(FailedPreconditionError, match="closed"):
        stack.push(1)
