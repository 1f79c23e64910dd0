"""Dataset: examples, and what is done with them on their way to a model."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from laminar.engine.errors import InvalidArgumentError
from laminar.random import make_default_seed
from laminar.tree import map_structure

from . import caching, combining, files, padding, picking, shuffling, sources
from .batching import Batched, Rebatched, Unbatched, Windowed
from .elements import as_tensors
from .epochs import INFINITE, UNKNOWN
from .iteration import DatasetIterator
from .mapping import Mapped
from .prefetching import Prefetched
from .stage import Stage, checked_count

AUTOTUNE: Final = -1
"""As a number of threads: one for each core; as a number of elements to prefetch: 2."""


class Dataset:
    """Elements one after the other: arrays, or tuples and dicts of arrays.

    Made by `from_tensor_slices` and its like; each method gives a new data set and leaves this one
    as it is. Nothing is computed before it is walked, by a `for` loop or by `fit`. Each walk begins
    anew and shuffles anew; with the same seeds two programs see the same elements.

    Functions given to `map`, `filter` and so on get NumPy arrays (texts are bytes), a tuple as
    several arguments, and return arrays, tensors or numbers. An error that they raise says which
    step of the pipeline called them. The elements of a walk are tensors.

    As long as only arrays in memory are picked from, `shuffle`, `repeat`, `take`, `skip`, `shard`
    and `batch` work on whole arrays of indices. So batch first, then map.

    Attributes:
        stage: the steps of the pipeline.
        class_names: the names of the classes, where a directory gave them.
        file_paths: the files, where a directory gave them.

    Examples:
        >>> data = (
        ...     laminar.datasets.Dataset.from_tensor_slices(np.arange(6))
        ...     .map(lambda x: x * x)
        ...     .batch(4)
        ... )
        >>> for batch in data:
        ...     print(batch)
        Tensor([0, 1, 4, 9], shape=(4,), dtype=int64)
        Tensor([16, 25], shape=(2,), dtype=int64)
    """

    def __init__(self, stage: Stage) -> None:
        if not isinstance(stage, Stage):
            raise InvalidArgumentError(
                f"Dataset: expected the steps of a pipeline, got {type(stage).__name__}",
                remedy="use Dataset.from_tensor_slices or another of its makers",
            )
        self.stage = stage
        self.class_names: list[str] | None = None
        self.file_paths: list[str] | None = None
        self._walks = 0

    # Makers

    @staticmethod
    def from_tensor_slices(tensors: Any) -> Dataset:
        """The rows of arrays: of one, or of several of the same length in a tuple or dict.

        Raises:
            InvalidArgumentError: the lengths differ.
            ShapeError: an array has no axes.
        """
        return Dataset(sources.slices("Dataset.from_tensor_slices", tensors))

    @staticmethod
    def from_tensors(tensors: Any) -> Dataset:
        """One element: all of `tensors`."""
        return Dataset(sources.Single("Dataset.from_tensors", tensors))

    @staticmethod
    def from_generator(
        generator: Callable[..., Any], output_signature: Any = None, args: tuple[Any, ...] = ()
    ) -> Dataset:
        """What a generator yields.

        Args:
            generator: a function that gives a new iterator for each walk.
            output_signature: TensorSpecs in the structure of an element, which elements are
                checked against and converted to; None takes them as they come.
            args: of `generator`.
        """
        label = "Dataset.from_generator"
        return Dataset(sources.Generated(label, generator, output_signature, args))

    @staticmethod
    def range(*args: int) -> Dataset:
        """The numbers of Python's `range`, int64."""
        return Dataset(sources.numbers("Dataset.range", *args))

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None
    ) -> Dataset:
        """The names of the files that match a pattern such as "data/*.txt", or several of them.

        Args:
            file_pattern: a pattern, or a list.
            shuffle: whether they come in random order, which they do unless told otherwise.
            seed: of that order.

        Raises:
            MissingFileError: a pattern matches no file.
        """
        label = "Dataset.list_files"
        names = files.found_files(label, file_pattern)
        found = Dataset(sources.slices(label, names))
        if shuffle is False:
            return found
        return found.shuffle(len(names), seed)

    @staticmethod
    def from_files(paths: files.Paths) -> Dataset:
        """The contents of files, one element (bytes) for each."""
        label = "Dataset.from_files"
        return Dataset(files.FileItems(label, files.as_paths(label, paths), "whole"))

    @staticmethod
    def from_text_lines(paths: files.Paths) -> Dataset:
        """The lines of text files, one after the other, as bytes without their ends."""
        label = "Dataset.from_text_lines"
        return Dataset(files.FileItems(label, files.as_paths(label, paths), "lines"))

    @staticmethod
    def from_records(paths: files.Paths, compression: str = "") -> Dataset:
        """The records (bytes) of files in the TFRecord format.

        Args:
            paths: of the files.
            compression: "", "GZIP" or "ZLIB".
        """
        label = "Dataset.from_records"
        return Dataset(files.FileItems(label, files.as_paths(label, paths), "records", compression))

    @staticmethod
    def zip(*datasets: Any) -> Dataset:
        """Elements side by side, until the first data set ends.

        Args:
            *datasets: several, or one structure of them.
        """
        given = datasets[0] if len(datasets) == 1 else datasets
        return Dataset(combining.zipped(map_structure(_stage_of, given)))

    # One element at a time

    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: int | None = None,
        deterministic: bool | None = True,
        name: str | None = None,
    ) -> Dataset:
        """A function of each element.

        Args:
            map_func: what is applied.
            num_parallel_calls: threads to run it in, AUTOTUNE for one for each core; None for the
                thread that walks. Pays where the function waits, or is busy in NumPy.
            deterministic: whether results keep the order of the elements; without it each comes
                when it is ready.
        """
        threads = _thread_count("Dataset.map", num_parallel_calls)
        in_order = deterministic is None or bool(deterministic)
        return Dataset(Mapped(self.stage, _callable("map", map_func), threads, in_order))

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """The elements for which a function says True."""
        return Dataset(picking.Filtered(self.stage, _callable("filter", predicate)))

    def flat_map(self, map_func: Callable[..., Any]) -> Dataset:
        """The elements of the data sets that a function makes of each element, one by one."""
        return Dataset(combining.Interleaved(self.stage, _callable("flat_map", map_func)))

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: int | None = None,
        block_length: int = 1,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """The elements of the data sets that a function makes of each element, in turn.

        Args:
            map_func: gives a data set for an element, such as the lines of a file.
            cycle_length: how many data sets are walked in turn; the number of cores by default.
            block_length: elements of each in its turn.
            num_parallel_calls: any number gives each data set a thread that reads ahead.
            deterministic: taken for tf.data's sake: the order is always the same.
            name: likewise.
        """
        label = "Dataset.interleave"
        threads = _thread_count(label, num_parallel_calls)
        cycle = (os.cpu_count() or 1) if cycle_length in (None, AUTOTUNE) else cycle_length
        return Dataset(
            combining.Interleaved(
                self.stage,
                _callable("interleave", map_func),
                checked_count(f"{label}: cycle_length", cycle),
                checked_count(f"{label}: block_length", block_length),
                is_parallel=threads > 0,
                label=label,
            )
        )

    def enumerate(self, start: int = 0) -> Dataset:
        """(number, element), counted from `start`."""
        return Dataset(picking.Enumerated(self.stage, start))

    # Which elements, in which order

    def shuffle(
        self,
        buffer_size: int | None = None,
        seed: int | None = None,
        reshuffle_each_iteration: bool = True,
        name: str | None = None,
    ) -> Dataset:
        """The elements in random order.

        Args:
            buffer_size: an element is drawn among so many; all by default, where their number is
                known.
            seed: of the order; by default one of the program's own, the same in each run.
            reshuffle_each_iteration: whether each walk, and each pass of a `repeat` after it, has
                another order.

        Raises:
            InvalidArgumentError: no `buffer_size`, and an unknown number of elements.
        """
        size = self.cardinality()
        if buffer_size is None:
            if size < 0:
                raise InvalidArgumentError(
                    "Dataset.shuffle: buffer_size is missing, and the number of elements is "
                    f"{'infinite' if size == INFINITE else 'unknown'}",
                    remedy="give one, such as 10_000",
                )
            buffer_size = max(size, 1)
        buffer = checked_count("Dataset.shuffle: buffer_size", buffer_size)
        stage = shuffling.shuffled(self.stage, buffer, _seed(seed), reshuffle_each_iteration)
        return Dataset(stage)

    def repeat(self, count: int | None = None, name: str | None = None) -> Dataset:
        """The elements `count` times over; None or -1 for ever."""
        if count is not None and count != -1:
            checked_count("Dataset.repeat: count", count, 0)
        return Dataset(picking.repeated(self.stage, None if count == -1 else count))

    def take(self, count: int, name: str | None = None) -> Dataset:
        """The first `count` elements; -1 for all."""
        if count == -1:
            return self
        checked_count("Dataset.take: count", count, 0)
        return Dataset(picking.part("Dataset.take", self.stage, 0, count))

    def skip(self, count: int, name: str | None = None) -> Dataset:
        """All but the first `count` elements; -1 leaves out all."""
        if count == -1:
            return self.take(0)
        checked_count("Dataset.skip: count", count, 0)
        return Dataset(picking.part("Dataset.skip", self.stage, count, None))

    def shard(self, num_shards: int, index: int) -> Dataset:
        """Each `num_shards`-th element, from `index` on: the share of one worker of several.

        Args:
            num_shards: the number of workers.
            index: which one, from 0 on.

        Raises:
            InvalidArgumentError: `num_shards` is not positive, or there is no such worker.
        """
        count = checked_count("Dataset.shard: num_shards", num_shards)
        if not 0 <= checked_count("Dataset.shard: index", index, 0) < count:
            raise InvalidArgumentError(
                f"Dataset.shard: index must be below num_shards={num_shards}, got {index}"
            )
        return Dataset(picking.part("Dataset.shard", self.stage, index, None, count))

    def concatenate(self, dataset: Dataset) -> Dataset:
        """The elements of this data set, then those of another."""
        return Dataset(combining.Concatenated(self.stage, _stage_of(dataset)))

    # Batches

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """So many elements at a time, along a new first axis; the last batch may be shorter.

        `num_parallel_calls`, `deterministic` and, here and elsewhere, `name` are taken for the sake
        of pipelines written for tf.data: joining elements is no work for threads.

        Raises, when walked:
            ShapeError: the shapes of two elements differ.
        """
        size = checked_count("Dataset.batch: batch_size", batch_size)
        return Dataset(Batched(self.stage, size, drop_remainder))

    def unbatch(self) -> Dataset:
        """The rows of batches as elements."""
        return Dataset(Unbatched(self.stage))

    def rebatch(self, batch_size: int, drop_remainder: bool = False) -> Dataset:
        """Batches of another size, from batches of any.

        Args:
            batch_size: of the new ones; rows keep their order.
            drop_remainder: whether a last batch with fewer rows is left out.

        Raises:
            InvalidArgumentError: the size is not positive.
        """
        size = checked_count("Dataset.rebatch: batch_size", batch_size)
        return Dataset(Rebatched(self.stage, size, drop_remainder))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """So many elements at a time, filled up at the end of each axis to one shape.

        Args:
            batch_size: elements in a batch.
            padded_shapes: the shape of each part of an element, None where the longest of the batch
                decides; None for that everywhere.
            padding_values: what is filled in: one value, or one for each part; 0 by default.
            drop_remainder: whether a shorter last batch is left out.
        """
        size = checked_count("Dataset.padded_batch: batch_size", batch_size)
        how = padding.Padding(padded_shapes, padding_values)
        return Dataset(padding.PaddedBatches(self.stage, size, how, drop_remainder))

    def bucket_by_length(
        self,
        length: Callable[..., Any],
        boundaries: Sequence[int],
        batch_sizes: Sequence[int] | int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
    ) -> Dataset:
        """Batches of elements of similar length, filled up to the longest of each.

        Args:
            length: gives the length of an element.
            boundaries: upper ends (exclusive) of all buckets but the last, increasing.
            batch_sizes: elements in a batch, for each of the len(boundaries) + 1 buckets, or one
                number for all.
            padded_shapes: as in `padded_batch`; so `padding_values` and `drop_remainder`.
        """
        who = "Dataset.bucket_by_length"
        edges = [checked_count(f"{who}: a boundary", edge) for edge in boundaries]
        if edges != sorted(set(edges)):
            raise InvalidArgumentError(f"{who}: the boundaries must increase, got {edges}")
        given = [batch_sizes] * (len(edges) + 1) if isinstance(batch_sizes, int) else batch_sizes
        sizes = [checked_count(f"{who}: a batch size", size) for size in given]
        if len(sizes) != len(edges) + 1:
            raise InvalidArgumentError(
                f"{who}: {len(edges)} boundaries make {len(edges) + 1} buckets, "
                f"got {len(sizes)} batch sizes"
            )
        how = padding.Padding(padded_shapes, padding_values)
        measure = _callable("bucket_by_length", length)
        return Dataset(padding.Bucketed(self.stage, measure, edges, sizes, how, drop_remainder))

    def window(
        self, size: int, shift: int | None = None, stride: int = 1, drop_remainder: bool = False
    ) -> Dataset:
        """Windows over the elements, each part of an element as a data set of its own.

        Args:
            size: elements in a window.
            shift: elements between the beginnings of two windows, by default `size`.
            stride: elements between two of a window.
            drop_remainder: whether windows that the end cuts short are left out.
        """
        who = "Dataset.window"
        checked_count(f"{who}: size", size)
        shift = checked_count(f"{who}: shift", size if shift is None else shift)
        checked_count(f"{who}: stride", stride)
        return Dataset(Windowed(self.stage, size, shift, stride, drop_remainder, Dataset))

    # Keeping, and working ahead

    def cache(self, filename: str | os.PathLike[str] = "") -> Dataset:
        """The elements of the first pass again in each later one.

        Args:
            filename: of a file to keep them in; without it they are kept in memory.
        """
        if not os.fspath(filename):
            return Dataset(caching.InMemory(self.stage))
        return Dataset(caching.InFile(self.stage, filename))

    def prefetch(self, buffer_size: int = AUTOTUNE, name: str | None = None) -> Dataset:
        """The elements, made by a thread ahead of need: up to `buffer_size` of them wait."""
        size = 2 if buffer_size == AUTOTUNE else buffer_size
        return Dataset(Prefetched(self.stage, checked_count("Dataset.prefetch: buffer_size", size)))

    def apply(self, transformation: Callable[[Dataset], Any]) -> Any:
        """`transformation(self)`, for chains of methods."""
        return transformation(self)

    def reduce(self, initial_state: Any, reduce_func: Callable[[Any, Any], Any]) -> Any:
        """The last of the states that `reduce_func(state, element)` gives, beginning with one.

        Args:
            initial_state: the first state: a structure of arrays, or anything else.
            reduce_func: gives the next state.

        Returns:
            the last state; `initial_state` where there are no elements.
        """
        state = initial_state
        with self.as_numpy_iterator() as elements:
            for element in elements:
                state = reduce_func(state, element)
        return as_tensors(state)

    # Walking

    def __iter__(self) -> Iterator[Any]:
        return self._walk(as_numpy=False)

    def as_numpy_iterator(self) -> DatasetIterator:
        """A walk that gives NumPy arrays instead of tensors."""
        return self._walk(as_numpy=True)

    def iterator(self) -> DatasetIterator:
        """A walk with `state()` and `restore(state)`: what a `for` loop uses."""
        return self._walk(as_numpy=False)

    def _walk(self, *, as_numpy: bool) -> DatasetIterator:
        self._walks += 1
        return DatasetIterator(self.stage, self._walks - 1, as_numpy=as_numpy)

    @property
    def walks(self) -> int:
        """How many walks have begun: the number of the next one."""
        return self._walks

    def begin_at(self, number: int) -> None:
        """Have the next walk be that of this number: the first one is 0."""
        self._walks = checked_count("Dataset.begin_at: number", number, 0)

    def cardinality(self) -> int:
        """The number of elements, INFINITE (-1) or UNKNOWN (-2)."""
        return self.stage.cardinality()

    def __len__(self) -> int:
        size = self.cardinality()
        if size < 0:
            raise TypeError(
                f"the number of elements is {'infinite' if size == INFINITE else 'unknown'}"
            )
        return size

    def __bool__(self) -> bool:
        return True  # not a matter of its length, which may be unknown

    @property
    def element_spec(self) -> Any:
        """The structure of an element, of TensorSpec; a function or generator may have to run."""
        return self.stage.spec()

    def __repr__(self) -> str:
        size = self.cardinality()
        known = {INFINITE: "infinitely many", UNKNOWN: "an unknown number of"}.get(size, str(size))
        steps = ", ".join(name.removeprefix("Dataset.") for name in self.stage.names()[::-1])
        return f"<Dataset of {known} elements: {steps}>"


def _stage_of(dataset: Any) -> Stage:
    if not isinstance(dataset, Dataset):
        raise InvalidArgumentError(f"expected a Dataset, got {type(dataset).__name__}")
    return dataset.stage


def _callable(method: str, fn: Any) -> Callable[..., Any]:
    if not callable(fn):
        raise InvalidArgumentError(f"Dataset.{method}: expected a function, got {fn!r}")
    called: Callable[..., Any] = fn
    return called


def _seed(seed: int | None) -> int:
    if seed is None:
        return make_default_seed()
    return checked_count("Dataset.shuffle: seed", seed, -(2**63)) % 2**64


def _thread_count(who: str, count: int | None) -> int:
    if count is None:
        return 0
    if count == AUTOTUNE:
        return os.cpu_count() or 1
    return checked_count(f"{who}: num_parallel_calls", count)
