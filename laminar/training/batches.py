"""Batches: x, (x, y) or (x, y, sample_weight), each a structure of arrays with the batch first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from laminar import config
from laminar.datasets.unpack import pack_x_y_sample_weight as pack_x_y_sample_weight
from laminar.datasets.unpack import unpack_x_y_sample_weight as unpack_x_y_sample_weight
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor, Tensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.tree import map_structure

from .arrays import as_arrays, combined_weights, count_examples, sizes_of

Batch = Any


class BatchReader:
    """Makes batches of what data sets, generators and loaders yield.

    Args:
        who: what the data was given to, for errors.
        class_weight: a weight for each class, applied to the examples of that class.

    Attributes:
        is_paired: whether all parts of a batch have as many examples.
    """

    is_paired = True

    def __init__(self, who: str, class_weight: Mapping[int, float] | None = None) -> None:
        self._who = who
        self._class_weight = class_weight
        self._floating = np.dtype(config.floatx())

    def arrays(self, raw: Any) -> Any:
        """A batch of arrays, checked and converted.

        Raises:
            InvalidArgumentError: it is no batch, is empty, or its parts have different lengths.
        """
        if self._class_weight is None and self._is_ready(raw):
            return raw
        parts = unpack_x_y_sample_weight(raw)
        named = dict(zip(("x", "y", "sample_weight"), parts, strict=True))
        arrays = {
            k: None if v is None else as_arrays(v, f"{self._who}: {k} of a batch")
            for k, v in named.items()
        }
        if self._class_weight is not None:
            arrays["sample_weight"] = combined_weights(
                arrays["y"], arrays["sample_weight"], self._class_weight, self._who
            )
        if not (count_examples(arrays) if self.is_paired else min(sizes_of(arrays).values())):
            raise InvalidArgumentError(f"{self._who}: a batch is empty (0 examples)")
        found = list(arrays.values())
        while found[-1] is None:
            found.pop()
        return tuple(found) if isinstance(raw, list | tuple) else found[0]

    def _is_ready(self, raw: Any) -> bool:
        """Whether it is a tuple of arrays in which nothing has to be changed."""
        if type(raw) is not tuple or not 1 <= len(raw) <= 3:
            return False
        if not all(is_ready(part, self._floating) for part in raw):
            return False
        return len({len(part) for part in raw}) == 1


def is_ready(array: Any, floating: np.dtype[Any]) -> bool:
    """Whether it is an array of examples as steps take it: of integers or the floating type."""
    if type(array) is not np.ndarray or not array.ndim or not len(array):
        return False
    dtype = array.dtype
    return dtype.kind in "biu" or dtype == floating


def as_tensors(batch: Any) -> Batch:
    """A batch of arrays as one of tensors."""
    if type(batch) is tuple and all(type(part) is np.ndarray for part in batch):
        return tuple([as_tensor(part) for part in batch])
    return map_structure(lambda a: None if a is None else as_tensor(a), batch)


def as_tensor(array: Any) -> Tensor:
    """An array as a tensor, without a copy; one of texts is encoded."""
    return EagerTensor(array) if array.dtype.kind != "O" else convert_to_tensor(array)


def sizes_of_batches(num_examples: int, batch_size: int) -> tuple[int, ...]:
    """The sizes of the batches that so many examples are cut into, that of the first one first."""
    whole, rest = divmod(num_examples, batch_size)
    return (*[batch_size] * bool(whole), *[rest] * bool(rest))


def size_of(batch: Batch) -> int:
    """The number of examples of a batch of tensors."""
    while isinstance(batch, tuple | list | dict):
        parts = batch.values() if isinstance(batch, dict) else batch
        batch = next(part for part in parts if part is not None)
    return int(batch.shape[0])
