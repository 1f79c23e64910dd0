"""Accumulators of numbered replicas: once a step, in the order of numbers, reset and left."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import AbortedError, LaminarError
from laminar.engine.resources.accumulators import Accumulator, DenseAccumulator, SparseAccumulator

# Sums that depend on the order: 1e8 swallows a 1 that comes after it.
GIVEN = list(np.array([[1e8, 1], [1, -1e8], [-1e8, 3], [2, 1e8]], np.float32))


def rows(*values: float) -> Any:
    """Rows of one number."""
    return np.array(values, np.float32).reshape(-1, 1)


def taking(accumulator: Accumulator, required: int) -> list[Any]:
    """What a take gives, once it does."""
    found: list[Any] = []

    def done(value: Any, error: LaminarError | None) -> None:
        found.append(value if error is None else error)

    accumulator.take(required, done)
    return found


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_sums_have_the_same_bits_in_whatever_order_they_come(order: tuple[int, ...]) -> None:
    accumulator = DenseAccumulator("a", reduction="SUM")
    for replica in order:
        assert accumulator.apply(GIVEN[replica], 0, replica)
    (found,) = taking(accumulator, 4)
    expected = GIVEN[0].copy()
    for gradient in GIVEN[1:]:
        expected += gradient
    np.testing.assert_array_equal(found, expected)


def test_a_replica_counts_once_in_a_step() -> None:
    accumulator = DenseAccumulator("a")
    found = taking(accumulator, 2)
    assert accumulator.apply(np.float32(2), 0, 1)
    assert not accumulator.apply(np.float32(2), 0, 1)  # it waits for replica 0
    assert accumulator.apply(np.float32(4), 0, 0)
    assert found == [3]
    assert not accumulator.apply(np.float32(4), 0, 0)  # it is stale
    assert accumulator.apply(np.float32(8), 1, 0)
    assert not accumulator.apply(np.float32(8), 1, 0)  # it is in the sum already
    assert not accumulator.apply(np.float32(8), 2, 1)  # of a step that is not yet
    assert accumulator.num_accumulated == 1


def test_backups_are_in_the_mean_if_they_come_in_time() -> None:
    accumulator = DenseAccumulator("a")
    for replica in (3, 1, 2):
        accumulator.apply(np.float32(replica), 0, replica)
    assert taking(accumulator, 2) == [2]
    assert not accumulator.apply(np.float32(0), 0, 0)


def test_beginning_anew() -> None:
    accumulator = SparseAccumulator("a")
    waiting = taking(accumulator, 2)
    accumulator.set_step(7)
    accumulator.apply((np.array([1]), rows(1)), 7, 0)
    accumulator.reset(3)
    assert isinstance(waiting[0], AbortedError)
    assert "begun anew, at step 3" in str(waiting[0])
    assert (accumulator.step, accumulator.num_accumulated) == (3, 0)
    assert not accumulator.apply((np.array([1]), rows(1)), 7, 0)
    assert accumulator.apply((np.array([2]), rows(5)), 3, 0)
    ((indices, values),) = taking(accumulator, 1)
    assert (indices.tolist(), values.tolist()) == ([2], [[5]])


def test_those_who_have_left_are_not_waited_for() -> None:
    accumulator = DenseAccumulator("a")
    accumulator.apply(np.float32(6), 0, 2)
    found = taking(accumulator, 3)
    assert accumulator.leave(0, 3) == 1
    assert found == []
    assert accumulator.apply(np.float32(2), 0, 1)
    assert found == [4]
    # One that comes back is waited for again.
    accumulator.apply(np.float32(1), 1, 1)
    again = taking(accumulator, 3)
    assert accumulator.apply(np.float32(1), 1, 0)
    assert again == []
    accumulator.apply(np.float32(4), 1, 2)
    assert again == [2]


def test_the_mean_of_rows_over_all() -> None:
    """A row that one of two has: half of it, as of a whole gradient with zeros."""
    for reduction, expected in (("MEAN", [4, 3]), ("MEAN_OF_ALL", [2, 3])):
        accumulator = SparseAccumulator("a", reduction=reduction)
        accumulator.apply((np.array([0, 5, 5]), rows(4, 1, 1)[:, 0]))
        accumulator.apply((np.array([5]), rows(4)[:, 0]))
        ((indices, values),) = taking(accumulator, 2)
        assert indices.tolist() == [0, 5]
        assert values.tolist() == expected
