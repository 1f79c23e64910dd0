"""Gradients that are summed until enough have come: what synchronous replicas average with."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import AbortedError, InvalidArgumentError, LaminarError, ShapeError
from .batches import Array, Shape, show_shape
from .waiting import Done, tell

REDUCTIONS = ("MEAN", "SUM", "MEAN_OF_ALL")


class _Waiter:
    __slots__ = ("_accumulator", "done", "required")

    def __init__(self, accumulator: Accumulator, required: int, done: Done) -> None:
        self._accumulator = accumulator
        self.required = required
        self.done = done

    def cancel(self, error: LaminarError) -> bool:
        """Give up waiting; False when it is over already."""
        return self._accumulator.cancel(self, error)


class Accumulator:
    """A sum of arrays, and who waits for it. State, guarded by `_lock`:

    `_sum`: of `_count` arrays, None for none; an array of this object's own, added to in place;
    `_step`: what was computed from older values than of this step is dropped. It rises with each
        take; `_waiting`: the takes that have not been served, in order.
    `_seen`: the replicas with numbers that have given for this step; `_given[replica]`: what of it
        is not in the sum yet. It is added in the order of their numbers, so that the sum has the
        same bits in whatever order they come: `_next` is the first whose turn has not been.
        `_left`: the replicas that are done.

    Args:
        name: for errors.
        shape: of the arrays, None for unknown dimensions; None where nothing is known.
        reduction: "MEAN", "SUM", or "MEAN_OF_ALL": of rows, over all arrays, also those that do
            not have a row.
    """

    def __init__(self, name: str, shape: Shape | None = None, reduction: str = "MEAN") -> None:
        if reduction not in REDUCTIONS:
            raise InvalidArgumentError(
                f"accumulator {name!r}: the reduction must be one of {', '.join(REDUCTIONS)}, got "
                f"{reduction!r}"
            )
        self.name = name
        self.shape = shape
        self.reduction = reduction
        self.declared: Any = None  # what graphs say of it
        self._lock = threading.Lock()
        self._count = 0
        self._step = 0
        self._waiting: deque[_Waiter] = deque()
        self._seen: set[int] = set()
        self._given: dict[int, Any] = {}
        self._next = 0
        self._left: set[int] = set()
        self._total: int | None = None  # how many replicas there are, once one has left

    # What is summed, by kind; called under the lock

    def _check(self, gradient: Any) -> None:
        raise NotImplementedError

    def _add(self, gradient: Any) -> None:
        raise NotImplementedError

    def _take(self, divisor: int) -> Any:
        raise NotImplementedError

    def _drop(self) -> None:
        """Forget the sum."""
        raise NotImplementedError

    # What users do

    @property
    def num_accumulated(self) -> int:
        """How many arrays are in the sum."""
        return self._count

    @property
    def step(self) -> int:
        """The step that arrays must have been computed at, or after."""
        return self._step

    def set_step(self, step: int) -> None:
        """Raise the step; one that is lower changes nothing."""
        with self._lock:
            self._step = max(self._step, step)

    def reset(self, step: int) -> None:
        """Begin anew at a step, which may be lower: what was added is dropped, who waits fails.

        Replicas that had left are counted again.
        """
        error = AbortedError(f"accumulator {self.name!r} was begun anew, at step {step}")
        with self._lock:
            self._begin_anew()
            self._drop()
            self._left.clear()
            self._step = step
            ready = [(waiter.done, None, error) for waiter in self._waiting]
            self._waiting.clear()
        tell(ready)

    def leave(self, replica: int, total: int) -> int:
        """A replica of so many gives no more arrays: no take requires those that have left.

        Gives how many have left.
        """
        with self._lock:
            self._left.add(replica)
            self._total = total
            count = len(self._left)
            ready = self._serve()
        tell(ready)
        return count

    def apply(self, gradient: Any, local_step: int = 0, replica: int | None = None) -> bool:
        """Add one; False, and nothing is changed, when it was computed before the present step.

        Of a replica with a number one is taken in each step, and of that step alone: what it gives
        again after a failure counts once.

        Raises:
            ShapeError: it does not fit the others.
        """
        with self._lock:
            if replica is not None:
                self._left.discard(replica)
            if local_step < self._step:
                return False
            if replica is not None and (local_step > self._step or replica in self._seen):
                return False
            self._check(gradient)
            if replica is None:
                self._add(gradient)
            else:
                self._seen.add(replica)
                self._given[replica] = gradient
                self._add_given()
            self._count += 1
            ready = self._serve()
        tell(ready)
        return True

    def _add_given(self) -> None:
        """Add what it is the turn of."""
        while self._next in self._seen or self._next in self._left:
            self._next += 1
        for replica in sorted(r for r in self._given if r < self._next):
            self._add(self._given.pop(replica))

    def _begin_anew(self) -> None:
        self._count = self._next = 0
        self._seen.clear()
        self._given.clear()

    def take(self, required: int, done: Done) -> _Waiter | None:
        """Wait for `required` arrays; `done` gets their mean or sum, and counting starts anew.

        What came beyond `required` is in it too.
        """
        if required < 1:
            raise InvalidArgumentError(
                f"accumulator {self.name!r}: at least 1 must be required, got {required}"
            )
        waiter = _Waiter(self, required, done)
        with self._lock:
            self._waiting.append(waiter)
            ready = self._serve()
        tell(ready)
        return waiter

    def cancel(self, waiter: _Waiter, error: LaminarError) -> bool:
        """Have one give up waiting; False when it was served already."""
        with self._lock:
            if waiter not in self._waiting:
                return False
            self._waiting.remove(waiter)
            ready = [(waiter.done, None, error), *self._serve()]
        tell(ready)
        return True

    def _serve(self) -> list[tuple[Done, Any, LaminarError | None]]:
        ready: list[tuple[Done, Any, LaminarError | None]] = []
        while self._waiting and self._count >= self._required(self._waiting[0]):
            waiter = self._waiting.popleft()
            for replica in sorted(self._given):
                self._add(self._given[replica])
            divisor = 1 if self.reduction == "SUM" else self._count
            ready.append((waiter.done, self._take(divisor), None))
            self._begin_anew()
            self._step += 1
        return ready

    def _required(self, waiter: _Waiter) -> int:
        if self._total is None:
            return waiter.required
        return max(1, min(waiter.required, self._total - len(self._left)))

    def __repr__(self) -> str:
        return f"accumulator {self.name!r}"


def _fits(shape: Shape, found: Sequence[int]) -> bool:
    return len(shape) == len(found) and all(
        n is None or n == m for n, m in zip(shape, found, strict=True)
    )


class DenseAccumulator(Accumulator):
    """Sums whole arrays."""

    def __init__(self, name: str, shape: Shape | None = None, reduction: str = "MEAN") -> None:
        super().__init__(name, shape, reduction)
        self._sum: Array = None

    def _check(self, gradient: Any) -> None:
        expected = self.shape if self._sum is None else self._sum.shape
        if expected is not None and not _fits(expected, gradient.shape):
            raise ShapeError(
                f"accumulator {self.name!r} sums arrays of shape {show_shape(expected)}, "
                f"got {show_shape(gradient.shape)}"
            )

    def _add(self, gradient: Any) -> None:
        if self._sum is None:
            self._sum = np.array(gradient)  # a copy: it is added to in place
        else:
            np.add(self._sum, gradient, out=self._sum)

    def _take(self, divisor: int) -> Any:
        total, self._sum = self._sum, None
        if divisor != 1:
            total = (total / divisor).astype(total.dtype, copy=False)
        return total

    def _drop(self) -> None:
        self._sum = None


class SparseAccumulator(Accumulator):
    """Sums arrays of which single rows are given: (indices int64[n], values (n, ...)).

    The mean of a row is over the arrays that have the row, or over all.
    """

    def __init__(self, name: str, shape: Shape | None = None, reduction: str = "MEAN") -> None:
        super().__init__(name, shape, reduction)
        self._indices: list[Array] = []
        self._values: list[Array] = []

    def _check(self, gradient: Any) -> None:
        indices, values = gradient
        fits = indices.ndim == 1 and values.ndim >= 1 and len(indices) == len(values)
        rest = self.shape[1:] if self.shape is not None else None
        if self._values:
            rest = self._values[0].shape[1:]
        if not fits or (rest is not None and not _fits(rest, values.shape[1:])):
            raise ShapeError(
                f"accumulator {self.name!r} sums rows of shape "
                f"{'any' if rest is None else show_shape(rest)}, got indices "
                f"{show_shape(indices.shape)} and values {show_shape(values.shape)}"
            )
        rows = self.shape[0] if self.shape else None
        if indices.size and (
            indices.min() < 0 or (rows is not None and int(indices.max()) >= rows)
        ):
            raise InvalidArgumentError(
                f"accumulator {self.name!r}: an index is out of range for {rows or 'any'} rows, "
                f"they go from {indices.min()} to {indices.max()}"
            )

    def _add(self, gradient: Any) -> None:
        indices, inverse = np.unique(gradient[0], return_inverse=True)
        values = np.zeros((len(indices), *gradient[1].shape[1:]), gradient[1].dtype)
        np.add.at(values, inverse, gradient[1])  # a row named twice by one array counts once
        self._indices.append(indices)
        self._values.append(values)

    def _take(self, divisor: int) -> Any:
        indices, inverse, counts = np.unique(
            np.concatenate(self._indices), return_inverse=True, return_counts=True
        )
        joined = np.concatenate(self._values)
        self._indices, self._values = [], []
        values = np.zeros((len(indices), *joined.shape[1:]), joined.dtype)
        np.add.at(values, inverse, joined)
        share: Any = divisor
        if self.reduction == "MEAN":
            share = counts.reshape(-1, *(1,) * (values.ndim - 1))
        if self.reduction != "SUM":
            values = (values / share).astype(joined.dtype, copy=False)
        return indices, values

    def _drop(self) -> None:
        self._indices, self._values = [], []
