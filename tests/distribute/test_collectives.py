"""Values that are whole and values of one process, with gradients; by threads for processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.distribute.collectives.group import Group, SingleGroup
from laminar.distribute.collectives.ops import (
    buckets,
    gathered_rows,
    of_first_worker,
    own_rows,
    replicated,
    summed,
)
from laminar.engine.errors import DTypeError, FailedPreconditionError, ShapeError
from laminar.engine.graph import TensorSpec

rng = np.random.default_rng(0)
X = rng.normal(size=(7, 3))
W = rng.normal(size=(3, 2))
WAIT = 30.0


class ThreadGroup(Group):
    """Threads that tell each other by a list."""

    def __init__(self, rank: int, shared: list[Any], barrier: threading.Barrier) -> None:
        self.rank, self.size = rank, len(shared)
        self._shared = shared
        self._barrier = barrier

    def _all(self, value: Any) -> list[Any]:
        self._shared[self.rank] = value
        self._barrier.wait(WAIT)
        found = list(self._shared)
        self._barrier.wait(WAIT)
        return found

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        return [sum(parts[1:], parts[0]) for parts in zip(*self._all(arrays), strict=True)]

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        found = self._all(rows)
        assert [len(part) for part in found] == list(counts)
        return np.concatenate(found)

    def exchange(self, record: bytes) -> list[bytes]:
        return self._all(record)

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        for a, value in zip(arrays, self._all([np.array(a) for a in arrays])[root], strict=True):
            a[...] = value

    def fail(self, error: BaseException) -> None:
        self._barrier.abort()


def by_all(size: int, compute: Callable[[Group], Any]) -> list[Any]:
    """What each of so many threads computes."""
    shared: list[Any] = [None] * size
    found: list[Any] = [None] * size
    errors: list[BaseException] = []
    barrier = threading.Barrier(size)

    def work(rank: int) -> None:
        try:
            found[rank] = compute(ThreadGroup(rank, shared, barrier))
        except BaseException as error:
            errors.append(error)
            barrier.abort()

    threads = [threading.Thread(target=work, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT)
    real = [e for e in errors if not isinstance(e.__cause__ or e, threading.BrokenBarrierError)]
    if real:
        raise real[0]
    return found


@pytest.mark.parametrize("counts", [[3, 4], [7, 0], [0, 7], [2, 3, 2], [0, 6, 1]])
@pytest.mark.parametrize("traced", [False, True])
def test_gradients_of_whole_values_are_whole(counts: list[int], traced: bool) -> None:
    """loss = sum(tanh(x @ w)**2) + sum(w**2): each process computes its rows of the product."""

    def compute(group: Group) -> Any:
        n = ops.convert_to_tensor(np.array(counts))

        def step(x: Any, w: Any) -> Any:
            with laminar.GradientTape() as tape:
                tape.watch([x, w])
                (own,) = replicated([w], group, 1 << 20)
                y = gathered_rows(ops.tanh(own_rows(x, n, group) @ own), n, group)
                loss = ops.sum(y * y) + ops.sum(w * w)
            return loss, y, *tape.gradient(loss, [x, w])

        run = laminar.function(step) if traced else step
        return [np.asarray(v) for v in run(*map(ops.convert_to_tensor, (X, W)))]

    y = np.tanh(X @ W)
    slope = 2 * y * (1 - y * y)
    expected = [(y * y).sum() + (W * W).sum(), y, slope @ W.T, X.T @ slope + 2 * W]
    found = by_all(len(counts), compute)
    for values in found:
        for value, first, right in zip(values, found[0], expected, strict=True):
            np.testing.assert_allclose(value, right, rtol=1e-12)
            np.testing.assert_array_equal(value, first)


def test_sums_and_values_of_the_first() -> None:
    def compute(group: Group) -> Any:
        mine = ops.convert_to_tensor(np.full(3, 10.0**group.rank))
        (total,) = summed([mine], group)
        (first,) = of_first_worker([mine], group)
        return np.asarray(total), np.asarray(first)

    for total, first in by_all(3, compute):
        np.testing.assert_array_equal(total, [111.0] * 3)
        np.testing.assert_array_equal(first, [1.0] * 3)


def test_what_is_gathered_is_taken_as_it_was() -> None:
    """In a graph, the rows of a process that have been gathered need not be cut out again."""
    group = SingleGroup()
    types: list[str] = []

    @laminar.function
    def step(x: Any, n: Any) -> Any:
        found = own_rows(gathered_rows(x, n, group), n, group)
        assert found is x
        types.append(found.op.type)
        return found + 1.0

    np.testing.assert_array_equal(step(np.ones((2, 2)), np.array([2])), np.full((2, 2), 2.0))
    assert types == ["Placeholder"]


def test_messages_of_any_length() -> None:
    texts = by_all(3, lambda group: group.gather(b"x" * group.rank))
    assert texts == [[b"", b"x", b"xx"]] * 3


def test_rows_that_are_missing() -> None:
    rows, counts = ops.ones((2, 2)), ops.convert_to_tensor([3])
    with pytest.raises(ShapeError, match=r"this worker has 3 examples, and 2 rows were computed"):
        gathered_rows(rows, counts, SingleGroup())


def test_several_types() -> None:
    with pytest.raises(DTypeError, match="expected one element type"):
        summed([ops.ones(2, "float32"), ops.ones(2, "float64")], SingleGroup())


def test_a_single_process_does_not_recover() -> None:
    with pytest.raises(FailedPreconditionError, match="cannot go on"):
        SingleGroup().recover()


def test_buckets_have_one_type_and_so_many_bytes() -> None:
    specs = [
        TensorSpec((100,), "float32"),
        TensorSpec((10,), "float64"),
        TensorSpec((50,), "float32"),
        TensorSpec((1,), "float32"),
        TensorSpec((2000,), "float32"),
        TensorSpec((5,), "float64"),
    ]
    assert buckets(specs, 600) == [[0, 2], [1, 5], [3], [4]]
    assert buckets(specs, 1) == [[i] for i in range(6)]
    assert buckets([], 100) == []
