"""timeseries_dataset_from_array: windows over a series."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar.datasets import Dataset
from laminar.datasets.indexing import Block, Rows
from laminar.datasets.sources import in_memory
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import TensorSpec, as_dtype
from laminar.engine.ops.core.arrays import to_array
from laminar.random import make_default_seed

_WHO = "timeseries_dataset_from_array"


def timeseries_dataset_from_array(
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int = 1,
    sampling_rate: int = 1,
    batch_size: int | None = 128,
    shuffle: bool = False,
    seed: int | None = None,
    start_index: int | None = None,
    end_index: int | None = None,
    format: str = "tf",
) -> Dataset:
    """A Dataset of windows over a series: data[i], data[i + r], ... data[i + (length - 1) r].

    A batch of windows is one selection by indices; the series is not copied.

    Args:
        data: (steps, ...) values at equal intervals.
        targets: what is to be predicted for the window that begins at i stands at targets[i];
            None for windows alone.
        sequence_length: steps in a window.
        sequence_stride: steps between the beginnings of two windows.
        sampling_rate: steps r between two of a window.
        batch_size: windows in a batch; None for single windows.
        shuffle: whether windows come in random order, another one in each pass.
        seed: of that order.
        start_index: the first step that is used.
        end_index: the step after the last one that is used.
        format: "tf" or "grain", of which both give the same here.

    Raises:
        InvalidArgumentError: a count below 1, indices outside of the data, or no room for a window.

    Examples:
        >>> data = laminar.utils.timeseries_dataset_from_array(
        ...     np.arange(6), None, sequence_length=3
        ... )
        >>> next(iter(data))
        Tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4],
                [3, 4, 5]], shape=(4, 3), dtype=int64)
    """
    if format not in ("tf", "grain"):
        raise InvalidArgumentError(f"{_WHO}: format must be 'tf' or 'grain', got {format!r}")
    counts = {
        "sequence_length": sequence_length,
        "sequence_stride": sequence_stride,
        "sampling_rate": sampling_rate,
    }
    series = _steps("data", data)
    size = len(series)
    start, end = _bounds(start_index, end_index, size)
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 1:
            raise InvalidArgumentError(f"{_WHO}: {name} must be at least 1, got {count!r}")
        if count >= size:
            raise InvalidArgumentError(
                f"{_WHO}: {name} must be less than the {size} steps of the data, got {count}"
            )
    windows = end - start - (sequence_length - 1) * sampling_rate
    wanted = None if targets is None else _steps("targets", targets)[start:end]
    if wanted is not None:
        windows = min(windows, len(wanted))
    begins = np.arange(0, windows, sequence_stride)
    if not len(begins):
        raise InvalidArgumentError(
            f"{_WHO}: {end - start} steps have no room for a window of {sequence_length} with "
            f"sampling_rate={sampling_rate}",
            remedy="use shorter windows",
        )
    steps = np.arange(sequence_length) * sampling_rate
    rows = _Windows(series[start:end], wanted, begins, steps)
    found = Dataset(in_memory(_WHO, rows))
    if shuffle:
        found = found.shuffle(seed=make_default_seed() if seed is None else seed)
    return found if batch_size is None else found.batch(batch_size)


def _steps(name: str, value: Any) -> Any:
    """An array with the steps along its first axis."""
    array = to_array(value, copy=False)[0]
    if not array.ndim:
        raise InvalidArgumentError(
            f"{_WHO}: {name} must be an array with a step in each row, got {value!r}",
            remedy="give an array of at least one axis",
        )
    return array


def _bounds(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    found = (0 if start is None else start, size if end is None else end)
    are_whole = all(isinstance(n, int | np.integer) for n in found)
    if not are_whole or not 0 <= found[0] < found[1] <= size:
        raise InvalidArgumentError(
            f"{_WHO}: expected 0 <= start_index < end_index <= {size}, got {start!r} and {end!r}"
        )
    return found


class _Windows(Rows):
    """Windows of a series, and the targets at their beginnings."""

    def __init__(self, series: Any, targets: Any, begins: Any, steps: Any) -> None:
        super().__init__(len(begins))
        self._series = series
        self._targets = targets
        self._begins = begins
        self._steps = steps

    def reader(self) -> Callable[[Block], Any]:
        def read(block: Block) -> Any:
            begins = self._begins[block]
            windows = self._series[begins[:, None] + self._steps]
            return windows if self._targets is None else (windows, self._targets[begins])

        return read

    def spec(self) -> Any:
        series = self._series
        windows = TensorSpec((len(self._steps), *series.shape[1:]), as_dtype(series.dtype))
        if self._targets is None:
            return windows
        return windows, TensorSpec(self._targets.shape[1:], as_dtype(self._targets.dtype))
