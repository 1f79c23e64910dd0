"""ArrayData: batches of arrays in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from laminar.datasets.buffers import Buffers
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.random import make_default_seed
from laminar.tree import map_structure

from ..typing import DataLike, TensorStructure
from .arrays import as_arrays, combined_weights, count_examples
from .batches import Batch, as_tensor, pack_x_y_sample_weight, sizes_of_batches

# Batches of fewer bytes are made of fresh memory, which costs nothing then.
_LARGE_BYTES: Final = 1 << 16


class ArrayData:
    """Batches of arrays in memory.

    Args:
        x: structure of arrays, or None.
        y: targets; `sample_weight` alike.
        batch_size: examples in a batch; the last one may be shorter. By default the share of one of
            `steps`, or else 32.
        steps: how many batches are taken of the data.
        shuffle: whether each pass goes in another random order.
        class_weight: a weight for each class, applied to the examples of that class.

    Attributes:
        passes: how many have begun; with `seed` it says in which order the next one goes.
    """

    ends_for_good = False

    def __init__(
        self,
        x: DataLike,
        y: TensorStructure | None = None,
        sample_weight: TensorStructure | None = None,
        *,
        batch_size: int | None = None,
        steps: int | None = None,
        shuffle: bool = False,
        class_weight: Mapping[int, float] | None = None,
        who: str = "fit",
    ) -> None:
        self.x = as_arrays(x, f"{who}: x")
        self.y = None if y is None else as_arrays(y, f"{who}: y")
        weight = (
            None if sample_weight is None else as_arrays(sample_weight, f"{who}: sample_weight")
        )
        self.size = count_examples({"x": self.x, "y": self.y, "sample_weight": weight})
        if not self.size:
            raise InvalidArgumentError(f"{who}: the data is empty (0 examples)")
        self._given_weight = weight
        if class_weight is not None:
            weight = combined_weights(self.y, weight, class_weight, who)
        self.sample_weight = weight
        self.batch_size_given = batch_size
        if batch_size is None:
            self.batch_size = -(-self.size // steps) if steps else 32
        else:
            self.batch_size = checked_batch_size(batch_size, who)
        self.shuffle = shuffle
        self.passes = 0
        self.seed = make_default_seed() if shuffle else 0

    @property
    def num_batches(self) -> int | None:
        """Batches in one pass."""
        return -(-self.size // self.batch_size)

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """The sizes that batches have."""
        return sizes_of_batches(self.size, self.batch_size)

    @property
    def whole(self) -> Batch:
        """All arrays, as one batch."""
        if self.y is None and self.sample_weight is not None:
            return self.x, None, self.sample_weight
        return pack_x_y_sample_weight(self.x, self.y, self.sample_weight)

    def split(
        self,
        fraction: float,
        steps: int | None = None,
        kept_batch_size: int | None = None,
        kept_steps: int | None = None,
    ) -> tuple[ArrayData, ArrayData]:
        """The data before the last `fraction`, and that fraction, in the order given.

        The first part alone has the weights of classes, and is shuffled: it is for training.

        Args:
            fraction: between 0 and 1.
            steps: of the first part, see the class.
            kept_batch_size: of the last part, by default that which was given for all.
            kept_steps: of the last part.
        """
        cut = int(self.size * (1 - fraction))
        if cut == 0 or cut == self.size:
            raise InvalidArgumentError(
                f"fit: validation_split={fraction} of {self.size} examples leaves "
                f"{cut} for training and {self.size - cut} for validation",
                remedy="use more data, another fraction, or validation_data=",
            )
        first = self._part(slice(0, cut), self.sample_weight, self.batch_size_given, steps)
        first.shuffle, first.seed = self.shuffle, self.seed
        kept_size = kept_batch_size or self.batch_size_given
        return first, self._part(slice(cut, None), self._given_weight, kept_size, kept_steps)

    def _part(
        self, rows: slice, weights: Any, batch_size: int | None, steps: int | None
    ) -> ArrayData:
        x, y, weight = (
            map_structure(lambda a: None if a is None else a[rows], part)
            for part in (self.x, self.y, weights)
        )
        return ArrayData(x, y, weight, batch_size=batch_size, steps=steps)

    def __iter__(self) -> Iterator[Batch]:
        return self.batches(0)

    def batches(self, first: int, place: Any = None) -> Iterator[Batch]:
        """The batches of the next pass, from number `first`."""
        order = None
        if self.shuffle:
            key = np.random.Philox(key=[self.seed, self.passes])
            order = np.random.Generator(key).permutation(self.size)
        self.passes += 1
        return self._batches(first * self.batch_size, order)

    def _batches(self, first: int, order: Any) -> Iterator[Batch]:
        whole, size = self.whole, self.batch_size
        if not isinstance(whole, tuple) or not all(_is_numeric(part) for part in whole):
            for start in range(first, self.size, size):
                stop = start + size
                rows: Any = slice(start, stop) if order is None else order[start:stop]
                yield map_structure(lambda a, r=rows: None if a is None else as_tensor(a[r]), whole)
        elif order is None:  # the common forms have loops of their own: they run in each step
            for start in range(first, self.size, size):
                yield tuple([EagerTensor(a[start : start + size]) for a in whole])
        else:
            is_large = any(a[:size].nbytes >= _LARGE_BYTES for a in whole)
            take = Buffers().take if is_large else _take
            for start in range(first, self.size, size):
                rows = order[start : start + size]
                yield tuple([EagerTensor(take(a, rows)) for a in whole])

    def place(self) -> None:
        """Nothing: counting the batches is enough."""
        return

    def allow(self, count: int) -> None:
        """Nothing to do: no batch is made ahead."""

    def epoch_begins(self) -> None:
        """Nothing to do: a new pass takes a new order by itself."""

    def epoch_ended(self) -> None:
        """Nothing to do, as when an epoch begins."""

    def close(self) -> None:
        """Nothing to do: nothing is held."""


def _take(array: Any, rows: Any) -> Any:
    return array.take(rows, 0)


def _is_numeric(part: Any) -> bool:
    return hasattr(part, "dtype") and part.dtype.kind in "biufc"


def checked_batch_size(value: Any, who: str) -> int:
    """`value` as a batch size; InvalidArgumentError unless it is a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidArgumentError(
            f"{who}: batch_size must be a positive whole number, got {value!r}",
            remedy="leave it out for 32",
        )
    return int(value)
