"""Data that yields whole batches: generators, loaders, data sets, PyDatasets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from laminar.datasets.batching import Batched
from laminar.datasets.dataset import Dataset
from laminar.datasets.dealing import dealt
from laminar.datasets.epochs import INFINITE
from laminar.datasets.iteration import DatasetIterator
from laminar.datasets.py_dataset import PyDataset
from laminar.datasets.stage import Stage
from laminar.datasets.worker_processes import WorkerProcesses
from laminar.datasets.worker_threads import WorkerThreads
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.random import make_default_seed

from .batches import Batch, BatchReader, as_tensors, size_of, sizes_of_batches
from .prefetch import Ahead, Source

_AHEAD = 2  # batches that a thread makes ahead, where the data does not say


class Stream:
    """Batches, pass after pass. Abstract: `_open` is to be written.

    Args:
        reader: makes batches of what the data yields.

    Attributes:
        passes: how many have begun.
        batch_size: examples in the last batch, None before the first.
        num_batches: in a pass, None when that is not known.
        batch_sizes: those that batches have, none when they are not known.
        ends_for_good: whether there is one pass only, which goes on from epoch to epoch.
        is_endless: whether it is known that a pass never ends.
        seed: of the order of the batches, where that is random.
    """

    ends_for_good = False
    is_endless = False
    num_batches: int | None = None
    batch_sizes: tuple[int, ...] = ()

    def __init__(self, reader: BatchReader) -> None:
        self._reader = reader
        self._running: Ahead | None = None
        self._allowed: int | None = None
        self.passes = 0
        self.batch_size: int | None = None
        self.seed = 0

    def _open(self, number: int, first: int, place: Any) -> Ahead:
        """The batches of pass `number` from batch `first`, or from `place` where that is known."""
        raise NotImplementedError

    def __iter__(self) -> Iterator[Batch]:
        return self.batches(0)

    def batches(self, first: int, place: Any = None) -> Iterator[Batch]:
        """The batches of the next pass, from number `first`; `place` is what `place` gave there."""
        self.close()
        self.passes += 1
        running = self._running = self._open(self.passes - 1, first, place)
        return self._counted(running)

    def _counted(self, running: Ahead) -> Iterator[Batch]:
        for batch in running:
            self.batch_size = size_of(batch)
            yield batch
        running.close()
        if self._running is running:
            self._running = None

    def place(self) -> Any:
        """Where the pass that runs is, as data; None when counting has to do."""
        return None if self._running is None else self._running.place()

    def allow(self, count: int) -> None:
        """Let at most so many more batches be taken ahead: what is left is the user's."""
        if self.ends_for_good:
            self._allowed = count
            if self._running is not None:
                self._running.allow(count)

    def allow_uneven(self) -> None:
        """Take batches whose parts differ in the number of examples: whoever reads them knows."""
        self._reader.is_paired = False

    def epoch_begins(self) -> None:
        """Tell the data, if it wants to know."""

    def epoch_ended(self) -> None:
        """Tell the data, if it wants to know."""

    def close(self) -> None:
        """End the pass that runs: its threads, processes and files."""
        running, self._running = self._running, None
        if running is not None:
            running.close()


class Iterated(Stream):
    """Batches of a generator, a loader, or anything else that can be walked or indexed.

    Args:
        batches: the data; an iterator (which can be walked once only) goes on where it is.
        reader: makes batches of what it yields.
        who: what it is given to, for errors.
    """

    def __init__(self, batches: Any, reader: BatchReader, who: str) -> None:
        if callable(batches) and not hasattr(batches, "__iter__"):
            raise InvalidArgumentError(
                f"{who}: x is a function, expected data",
                remedy="call it: pass the generator that it returns",
            )
        super().__init__(reader)
        self._batches = batches
        self.ends_for_good = hasattr(batches, "__next__")
        try:
            self.num_batches = len(batches)
        except (TypeError, AttributeError):
            self.num_batches = None

    def _open(self, number: int, first: int, place: Any) -> Ahead:
        if hasattr(self._batches, "__iter__"):
            items: Iterator[Any] = itertools.islice(self._batches, first, None)
        else:  # indexed: the length is asked for again, as it may change between epochs
            items = map(self._batches.__getitem__, range(first, len(self._batches)))
        source = _Read(items, self._reader)
        return Ahead(source, _AHEAD, allowed=self._allowed)

    def epoch_ended(self) -> None:
        told = getattr(self._batches, "on_epoch_end", None)
        if told is not None:
            told()


class _Read(Source):
    """Batches of an iterator."""

    def __init__(self, items: Iterator[Any], reader: BatchReader) -> None:
        self._items = items
        self._reader = reader

    def __next__(self) -> Batch:
        return as_tensors(self._reader.arrays(next(self._items)))

    def place(self) -> None:
        return None

    def close(self) -> None:
        """Nothing to do: an iterator is the user's, or is dropped."""


