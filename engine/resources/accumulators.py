"""Gradients that are summed until enough have come: what synchronous replicas average with."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..errors import InvalidArgumentError, LaminarError, ShapeError
from .batches import Array, Shape, show_shape
from .waiting import Done, tell

REDUCTIONS = ("MEAN", "SUM")


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

    Args:
        name: for errors.
        shape: of the arrays, None for unknown dimensions; None where nothing is known.
        reduction: "MEAN" or "SUM".
    """

    def __init__(self, name: str, shape: Shape | None = None, reduction: str = "MEAN") -> None:
        if reduction not in REDUCTIONS:
            raise InvalidArgumentError(
                f'accumulator {name!r}: the reduction must be "MEAN" or "SUM", got {reduction!r}'
            )
        self.name = name
        self.shape = shape
        self.reduction = reduction
        self.declared: Any = None  # what graphs say of it
        self._lock = threading.Lock()
        self._count = 0
        self._step = 0
        self._waiting: deque[_Waiter] = deque()

    # What is summed, by kind; called under the lock

    def _check(self, gradient: Any) -> None:
        raise NotImplementedError

    def _add(self, gradient: Any) -> None:
        raise NotImplementedError

    def _take(self, divisor: int) -> Any:
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

    def apply(self, gradient: Any, local_step: int = 0) -> bool:
        """Add one; False, and nothing is changed, when it was computed before the present step.

        Raises:
            ShapeError: it does not fit the others.
        """
        with self._lock:
            if local_step < self._step:
                return False
            self._check(gradient)
            self._add(gradient)
            self._count += 1
            ready = self._serve()
        tell(ready)
        return True

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
        while self._waiting and self._count >= self._waiting[0].required:
            waiter = self._waiting.popleft()
            divisor = self._count if self.reduction == "MEAN" else 1
            ready.append((waiter.done, self._take(divisor), None))
            self._count = 0
            self._step += 1
        return ready

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


class SparseAccumulator(Accumulator):
    """Sums arrays of which single rows are given: (indices int64[n], values (n, ...)).

    The mean of a row is over the arrays that have the row.
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
        if self.reduction == "MEAN":
            share = counts.reshape(-1, *(1,) * (values.ndim - 1))
            values = (values / share).astype(joined.dtype, copy=False)
        return indices, values
