"""Where the batches of a loop come from: whatever the user passed, epoch after epoch."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

import numpy as np

from laminar.datasets.dataset import Dataset
from laminar.datasets.py_dataset import PyDataset
from laminar.engine.closing import Closing
from laminar.engine.errors import InvalidArgumentError, OutOfRangeError
from laminar.engine.graph import Tensor
from laminar.engine.state import Variable

from ..typing import DataLike, TensorStructure
from .array_data import ArrayData as ArrayData
from .batches import Batch as Batch
from .batches import BatchReader
from .batches import pack_x_y_sample_weight as pack_x_y_sample_weight
from .batches import unpack_x_y_sample_weight as unpack_x_y_sample_weight
from .streams import Iterated, Numbered, Stream, Walked

Data = ArrayData | Stream


class Epochs(Closing):
    """The batches of epoch after epoch. As a context it ends what runs for them.

    Args:
        data: what to walk over.
        steps: batches in an epoch; the next one goes on where it ended. An epoch ends where the
            data does, and the next one begins anew, if it can be walked again. None: an epoch is a
            pass.
    """

    def __init__(self, data: Data, steps: int | None = None) -> None:
        self.data = data
        self.steps = steps
        self.waited_seconds = 0.0  # for data that is not in memory
        self._taken = 0  # batches of the pass that runs
        self._total = 0
        self._epochs = 0
        self._in_epoch = 0  # batches of the epoch that runs
        self._has_begun = False  # the data knows that an epoch has begun
        self._running: Iterator[Batch] | None = None

    @property
    def num_steps(self) -> int | None:
        """Batches in an epoch, None when that is not known."""
        return self.steps or self.data.num_batches

    @property
    def batch_size(self) -> int | None:
        """Examples in a batch: those of the last one, if the data does not say."""
        return self.data.batch_size

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The sizes that batches have, none when they are not known beforehand."""
        return self.data.batch_sizes

    @property
    def position(self) -> dict[str, Any]:
        """Where the next batch stands: `seek` goes there."""
        return {
            "passes": self.data.passes,
            "taken": self._taken,
            "total": self._total,
            "epochs": self._epochs,
            "in_epoch": self._in_epoch,
            "place": self.data.place(),
        }

    def seek(self, position: Mapping[str, Any], *, inside: bool) -> None:
        """Go on where another walk over the same data stood.

        Args:
            position: of that walk.
            inside: whether it stood inside an epoch.
        """
        for _ in range(self._epochs, position["epochs"]):
            self._begin()
            self._end()
        self._total, self._epochs = position["total"], position["epochs"]
        self._in_epoch = position["in_epoch"] if inside else 0
        self.data.passes = position["passes"]
        self._running = None
        goes_on = inside or self.steps is not None
        if inside:
            self._begin()
        if goes_on and position["passes"]:
            self.data.passes -= 1
            self._taken = position["taken"]
            first = self._total if self.data.ends_for_good else self._taken
            self._running = self._timed(self.data.batches(first, position["place"]))
        elif self.data.ends_for_good:
            self._running = self._timed(self.data.batches(self._total))

    def step_is_made(self, step: Any, batch: Batch) -> None:
        """A loop is about to run `step` for the first time, on `batch`."""

    def epoch_is_told(self) -> None:
        """An epoch of training has ended, and the callbacks have heard of it."""

    def _begin(self) -> None:
        if not self._has_begun:
            self._has_begun = True
            self.data.epoch_begins()

    def _end(self) -> None:
        self._has_begun = False
        self._in_epoch = 0
        self.data.epoch_ended()

    def close(self) -> None:
        """End what runs for the data: threads, processes, files."""
        self._running = None
        self.data.close()

    def peek(self) -> Batch | None:
        """The next batch, which stays the next one; None when there is none."""
        self._begin()
        if self._running is None:
            self._running, self._taken = self._timed(iter(self.data)), 0
        batch = next(self._running, None)
        self._running = None if batch is None else chain([batch], self._running)
        return batch

    def _timed(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        """The same batches; how long they are waited for is added up."""
        return batches if isinstance(self.data, ArrayData) else self._measured(batches)

    def _measured(self, batches: Iterator[Batch]) -> Iterator[Batch]:
        while True:
            begin = time.perf_counter()
            batch = next(batches, None)
            self.waited_seconds += time.perf_counter() - begin
            if batch is None:
                return
            yield batch

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch; fewer than `steps` when the data has ended for good."""
        self._begin()
        if self.steps is None:
            running, self._running = self._running, None
            if running is None:
                running, self._taken = self._timed(iter(self.data)), 0
            for batch in running:
                self._taken += 1
                self._total += 1
                self._in_epoch += 1
                yield batch
        else:
            left = self.steps - self._in_epoch
            self.data.allow(left)
            for _ in range(left):
                batch = self._next(begins=not self._in_epoch)
                if batch is None:
                    break
                self._in_epoch += 1
                yield batch
        self._epochs += 1
        self._end()

    def _next(self, *, begins: bool) -> Batch | None:
        batch = None if self._running is None else next(self._running, None)
        is_over = self._running is not None and self.data.ends_for_good
        if batch is None and begins and not is_over:
            self._running, self._taken = self._timed(iter(self.data)), 0
            batch = next(self._running, None)
        if batch is not None:
            self._taken += 1
            self._total += 1
        return batch


def make_data(
    x: DataLike | None,
    y: TensorStructure | None = None,
    sample_weight: TensorStructure | None = None,
    *,
    batch_size: int | None = None,
    steps: int | None = None,
    shuffle: bool = False,
    class_weight: Mapping[int, float] | None = None,
    who: str = "fit",
) -> Data:
    """Batches of whatever the user passed.

    Raises:
        InvalidArgumentError: y or sample_weight beside an iterable that holds its own.
    """
    if x is None:
        raise InvalidArgumentError(f"{who}: x is missing", remedy="pass arrays or a data set")
    if not _is_iterable_of_batches(x):
        return ArrayData(
            x,
            y,
            sample_weight,
            batch_size=batch_size,
            steps=steps,
            shuffle=shuffle,
            class_weight=class_weight,
            who=who,
        )
    # batch_size and shuffle are for arrays: data that yields batches is asked for them as it is.
    for name, value in (("y", y), ("sample_weight", sample_weight)):
        if value is not None:
            raise InvalidArgumentError(
                f"{who}: {name} cannot be given when x is a {type(x).__name__}, "
                f"which yields whole batches",
                remedy="have it yield (x, y, sample_weight)",
            )
    reader = BatchReader(who, class_weight)
    if isinstance(x, Dataset):
        return Walked(x, reader, who)
    if isinstance(x, PyDataset):
        return Numbered(x, reader, shuffle)
    return Iterated(x, reader, who)


def require_end(data: Data | None, steps: int | None, who: str, argument: str) -> None:
    """InvalidArgumentError when it is known that an epoch, without `argument`, would never end."""
    if steps is None and isinstance(data, Stream) and data.is_endless:
        raise InvalidArgumentError(
            f"{who}: the data never ends, and {argument} is not given",
            remedy=f"say how many batches to take: {argument}=100",
        )


def _is_iterable_of_batches(x: DataLike) -> bool:
    if isinstance(x, np.ndarray | Tensor | Variable | list | tuple | dict | str | bytes):
        return False
    if isinstance(x, PyDataset | Dataset):
        return True
    if hasattr(x, "to_numpy") or hasattr(x, "__array__") or hasattr(x, "__dlpack__"):
        return False
    return any(hasattr(x, name) for name in ("__iter__", "__getitem__", "__call__"))


def ran_out(who: str, done: int, wanted: int) -> OutOfRangeError:
    """The error for data that ends before the epoch does."""
    return OutOfRangeError(
        f"{who}: the data ended after {done} batches, {wanted} were asked for",
        remedy="let the generator go on for ever, or lower steps_per_epoch",
    )