class Walked(Stream):
    """Batches of a laminar Dataset."""

    def __init__(self, dataset: Dataset, reader: BatchReader, who: str) -> None:
        super().__init__(reader)
        self._dataset = dataset
        self._who = who
        size = dataset.cardinality()
        self.num_batches = size if size >= 0 else None
        self.batch_sizes = _batch_sizes(dataset.stage)
        self.is_endless = size == INFINITE
        self._before = dataset.walks
        self._part: Walked | None = None

    def dealt_out(self, by: str, count: int, index: int) -> Walked:
        """The part of it that one of several workers has: see `datasets.dealing`.

        It is the same object each time, as its passes go on from loop to loop.
        """
        if self._part is None:
            whole = self._dataset
            self._part = Walked(dealt(whole, by, count, index), self._reader, self._who)
            self._part._before = self._before
        return self._part

    def _open(self, number: int, first: int, place: Any) -> Ahead:
        self._dataset.begin_at(self._before + number)
        walk = self._dataset.as_numpy_iterator()
        if place is not None:
            walk.restore(place)
        elif first:
            walk.skip(first)
        return Ahead(_FromDataset(walk, self._reader, self._who), _AHEAD)


def _batch_sizes(stage: Stage) -> tuple[int, ...]:
    """The sizes of the batches that are made on the way to a stage, if they are known."""
    while not isinstance(stage, Batched):
        if len(stage.sources) != 1:
            return ()
        (stage,) = stage.sources
    count = stage.sources[0].cardinality()
    is_cut = count >= 0 and not stage.drop_remainder
    return sizes_of_batches(count, stage.batch_size) if is_cut else ()


class _FromDataset(Source):
    def __init__(self, walk: DatasetIterator, reader: BatchReader, who: str) -> None:
        self._walk = walk
        self._reader = reader
        self._who = who

    def __next__(self) -> Batch:
        element = next(self._walk)
        try:
            return as_tensors(self._reader.arrays(element))
        except ShapeError as cause:
            raise ShapeError(
                f"{self._who}: the elements of a Dataset must be batches: {cause.message}",
                remedy="dataset.batch(32)",
            ) from cause

    def place(self) -> Any:
        return self._walk.state()

    def close(self) -> None:
        self._walk.close()


class Numbered(Stream):
    """Batches of a PyDataset.

    Args:
        dataset: what makes them.
        reader: makes batches of what it gives.
        shuffle: whether each pass goes in another random order.
    """

    def __init__(self, dataset: PyDataset, reader: BatchReader, shuffle: bool) -> None:
        super().__init__(reader)
        self._dataset = dataset
        self._shuffle = shuffle
        self.seed = make_default_seed()

    @property
    def num_batches(self) -> int | None:  # type: ignore[override]  # it may change between epochs
        """Batches in an epoch."""
        return self._dataset.num_batches

    @property
    def is_endless(self) -> bool:  # type: ignore[override]  # it may change between epochs
        """Whether there are batches for ever."""
        return self.num_batches is None

    def _order(self, number: int, first: int) -> Iterator[int]:
        count = self._dataset.num_batches
        if count is None:
            return itertools.count(first)
        if not self._shuffle:
            return iter(range(first, count))
        key = np.random.Philox(key=[self.seed, number])
        return iter(np.random.Generator(key).permutation(count)[first:].tolist())

    def _open(self, number: int, first: int, place: Any) -> Ahead:
        data, order = self._dataset, self._order(number, first)
        most = max(data.max_queue_size, 1)  # 0: none beside the one that is being made
        make = partial(_made, data, self._reader)
        many: Any
        if data.use_multiprocessing and data.workers > 0:
            many = WorkerProcesses(
                *(make, order, data.workers, most, data.timeout),
                seed=self.seed,
                walk=(number,),
            )
            return Ahead(_Made(many), most, at_once=True)
        if data.workers > 1:
            many = WorkerThreads(make, order, data.workers, most, data.timeout)
            return Ahead(_Made(many), most, at_once=True)
        return Ahead(_Read(map(data.__getitem__, order), self._reader), most)

    def epoch_begins(self) -> None:
        self._dataset.on_epoch_begin()

    def epoch_ended(self) -> None:
        self._dataset.on_epoch_end()


def _made(dataset: PyDataset, reader: BatchReader, index: int) -> Any:
    """What a worker does."""
    return reader.arrays(dataset[index])


class _Made(Source):
    """Batches that workers have made."""

    def __init__(self, workers: Any) -> None:
        self._workers = workers

    def __next__(self) -> Batch:
        return as_tensors(next(self._workers))

    def place(self) -> None:
        return None

    def close(self) -> None:
        self._workers.close()
