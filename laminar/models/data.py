"""Where batches come from: arrays in memory, or anything that yields batches.

A batch is `x`, `(x, y)` or `(x, y, sample_weight)`, each a structure of tensors, as steps get it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, OutOfRangeError
from laminar.engine.graph import EagerTensor, Tensor
from laminar.engine.ops.convert import convert_to_tensor
from laminar.engine.state import Variable
from laminar.random import make_default_seed
from laminar.tree import map_structure

from .arrays import as_arrays, combined_weights, count_examples

Batch = Any


def unpack_x_y_sample_weight(data: Any) -> tuple[Any, Any, Any]:
    """The parts of a batch, None for those it does not have.

    Raises:
        InvalidArgumentError: more than three parts.
    """
    if isinstance(data, list):
        data = tuple(data)
    if not isinstance(data, tuple):
        return data, None, None
    if not 1 <= len(data) <= 3:
        raise InvalidArgumentError(
            f"a batch is x, (x, y) or (x, y, sample_weight), got {len(data)} parts",
            remedy="put several inputs into a list or dict: ([x1, x2], y)",
        )
    x, y, sample_weight = (*data, None, None)[:3]
    return x, y, sample_weight


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """The parts of a batch as a tuple, without the trailing None."""
    if y is None:
        return (x,) if isinstance(x, list | tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


class ArrayData:
    """Batches of arrays in memory.

    Args:
        x: structure of arrays, or None.
        y: targets; `sample_weight` alike.
        batch_size: examples in a batch; the last one may be shorter.
        shuffle: whether each pass goes in another random order.
        class_weight: a weight for each class, applied to the examples of that class.
    """

    ends_for_good = False

    def __init__(
        self,
        x: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        batch_size: int | None = None,
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
        if class_weight is not None:
            weight = combined_weights(self.y, weight, class_weight, who)
        self.sample_weight = weight
        self.batch_size = 32 if batch_size is None else checked_batch_size(batch_size, who)
        self.shuffle = shuffle
        self._passes = 0
        self._seed = make_default_seed() if shuffle else 0

    @property
    def num_batches(self) -> int | None:
        """Batches in one pass."""
        return -(-self.size // self.batch_size)

    @property
    def whole(self) -> Batch:
        """All arrays, as one batch."""
        if self.y is None and self.sample_weight is not None:
            return self.x, None, self.sample_weight
        return pack_x_y_sample_weight(self.x, self.y, self.sample_weight)

    def split(self, fraction: float) -> tuple[ArrayData, ArrayData]:
        """The data before the last `fraction`, and that fraction, in the order given."""
        cut = int(self.size * (1 - fraction))
        if cut == 0 or cut == self.size:
            raise InvalidArgumentError(
                f"fit: validation_split={fraction} of {self.size} examples leaves "
                f"{cut} for training and {self.size - cut} for validation",
                remedy="use more data, another fraction, or validation_data=",
            )
        return self._part(slice(0, cut)), self._part(slice(cut, None))

    def _part(self, rows: slice) -> ArrayData:
        x, y, weight = (
            map_structure(lambda a: None if a is None else a[rows], part)
            for part in (self.x, self.y, self.sample_weight)
        )
        return ArrayData(x, y, weight, batch_size=self.batch_size, shuffle=self.shuffle)

    def __iter__(self) -> Iterator[Batch]:
        whole = self.whole
        order = None
        if self.shuffle:
            key = np.random.Philox(key=[self._seed, self._passes])
            order = np.random.Generator(key).permutation(self.size)
        self._passes += 1
        for start in range(0, self.size, self.batch_size):
            rows: Any = slice(start, start + self.batch_size)
            if order is not None:
                rows = order[rows]
            yield map_structure(lambda a, r=rows: None if a is None else _tensor(a[r]), whole)

    def epoch_ended(self) -> None:
        """Nothing to do: a new pass takes a new order by itself."""


class IterableData:
    """Batches from a generator, a data set or anything else that can be walked or indexed.

    `num_batches` is known when it has a length. An iterator (which can be walked once only) goes
    on where the epoch before ended.

    Args:
        batches: the data.
        who: what it is given to, for errors.
        class_weight: a weight for each class, applied to the examples of that class.
    """

    def __init__(
        self, batches: Any, who: str = "fit", class_weight: Mapping[int, float] | None = None
    ) -> None:
        if callable(batches) and not hasattr(batches, "__iter__"):
            raise InvalidArgumentError(
                f"{who}: x is a function, expected data",
                remedy="call it: pass the generator that it returns",
            )
        self._batches = batches
        self._who = who
        self._class_weight = class_weight
        try:
            self.num_batches: int | None = len(batches)
        except (TypeError, AttributeError):
            self.num_batches = None
        self.ends_for_good = hasattr(batches, "__next__")

    def __iter__(self) -> Iterator[Batch]:
        if hasattr(self._batches, "__iter__"):
            yield from map(self._as_batch, self._batches)
        else:  # indexed: the length is asked for again, as it may change between epochs
            for i in range(len(self._batches)):
                yield self._as_batch(self._batches[i])

    def epoch_ended(self) -> None:
        """Tell the data, if it wants to know."""
        told = getattr(self._batches, "on_epoch_end", None)
        if told is not None:
            told()

    def _as_batch(self, batch: Any) -> Batch:
        parts = unpack_x_y_sample_weight(batch)
        named = dict(zip(("x", "y", "sample_weight"), parts, strict=True))
        arrays = {
            k: None if v is None else as_arrays(v, f"{self._who}: {k} of a batch")
            for k, v in named.items()
        }
        if self._class_weight is not None:
            arrays["sample_weight"] = combined_weights(
                arrays["y"], arrays["sample_weight"], self._class_weight, self._who
            )
        if not count_examples(arrays):
            raise InvalidArgumentError(f"{self._who}: a batch is empty (0 examples)")
        tensors = [
            map_structure(lambda a: None if a is None else _tensor(a), v) for v in arrays.values()
        ]
        while tensors[-1] is None:
            tensors.pop()
        return tuple(tensors) if isinstance(batch, list | tuple) else tensors[0]


Data = ArrayData | IterableData


class Passes:
    """The batches of epoch after epoch.

    Args:
        data: what to walk over.
        steps: batches in an epoch; the next one goes on where it ended, and data that can be
            walked again begins anew when it ends. None: an epoch is a pass.
    """

    def __init__(self, data: Data, steps: int | None = None) -> None:
        self.data = data
        self.steps = steps
        self._running: Iterator[Batch] | None = None

    @property
    def num_steps(self) -> int | None:
        """Batches in an epoch, None when that is not known."""
        return self.steps or self.data.num_batches

    def epoch(self) -> Iterator[Batch]:
        """The batches of the next epoch; fewer than `steps` when the data has ended for good."""
        if self.steps is None:
            yield from self.data
        else:
            for _ in range(self.steps):
                batch = self._next()
                if batch is None:
                    break
                yield batch
        self.data.epoch_ended()

    def _next(self) -> Batch | None:
        batch = None if self._running is None else next(self._running, None)
        if batch is None and (self._running is None or not self.data.ends_for_good):
            self._running = iter(self.data)
            batch = next(self._running, None)
        return batch


def _tensor(array: Any) -> Tensor:
    return EagerTensor(array) if array.dtype != object else convert_to_tensor(array)


def checked_batch_size(value: Any, who: str) -> int:
    """`value` as a batch size; InvalidArgumentError unless it is a positive whole number."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise InvalidArgumentError(
            f"{who}: batch_size must be a positive whole number, got {value!r}",
            remedy="leave it out for 32",
        )
    return int(value)


def make_data(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    batch_size: int | None = None,
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
            shuffle=shuffle,
            class_weight=class_weight,
            who=who,
        )
    for name, value in (("y", y), ("sample_weight", sample_weight), ("batch_size", batch_size)):
        if value is not None:
            raise InvalidArgumentError(
                f"{who}: {name} cannot be given when x is a {type(x).__name__}, "
                f"which yields whole batches",
                remedy="have it yield (x, y, sample_weight)",
            )
    return IterableData(x, who, class_weight)


def _is_iterable_of_batches(x: Any) -> bool:
    if isinstance(x, np.ndarray | Tensor | Variable | list | tuple | dict | str | bytes):
        return False
    if hasattr(x, "to_numpy") or hasattr(x, "__array__") or hasattr(x, "__dlpack__"):
        return False
    return any(hasattr(x, name) for name in ("__iter__", "__getitem__", "__call__"))


def ran_out(who: str, done: int, wanted: int) -> OutOfRangeError:
    """The error for data that ends before the epoch does."""
    return OutOfRangeError(
        f"{who}: the data ended after {done} batches, {wanted} were asked for",
        remedy="let the generator go on for ever, or lower steps_per_epoch",
    )
