"""A data set dealt out to workers that train together: elements of each batch, or files."""

from __future__ import annotations

import copy
from collections import deque
from typing import Any

from laminar.engine.errors import InvalidArgumentError

from .batching import Batched
from .dataset import Dataset
from .epochs import Epoch, State
from .files import FileItems
from .iteration import DatasetIterator
from .mapping import Mapped
from .picking import part
from .sources import IndexedStage
from .stage import Cursor, Passing, Stage


class DealtDataset(Dataset):
    """What a worker has of a data set; its walks are those of the whole.

    Args:
        whole: the data set.
        stage: the steps of the worker's pipeline.
    """

    def __init__(self, whole: Dataset, stage: Stage) -> None:
        super().__init__(stage)
        self._whole = whole

    def _walk(self, *, as_numpy: bool) -> DatasetIterator:
        number = self._whole.walks
        self._whole.begin_at(number + 1)
        return DatasetIterator(self.stage, number, as_numpy=as_numpy)

    @property
    def walks(self) -> int:
        return self._whole.walks

    def begin_at(self, number: int) -> None:
        self._whole.begin_at(number)


def dealt(dataset: Dataset, by: str, count: int, index: int) -> Dataset:
    """What worker `index` of `count` has of a data set that ends in batches.

    By "element", a batch of the whole is one of each worker: every `count`-th of its elements,
    chosen before they are mapped. By "file" a worker reads every `count`-th file, and its batches
    have its part of the batch size.

    Raises:
        InvalidArgumentError: the data set has no `batch`, a batch has fewer elements than there are
            workers, or, by "file", no files are read.
    """
    chain = [dataset.stage]
    while not isinstance(chain[-1], Batched):
        if len(chain[-1].sources) != 1:
            raise _cannot(dataset, by, "no batches are made by Dataset.batch")
        chain.append(chain[-1].sources[0])
    batched = chain[-1]
    assert isinstance(batched, Batched), "the walk ends there"
    own = len(range(index, batched.batch_size, count))
    if batched.batch_size < count:
        raise _cannot(dataset, by, f"its batches of {batched.batch_size} are for {count} workers")
    if by == "file":
        source, found = _of_files(batched.sources[0], count, index)
        if not found:
            raise _cannot(dataset, by, "it reads no files by list_files, from_files or their like")
        stage: Stage = Batched(source, own, batched.drop_remainder)
    else:
        source = _before_maps(batched, count, index)
        stage = Batched(source, own, batched.drop_remainder)
    stage.made = batched.made
    for above in reversed(chain[:-1]):
        stage = _on(above, stage)
    return DealtDataset(dataset, stage)


def _cannot(dataset: Dataset, by: str, why: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"{dataset!r} cannot be dealt out by {by!r}: {why}",
        remedy="use MultiWorker(auto_shard='batch'), or 'off' with dataset.shard(workers, rank)",
    )


def _on(stage: Stage, source: Stage) -> Stage:
    """A stage over another source."""
    found = copy.copy(stage)
    found.sources = (source,)
    return found


def _before_maps(batched: Batched, count: int, index: int) -> Stage:
    """The elements of a worker, below the functions that make one of one."""
    maps: list[Stage] = []
    source = batched.sources[0]
    while isinstance(source, Mapped) and source.is_ordered:
        maps.append(source)
        source = source.sources[0]
    found: Stage = Dealt(source, batched.batch_size, count, index, batched.drop_remainder)
    for above in reversed(maps):
        found = _on(above, found)
    return found


def _of_files(stage: Stage, count: int, index: int) -> tuple[Stage, bool]:
    """A stage with the files of a worker, and whether there are any in it."""
    if isinstance(stage, FileItems):
        found = copy.copy(stage)
        found.paths = stage.paths[index::count]
        return found, True
    if isinstance(stage, IndexedStage) and "Dataset.list_files" in stage.names():
        return part("Dataset.shard", stage, index, None, count), True
    below = [_of_files(source, count, index) for source in stage.sources]
    if not any(is_found for _, is_found in below):
        return stage, False
    copied = copy.copy(stage)
    copied.sources = tuple(source for source, _ in below)
    return copied, True


class Dealt(Stage):
    """Of each batch's elements, those of one worker: each `count`-th, from `index` on.

    With `drop_remainder` those of a shorter last batch are left out.
    """

    def __init__(
        self, source: Stage, batch_size: int, count: int, index: int, drop_remainder: bool
    ) -> None:
        super().__init__("Dataset.shard", source)
        self.batch_size = batch_size
        self.count = count
        self.index = index
        self.drop_remainder = drop_remainder

    def cardinality(self) -> int:
        size = self.sources[0].cardinality()
        if size < 0:
            return size
        batches, rest = divmod(size, self.batch_size)
        last = 0 if self.drop_remainder else len(range(self.index, rest, self.count))
        return batches * len(range(self.index, self.batch_size, self.count)) + last

    def open(self, walk: Epoch) -> Cursor:
        return _Dealing(self.sources[0].open(walk), self)


class _Dealing(Passing):
    """`_at` is the place in the batch of the source's next element; `_ready` are those of a batch
    that is whole, where only such ones count. States are taken between batches."""

    def __init__(self, source: Cursor, stage: Dealt) -> None:
        super().__init__(source)
        self._stage = stage
        self._at = 0
        self._ready: deque[Any] = deque()

    def __next__(self) -> Any:
        stage = self._stage
        if stage.drop_remainder:
            if not self._ready:
                self._ready.extend(self._batch())
            return self._ready.popleft()
        due = self._due()
        if self.source.skip(due - self._at) < due - self._at:
            raise StopIteration
        element = next(self.source)
        self._at = (due + 1) % stage.batch_size
        return element

    def _due(self) -> int:
        """The place of the worker's next element, counted on into the next batch."""
        stage = self._stage
        for place in range(self._at, stage.batch_size):
            if place % stage.count == stage.index:
                return place
        return stage.batch_size + stage.index

    def _batch(self) -> list[Any]:
        """The worker's elements of the next batch."""
        stage, found = self._stage, []
        for place in range(stage.batch_size):
            if place % stage.count == stage.index:
                found.append(next(self.source))
            elif not self.source.skip(1):
                raise StopIteration
        return found

    def state(self) -> State:
        return {"source": self.source.state(), "at": self._at}

    def restore(self, state: State) -> None:
        self.source.restore(state["source"])
        self._at = int(state["at"])
        self._ready.clear()
