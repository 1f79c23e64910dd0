"""The data that a training is given: to train on, for validation, or a single batch."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import numpy as np

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.source import warn

from ..typing import DataLike, TensorStructure
from .batches import BatchReader, is_ready
from .data import ArrayData, Batch, Data, make_data, ran_out, unpack_x_y_sample_weight
from .streams import Iterated


def one_batch(
    x: DataLike,
    y: TensorStructure | None,
    sample_weight: TensorStructure | None,
    who: str,
    class_weight: Mapping[int, float] | None = None,
) -> Batch:
    """Arrays as a single batch."""
    if y is None and sample_weight is None and is_ready(x, Defaults.floating.numpy):
        return EagerTensor(x)
    data = ArrayData(x, y, sample_weight, class_weight=class_weight, who=who)
    data.batch_size = data.size
    return next(iter(data))


def make_validation_data(data: DataLike, batch_size: int | None, steps: int | None) -> Data:
    """What `validation_data` stands for."""
    who = "fit: validation_data"
    if isinstance(data, list | tuple):
        x, y, weight = unpack_x_y_sample_weight(tuple(data))
        return make_data(x, y, weight, batch_size=batch_size, steps=steps, who=who)
    return make_data(data, who=who)


def split_data(
    data: Data, fraction: float, steps: int | None, batch_size: int | None, kept_steps: int | None
) -> tuple[Data, Data]:
    """Arrays in two: what to train on, and the last `fraction` of them, for validation."""
    is_number = isinstance(fraction, float | int | np.number)
    if not isinstance(data, ArrayData) or not is_number or not 0 < fraction < 1:
        raise InvalidArgumentError(
            f"fit: validation_split must be between 0 and 1 and needs arrays, got {fraction!r}",
            remedy="use validation_data= for other data",
        )
    return data.split(fraction, steps, batch_size, kept_steps)


def first_batches(data: Data, count: int) -> Data:
    """The first batches of the data alone, the same ones in each pass."""
    if isinstance(data, ArrayData):
        data.shuffle = False
    batches = list(islice(data, count))
    data.close()
    if not batches:
        raise ran_out("fit: overfit_batches", 0, count)
    if len(batches) < count:
        warn(f"fit: overfit_batches={count}, but the data has only {len(batches)} batches")
    return Iterated(batches, BatchReader("fit"), "fit")
