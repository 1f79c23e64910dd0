"""Batches of elements of different lengths: padded_batch, bucket_by_length."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorSpec
from laminar.tree import flatten, is_nested, map_structure, pack_sequence_as

from .batching import batch_count, located
from .elements import stack_leaves, with_batch
from .epochs import INFINITE, UNKNOWN, Epoch, State
from .picking import apply
from .replay import Trail
from .stage import Cursor, Passing, Stage, call_user


class Padding:
    """How the leaves of elements are filled up to one shape.

    Args:
        shapes: for each leaf the shape to fill up to, None for the longest of the batch; None for
            that along every axis. In the structure of an element, or one for all.
        values: what is filled in: one for all, or in the structure of an element; by default 0,
            the empty text, False.
    """

    def __init__(self, shapes: Any, values: Any) -> None:
        self._shapes = shapes
        self._values = values

    def stack(self, elements: Sequence[Any], who: str) -> Any:
        """Elements as a batch.

        Raises:
            ShapeError: ranks differ, or an element is larger than the shape asked for.
        """
        first = elements[0]
        columns = list(zip(*map(flatten, elements), strict=True))
        shapes = _for_each(self._shapes, first, len(columns), _is_shape)
        values = _for_each(self._values, first, len(columns), lambda v: not is_nested(v))
        leaves = [
            _padded(column, shape, value, who)
            for column, shape, value in zip(columns, shapes, values, strict=True)
        ]
        return pack_sequence_as(first, leaves)


def _is_shape(value: Any) -> bool:
    return value is None or (
        isinstance(value, list | tuple) and all(n is None or isinstance(n, int) for n in value)
    )


def _for_each(given: Any, like: Any, count: int, is_one: Callable[[Any], bool]) -> list[Any]:
    """What is given for all leaves, or for each of them."""
    if is_one(given):
        return [given] * count
    return _gathered(given, like, is_one)


def _gathered(given: Any, like: Any, is_one: Callable[[Any], bool]) -> list[Any]:
    if not is_nested(like):
        return [given]
    keys = sorted(like) if isinstance(like, dict) else range(len(like))
    try:
        return [leaf for key in keys for leaf in _gathered(given[key], like[key], is_one)]
    except (TypeError, KeyError, IndexError) as cause:
        raise InvalidArgumentError(
            f"Dataset.padded_batch: expected one value for each part of an element, got {given!r}",
            remedy="give them in the structure of an element",
        ) from cause


def _padded(leaves: Sequence[Any], shape: Any, value: Any, who: str) -> Any:
    first = leaves[0]
    if first is None or (np.ndim(first) == 0 and not shape):
        return stack_leaves(leaves, who)
    sizes = [np.shape(leaf) for leaf in leaves]
    if len({len(size) for size in sizes}) > 1:
        raise ShapeError(f"{who}: the elements of a batch must have one rank, got {sizes}")
    wanted = [None] * len(sizes[0]) if shape is None else list(shape)
    if len(wanted) != len(sizes[0]):
        raise ShapeError(
            f"{who}: the shape {tuple(wanted)} has another rank than the element of {sizes[0]}"
        )
    longest = np.max(np.array(sizes), axis=0)
    full = [int(n) if w is None else w for n, w in zip(longest, wanted, strict=True)]
    if any(n > w for n, w in zip(longest, full, strict=True)):
        raise ShapeError(
            f"{who}: an element of shape up to {tuple(int(n) for n in longest)} does not fit "
            f"into {tuple(full)}",
            remedy="give None for sizes that the longest element decides",
        )
    dtype = np.asarray(first).dtype
    if value is None:
        value = b"" if dtype.hasobject else 0
    elif isinstance(value, str):
        value = value.encode()
    out = np.full((len(leaves), *full), value, dtype)
    for row, leaf in zip(out, leaves, strict=True):
        row[tuple(slice(n) for n in np.shape(leaf))] = leaf
    return out


def _open_spec(spec: Any) -> Any:
    """The specs of elements filled up to sizes that are not known before."""
    return map_structure(
        lambda s: TensorSpec([None] * len(s.shape), s.dtype) if isinstance(s, TensorSpec) else s,
        spec,
    )


class PaddedBatches(Stage):
    """So many elements at a time, filled up to one shape."""

    def __init__(
        self, source: Stage, batch_size: int, padding: Padding, drop_remainder: bool
    ) -> None:
        super().__init__("Dataset.padded_batch", source)
        self.batch_size = batch_size
        self.padding = padding
        self.drop_remainder = drop_remainder

    def cardinality(self) -> int:
        return batch_count(self.sources[0].cardinality(), self.batch_size, self.drop_remainder)

    def spec(self) -> Any:
        size = self.batch_size if self.drop_remainder else None
        return with_batch(_open_spec(self.sources[0].spec()), size)

    def open(self, walk: Epoch) -> Cursor:
        return _PaddedBatching(self.sources[0].open(walk), self)


class _PaddedBatching(Passing):
    def __init__(self, source: Cursor, stage: PaddedBatches) -> None:
        super().__init__(source)
        self._stage = stage

    def __next__(self) -> Any:
        stage = self._stage
        elements = list(islice(self.source, stage.batch_size))
        if not elements or (stage.drop_remainder and len(elements) < stage.batch_size):
            raise StopIteration
        return located(stage, stage.padding.stack, elements, stage.label)


class Bucketed(Stage):
    """Batches of elements of similar length.

    Bucket i holds the lengths in [boundaries[i - 1], boundaries[i]), the last one all others.
    """

    def __init__(
        self,
        source: Stage,
        length: Callable[..., Any],
        boundaries: Sequence[int],
        batch_sizes: Sequence[int],
        padding: Padding,
        drop_remainder: bool,
    ) -> None:
        super().__init__("Dataset.bucket_by_length", source)
        self._length = length
        self._boundaries = list(boundaries)
        self.batch_sizes = list(batch_sizes)
        self.padding = padding
        self.drop_remainder = drop_remainder

    def bucket(self, element: Any) -> int:
        """The bucket that an element belongs to."""
        return bisect_right(self._boundaries, int(apply(self._length, element)))

    def cardinality(self) -> int:
        return INFINITE if self.sources[0].cardinality() == INFINITE else UNKNOWN

    def spec(self) -> Any:
        return with_batch(_open_spec(self.sources[0].spec()), None)

    def open(self, walk: Epoch) -> Cursor:
        return _Bucketing(self.sources[0].open(walk), self)


class _Bucketing(Cursor):
    """`_buckets` are the elements waiting, by number, for each bucket."""

    def __init__(self, source: Cursor, stage: Bucketed) -> None:
        self._stage = stage
        self._buckets: list[dict[int, Any]] = [{} for _ in stage.batch_sizes]
        self._trail = Trail(source, lambda: [n for bucket in self._buckets for n in bucket])
        self._has_ended = False

    def __next__(self) -> Any:
        stage = self._stage
        while not self._has_ended:
            try:
                number, element = self._trail.pull()
            except StopIteration:
                self._has_ended = True
                break
            place = call_user(stage, stage.bucket, element)
            self._buckets[place][number] = element
            if len(self._buckets[place]) >= stage.batch_sizes[place]:
                return self._emptied(place)
        for place, bucket in enumerate(self._buckets):
            if bucket and not stage.drop_remainder:
                return self._emptied(place)
        raise StopIteration

    def _emptied(self, place: int) -> Any:
        elements = list(self._buckets[place].values())
        self._buckets[place].clear()
        return located(self._stage, self._stage.padding.stack, elements, self._stage.label)

    def state(self) -> State:
        return {
            "trail": self._trail.state(),
            "buckets": [list(bucket) for bucket in self._buckets],
            "has_ended": self._has_ended,
        }

    def restore(self, state: State) -> None:
        numbers = state["buckets"]
        self._buckets = [{} for _ in numbers]
        found = self._trail.restore(state["trail"], {n for bucket in numbers for n in bucket})
        for bucket, wanted in zip(self._buckets, numbers, strict=True):
            bucket.update({n: found[n] for n in wanted})
        self._has_ended = bool(state["has_ended"])

    def close(self) -> None:
        self._trail.source.close()
