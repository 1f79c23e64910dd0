"""Where batches come from: arrays in memory, or anything that yields batches.

A batch is `(x,)`, `(x, y)` or `(x, y, sample_weight)`, each a structure of tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from laminar import config
from laminar.engine.errors import DTypeError, InvalidArgumentError, OutOfRangeError, ShapeError
from laminar.engine.graph import EagerTensor, GraphTensor, Tensor
from laminar.engine.ops.convert import convert_to_tensor
from laminar.engine.state import Variable
from laminar.random import make_default_seed
from laminar.tree import flatten, flatten_with_path, map_structure

Batch = tuple[Any, ...]


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
    return (*data, None, None)[:3]  # type: ignore[return-value]  # three by construction


def pack_x_y_sample_weight(x: Any, y: Any = None, sample_weight: Any = None) -> Any:
    """The parts of a batch as a tuple, without the trailing None."""
    if y is None:
        return (x,) if isinstance(x, list | tuple) else x
    return (x, y) if sample_weight is None else (x, y, sample_weight)


def as_arrays(value: Any, what: str) -> Any:
    """A structure of arrays with the batch first; floats become the default floating type.

    Raises:
        InvalidArgumentError: a leaf is no array.
        DTypeError: an array of objects.
    """
    leaves = flatten(value)
    if isinstance(value, list | tuple) and all(isinstance(v, bool | int | float) for v in leaves):
        return _as_array(value, what)  # numbers in nested lists are one array
    return map_structure(lambda leaf: _as_array(leaf, what), value)


def _as_array(leaf: Any, what: str) -> Any:
    if leaf is None:
        return None
    if isinstance(leaf, GraphTensor) or getattr(leaf, "is_keras_tensor", False):
        raise InvalidArgumentError(
            f"{what}: expected data, got the symbolic tensor {leaf!r}",
            remedy="pass arrays; symbolic tensors are for building models",
        )
    if isinstance(leaf, str | bytes):
        raise InvalidArgumentError(
            f"{what}: expected an array, got {type(leaf).__name__} {leaf!r:.40}",
            remedy="load the file first",
        )
    if hasattr(leaf, "to_numpy"):  # pandas
        leaf = leaf.to_numpy()
    if isinstance(leaf, EagerTensor | Variable):
        array = np.asarray(leaf)
    else:
        try:
            array = convert_to_tensor(leaf, copy=False).value  # type: ignore[attr-defined]  # eager
        except DTypeError as cause:
            raise DTypeError(
                f"{what}: {cause.message}", remedy="convert the column to numbers"
            ) from cause
        except (TypeError, ValueError) as cause:
            message = getattr(cause, "message", str(cause))
            raise InvalidArgumentError(
                f"{what}: {message}", remedy="pass a NumPy array with the examples first"
            ) from cause
    if array.ndim == 0:
        raise ShapeError(
            f"{what}: expected an array with the examples along its first axis, got a scalar"
        )
    if array.dtype.kind == "f" and array.dtype != config.floatx():
        array = array.astype(config.floatx())
    return array


def count_examples(parts: Mapping[str, Any]) -> int:
    """The number of examples, which all arrays must share.

    Raises:
        InvalidArgumentError: the arrays have different lengths, or none.
    """
    sizes = {
        _label(name, path): len(leaf)
        for name, value in parts.items()
        for path, leaf in flatten_with_path(value)
        if leaf is not None
    }
    if not sizes:
        raise InvalidArgumentError("fit: no data", remedy="pass x=")
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {n}" for name, n in sizes.items())
        raise InvalidArgumentError(
            f"the arrays must have the same number of examples: {listed}",
            remedy="pair each example with its label",
        )
    return next(iter(sizes.values()))


def _label(name: str, path: tuple[Any, ...]) -> str:
    return name + "".join(f"[{key!r}]" for key in path)


class ArrayData:
    """Batches of arrays in memory.

    Args:
        x: structure of arrays, or None.
        y: targets; `sample_weight` alike.
        batch_size: examples in a batch; the last one may be shorter.
        shuffle: whether each pass goes in another random order.
        class_weight: a weight for each class, applied to the examples of that class.
    """

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
            if weight is not None:
                raise InvalidArgumentError(
                    f"{who}: give class_weight or sample_weight, not both",
                    remedy="multiply the two yourself",
                )
            weight = class_weights(self.y, class_weight, who)
        self.sample_weight = weight
        self.batch_size = 32 if batch_size is None else checked_batch_size(batch_size, who)
        self.shuffle = shuffle
        self._passes = 0
        self._seed = make_default_seed() if shuffle else 0

    @property
    def num_batches(self) -> int | None:
        """Batches in one pass."""
        return -(-self.size // self.batch_size)

    def parts(self) -> Batch:
        """The whole data as one batch."""
        if self.sample_weight is not None:
            return (self.x, self.y, self.sample_weight)
        return (self.x,) if self.y is None else (self.x, self.y)

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
        parts = self.parts()
        order = None
        if self.shuffle:
            key = np.random.Philox(key=[self._seed, self._passes])
            order = np.random.Generator(key).permutation(self.size)
        self._passes += 1
        for start in range(0, self.size, self.batch_size):
            rows: Any = slice(start, start + self.batch_size)
            if order is not None:
                rows = order[rows]
            yield map_structure(lambda a, r=rows: None if a is None else _tensor(a[r]), parts)


class IterableData:
    """Batches from a generator, a data set or any other iterable of batches.

    `num_batches` is known when the iterable has a length. An iterator (which can be walked once
    only) goes on where the epoch before ended.
    """

    batch_size: int | None = None

    def __init__(self, batches: Iterable[Any], who: str = "fit") -> None:
        if callable(batches) and not hasattr(batches, "__iter__"):
            raise InvalidArgumentError(
                f"{who}: x is a function, expected data",
                remedy="call it: pass the generator that it returns",
            )
        self._batches = batches
        self._who = who
        try:
            self.num_batches: int | None = len(batches)  # type: ignore[arg-type]  # may have none
        except (TypeError, AttributeError):
            self.num_batches = None
        self._once = iter(batches) is batches
        self._running: Iterator[Any] | None = None
        self._kept: list[Any] = []

    def first(self) -> Batch:
        """The first batch, which the next pass gives again."""
        if not self._kept:
            self._kept = [next(self._iterator())]
        return self._as_batch(self._kept[0])

    def _iterator(self) -> Iterator[Any]:
        if self._running is None or not self._once:
            self._running = iter(self._batches)
        return self._running

    def __iter__(self) -> Iterator[Batch]:
        if self._kept:
            running = self._running
            assert running is not None
            kept, self._kept = self._kept, []
            yield self._as_batch(kept[0])
        else:
            running = self._iterator()
        for batch in running:
            yield self._as_batch(batch)

    def _as_batch(self, batch: Any) -> Batch:
        parts = unpack_x_y_sample_weight(batch)
        named = dict(zip(("x", "y", "sample_weight"), parts, strict=True))
        arrays = {
            k: None if v is None else as_arrays(v, f"{self._who}: {k} of a batch")
            for k, v in named.items()
        }
        if not count_examples(arrays):
            raise InvalidArgumentError(f"{self._who}: a batch is empty (0 examples)")
        tensors = [
            map_structure(lambda a: None if a is None else _tensor(a), v) for v in arrays.values()
        ]
        while tensors[-1] is None:
            tensors.pop()
        return tuple(tensors)


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


def class_weights(y: Any, weights: Mapping[int, float], who: str = "fit") -> Any:
    """The weight of each example by its class; labels may be numbers or one-hot rows.

    Raises:
        InvalidArgumentError: several targets, or a class without a weight.
    """
    leaves = [] if y is None else flatten(y)
    if len(leaves) != 1:
        raise InvalidArgumentError(
            f"{who}: class_weight needs one target, got {len(leaves)}",
            remedy="use sample_weight for several outputs",
        )
    labels = np.asarray(leaves[0])
    if labels.ndim > 1 and labels.shape[-1] > 1:
        labels = labels.argmax(-1)
    labels = labels.reshape(len(labels), -1)[:, 0].astype(np.int64)
    table = np.ones(max(int(labels.max(initial=0)), *weights) + 1, config.floatx())
    for label, weight in weights.items():
        table[int(label)] = weight
    return table[labels]


def nan_report(batch: Any) -> str | None:
    """Where a batch holds NaN, as a sentence; None when it does not."""
    for name, part in zip(("x", "y", "sample_weight"), batch, strict=False):
        for path, leaf in flatten_with_path(part):
            array = None if leaf is None else np.asarray(leaf)
            if array is not None and array.dtype.kind == "f":
                bad = np.argwhere(np.isnan(array))
                if len(bad):
                    return (
                        f"{_label(name, path)} contains NaN: {len(bad)} of {array.size} values, "
                        f"the first at {tuple(int(i) for i in bad[0])} of the batch"
                    )
    return None


def make_data(
    x: Any,
    y: Any = None,
    sample_weight: Any = None,
    *,
    batch_size: int | None = None,
    shuffle: bool = False,
    class_weight: Mapping[int, float] | None = None,
    who: str = "fit",
) -> ArrayData | IterableData:
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
    if class_weight is not None:
        return IterableData(_Weighted(x, class_weight), who)
    return IterableData(x, who)


class _Weighted:
    """An iterable of batches with class weights put in."""

    def __init__(self, batches: Iterable[Any], weights: Mapping[int, float]) -> None:
        self._batches = batches
        self._weights = weights

    def __iter__(self) -> Iterator[Any]:
        for batch in self._batches:
            x, y, weight = unpack_x_y_sample_weight(batch)
            if weight is not None:
                raise InvalidArgumentError(
                    "fit: class_weight cannot be combined with batches that have sample_weight"
                )
            yield x, y, class_weights(y, self._weights)


def _is_iterable_of_batches(x: Any) -> bool:
    if isinstance(x, np.ndarray | Tensor | Variable | list | tuple | dict | str | bytes):
        return False
    if hasattr(x, "to_numpy") or hasattr(x, "__array__") or hasattr(x, "__dlpack__"):
        return False
    return hasattr(x, "__iter__") or callable(x)


def ran_out(who: str, done: int, wanted: int) -> OutOfRangeError:
    """The error for data that ends before the epoch does."""
    return OutOfRangeError(
        f"{who}: the data ended after {done} batches, {wanted} were asked for",
        remedy="let the generator go on for ever, or lower steps_per_epoch",
    )
