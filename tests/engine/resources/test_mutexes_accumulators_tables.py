"""Mutexes, accumulators and tables, free of graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
)
from laminar.engine.resources.accumulators import DenseAccumulator, SparseAccumulator
from laminar.engine.resources.mutexes import Lease, Mutex
from laminar.engine.resources.tables import Table
from laminar.engine.resources.waiting import blocking

from .test_queues import Told


def lease_of(told: Told) -> Lease:
    assert told.is_done
    lease = told.calls[0][0]
    assert isinstance(lease, Lease)
    return lease


def test_a_mutex_is_given_out_in_order() -> None:
    mutex = Mutex("m")
    tolds = [Told() for _ in range(3)]
    tickets = [mutex.acquire(told) for told in tolds]
    assert [t.is_done for t in tolds] == [True, False, False]
    assert tickets[1] is not None
    assert tickets[1].cancel(CancelledError("enough"))
    assert not tickets[1].cancel(CancelledError("again"))
    assert isinstance(tolds[1].error, CancelledError)
    assert lease_of(tolds[0]).release()
    assert not lease_of(tolds[0]).release()  # it does not end the lease of another
    assert mutex.is_held
    last = lease_of(tolds[2])
    ended: list[str] = []
    last.on_end = lambda: ended.append("last")
    assert last.release()
    assert ended == ["last"]
    assert not mutex.is_held


def test_an_accumulator_averages_and_drops_what_is_stale() -> None:
    accumulator = DenseAccumulator("a", (2,))
    waiting = Told()
    accumulator.take(2, waiting)
    given = np.array([1.0, 2.0])
    assert accumulator.apply(given)
    assert not waiting.is_done
    assert accumulator.apply(np.array([3.0, 6.0]))
    assert waiting.calls[0][0].tolist() == [2.0, 4.0]
    assert given.tolist() == [1.0, 2.0]  # what was given is not added to
    assert (accumulator.step, accumulator.num_accumulated) == (1, 0)
    assert not accumulator.apply(given, local_step=0)
    assert accumulator.apply(given, local_step=1)
    accumulator.set_step(5)
    accumulator.set_step(3)
    assert accumulator.step == 5
    assert blocking(lambda done: accumulator.take(1, done)).tolist() == [1.0, 2.0]


def test_sums_and_what_comes_beyond_what_is_required() -> None:
    accumulator = DenseAccumulator("a", None, "SUM")
    for value in (1, 2, 3):
        accumulator.apply(np.array(value))
    assert blocking(lambda done: accumulator.take(2, done)) == 6


def test_an_accumulator_refuses_what_does_not_fit() -> None:
    accumulator = DenseAccumulator("a", (None, 2))
    with pytest.raises(ShapeError, match="sums arrays of shape"):
        accumulator.apply(np.zeros(2))
    accumulator.apply(np.zeros((3, 2)))
    with pytest.raises(ShapeError):
        accumulator.apply(np.zeros((4, 2)))
    assert accumulator.num_accumulated == 1
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        accumulator.take(0, Told())
    with pytest.raises(InvalidArgumentError, match="reduction"):
        DenseAccumulator("a", None, "MAX")


def test_a_take_can_be_cancelled() -> None:
    accumulator = DenseAccumulator("a")
    first, second = Told(), Told()
    ticket = accumulator.take(5, first)
    accumulator.take(1, second)
    accumulator.apply(np.array(1.0))
    assert not second.is_done  # in order
    assert ticket is not None
    assert ticket.cancel(CancelledError("enough"))
    assert second.calls[0][0] == 1.0
    assert not ticket.cancel(CancelledError("again"))


def test_rows_are_averaged_over_the_arrays_that_have_them() -> None:
    accumulator = SparseAccumulator("s", (5, 2))
    accumulator.apply((np.array([3, 1, 3]), np.array([[1.0, 1], [2, 2], [3, 3]])))
    accumulator.apply((np.array([3]), np.array([[8.0, 0]])))
    indices, values = blocking(lambda done: accumulator.take(2, done))
    assert indices.tolist() == [1, 3]
    assert values.tolist() == [[2, 2], [6, 2]]
    for indices, values in [([5], [[1.0, 1]]), ([-1], [[1.0, 1]])]:
        with pytest.raises(InvalidArgumentError, match="out of range"):
            accumulator.apply((np.array(indices), np.array(values)), local_step=1)
    for shape in [(2, 2), (1, 3), (1,)]:
        with pytest.raises(ShapeError):
            accumulator.apply((np.array([0]), np.zeros(shape)), local_step=1)


OBJECT = np.dtype(object)
INT = np.dtype(np.int64)


def words(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def test_a_fixed_table() -> None:
    table = Table("t", OBJECT, INT, fixed=True)
    assert not table.is_initialized
    with pytest.raises(FailedPreconditionError, match="before it is initialised"):
        table.find(words(b"a"), np.array(-1))
    table.initialize(words(b"a", b"b"), np.array([1, 2]))
    table.initialize(words(b"b", b"a"), np.array([2, 1]))
    found = table.find(words(b"b", b"c", b"a").reshape(3, 1), np.array(-1))
    assert found.tolist() == [[2], [-1], [1]]
    assert found.dtype == np.int64
    assert table.size == 2
    for keys, values in [((b"a",), [1]), ((b"a", b"b"), [1, 3])]:
        with pytest.raises(FailedPreconditionError, match="other entries"):
            table.initialize(words(*keys), np.array(values))
    with pytest.raises(FailedPreconditionError, match="fixed"):
        table.insert(words(b"x"), np.array([1]))
    with pytest.raises(InvalidArgumentError, match="two values"):
        Table("t", OBJECT, INT, fixed=True).initialize(words(b"a", b"a"), np.array([1, 2]))


def test_a_table_that_changes() -> None:
    table = Table("t", INT, OBJECT)
    table.insert(np.array([1, 2]), words(b"one", b"two"))
    table.insert(np.array([2]), words(b"TWO"))
    table.remove(np.array([1, 7]))
    assert table.find(np.array([1, 2]), np.array(b"?", object)).tolist() == [b"?", b"TWO"]
    keys, values = table.export()
    assert keys.tolist() == [2]
    assert values.tolist() == [b"TWO"]
    assert table.find(np.zeros((0, 3), np.int64), np.array(b"", object)).shape == (0, 3)
    with pytest.raises(InvalidArgumentError, match="the values must have"):
        table.insert(np.array([1, 2]), words(b"one"))


def test_a_table_of_rows() -> None:
    table = Table("t", INT, np.dtype(np.float32), (2,))
    rows = np.array([[1, 2], [3, 4]], np.float32)
    table.insert(np.array([5, 6]), rows)
    rows[:] = 0  # the table has rows of its own
    found = table.find(np.array([[6, 9]]), np.array([-1, -1], np.float32))
    assert found.tolist() == [[[3, 4], [-1, -1]]]
    assert table.export()[1].tolist() == [[1, 2], [3, 4]]
