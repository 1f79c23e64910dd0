"""Rows of a table by their numbers, where the table may be kept as several variables."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..errors import DTypeError, InvalidArgumentError
from ..graph import Tensor
from ..ops.array.creation import arange
from ..ops.array.gather import gather
from ..ops.array.partition import dynamic_partition, dynamic_stitch
from ..ops.array.search import searchsorted
from ..ops.array.shape import dim_of, reshape, size_of
from ..ops.core.convert import convert_to_tensor
from ..ops.core.registry import lookup
from ..ops.math.cast import cast
from .partitioned import PartitionedVariable


def embedding_lookup(params: Any, ids: Any, name: str | None = None) -> Tensor:
    """y[i..., q...] = params[ids[i...], q...].

    Of a PartitionedVariable each part is asked for the rows that it has alone: where parts are on
    several servers, what is looked up travels, not the table. Its gradient is one of rows, too.

    Args:
        params: (n, q...), a variable, a tensor, or a PartitionedVariable that is divided along its
            first axis.
        ids: whole numbers of any shape; those below 0 count from the end.
        name: of the operations.

    Raises:
        InvalidArgumentError: `params` is divided along another axis, or (at run time) an id is out
            of range.
        DTypeError: the ids are no whole numbers.

    Examples:
        >>> engine.embedding_lookup(
        ...     engine.constant([[1.0, 2.0], [3.0, 4.0]]), engine.constant([1, 0, 1])
        ... )
        Tensor([[3., 4.],
                [1., 2.],
                [3., 4.]], shape=(3, 2), dtype=float32)
    """
    places = convert_to_tensor(ids)
    if not places.dtype.is_integer:
        raise DTypeError(f"embedding_lookup: the ids are whole numbers, got {places.spec}")
    if not isinstance(params, PartitionedVariable) or len(params) == 1:
        table = next(iter(params)) if isinstance(params, PartitionedVariable) else params
        return gather(convert_to_tensor(table), places)
    if params.axis != 0:
        raise InvalidArgumentError(
            f"embedding_lookup: {params!r} is divided along axis {params.axis}, rows cannot be "
            f"asked of one part",
            remedy="divide it along axis 0",
        )
    flat = reshape(cast(places, "int64"), (-1,))
    rows = _long(params.shape[0])
    flat = _where_negative(flat, flat + rows)
    flat = _where_negative(flat, rows)  # one that the last part refuses
    starts = np.cumsum([0, *(part.shape[0] or 0 for part in params)])[:-1]
    owner = searchsorted(convert_to_tensor(starts[1:]), flat, "right")
    of_part = dynamic_partition(flat, owner, len(params))
    order = dynamic_partition(arange(size_of(flat)), owner, len(params))
    found = [
        gather(part.value, own - _long(start))
        for part, own, start in zip(params, of_part, starts, strict=True)
    ]
    sizes = [dim_of(places, axis=i) if n is None else n for i, n in enumerate(places.shape)]
    return reshape(dynamic_stitch(order, found, name), [*sizes, *params.shape[1:]])


def _where_negative(x: Tensor, other: Tensor) -> Tensor:
    found: Tensor = lookup("Where")(lookup("Less")(x, _long(0)), other, x)
    return found


def _long(number: Any) -> Tensor:
    return convert_to_tensor(np.int64(number))
