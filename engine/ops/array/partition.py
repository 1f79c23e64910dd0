"""Rows sorted into several tensors by a number each has, and put together again by their places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import ANY, INTEGER, Array, OpView, Tensor, TensorShape, TensorSpec
from ..core.basic import zeros_like
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from ..math.compare import equal, where
from .axes import expand_dims
from .creation import arange
from .gather import gather
from .join import one_or_all
from .shape import reshape_like, size_of


@define("DynamicPartition", dtypes={"data": ANY, "partitions": INTEGER}, same_dtype=False)
def _partition(
    data: TensorSpec, partitions: TensorSpec, *, num_partitions: int
) -> tuple[TensorSpec, ...]:
    """Output k holds, in order, the slices data[i] of all index tuples i with partitions[i] = k."""
    if num_partitions < 1:
        raise InvalidArgumentError(
            f"DynamicPartition: expected at least one partition, got {num_partitions}"
        )
    given, shape = partitions.shape, data.shape
    if given.rank is None or shape.rank is None:
        return tuple(TensorSpec(None, data.dtype) for _ in range(num_partitions))
    if not TensorShape(shape[: len(given)]).is_compatible_with(given):
        raise ShapeError(
            f"DynamicPartition: the shape of data {data} must begin with that of "
            f"partitions {partitions}"
        )
    return tuple(
        TensorSpec([None, *shape[len(given) :]], data.dtype) for _ in range(num_partitions)
    )


@_partition.kernel("cpu")
def _partition_kernel(data: Array, partitions: Array, *, num_partitions: int) -> Any:
    if data.shape[: partitions.ndim] != partitions.shape:
        raise ShapeError(
            f"DynamicPartition: the shape {list(data.shape)} of data must begin with that of "
            f"partitions, {list(partitions.shape)}"
        )
    bad = (partitions < 0) | (partitions >= num_partitions)
    if bad.any():
        place = np.unravel_index(int(bad.argmax()), bad.shape)
        raise InvalidArgumentError(
            f"DynamicPartition: partitions{[int(i) for i in place]} = {int(partitions[place])} "
            f"is not in [0, {num_partitions})"
        )
    return one_or_all([data[partitions == k] for k in range(num_partitions)])


@_partition.grad
def _partition_grad(op: OpView, *dys: Tensor | None) -> Grads:
    data, partitions = op.inputs
    count = size_of(partitions)
    places = _partition.many(
        reshape_like(arange(count, dtype="int64"), partitions), partitions, **op.attrs
    )
    full = [zeros_like(y) if dy is None else dy for y, dy in zip(op.outputs, dys, strict=True)]
    rows = dynamic_stitch(places, full)
    return reshape_like(rows, data), None


def dynamic_partition(
    data: Any, partitions: Any, num_partitions: int, name: str | None = None
) -> list[Tensor]:
    """The slices of `data` sorted into `num_partitions` tensors.

    Args:
        data: (p..., d...).
        partitions: (p...), integers: to which tensor each slice goes.
        num_partitions: how many tensors.
        name: of the operation.

    Returns:
        tensors (n_k, d...), the slices in their order.

    Raises:
        ShapeError: the shape of `data` does not begin with that of `partitions`.
        InvalidArgumentError: at run time, a number is not in [0, num_partitions).

    Examples:
        >>> engine.dynamic_partition(engine.constant([10, 20, 30]), engine.constant([0, 1, 0]), 2)
        [Tensor([10, 30], shape=(2,), dtype=int32), Tensor([20], shape=(1,), dtype=int32)]
    """
    data, partitions = convert_to_tensor(data), convert_to_tensor(partitions)
    return list(_partition.many(data, partitions, name=name, num_partitions=int(num_partitions)))


@define("DynamicStitch", dtypes={}, same_dtype=False)
def _stitch(*tensors: TensorSpec, count: int) -> TensorSpec:
    """y[indices[m][i]] = data[m][i] for all m and i, in order: the last of equal indices counts.

    The inputs are `count` tensors of indices, then as many of data. Rows of y to which no index
    points are zeros (empty strings).
    """
    indices, data = tensors[:count], tensors[count:]
    if not count or len(data) != count:
        raise InvalidArgumentError(
            f"DynamicStitch: expected as many tensors of data as of indices, at least one, "
            f"got {len(data)} and {count}"
        )
    row = TensorShape(None)
    for index, values in zip(indices, data, strict=True):
        if index.dtype not in INTEGER or values.dtype != data[0].dtype:
            raise InvalidArgumentError(
                f"DynamicStitch: expected integers and data of one type, got {index}, {values}"
            )
        if index.shape.rank is None or values.shape.rank is None:
            continue
        rest = TensorShape(values.shape[len(index.shape) :])
        if not TensorShape(values.shape[: len(index.shape)]).is_compatible_with(
            index.shape
        ) or not row.is_compatible_with(rest):
            raise ShapeError(
                f"DynamicStitch: the shape of the data {values} must be that of its indices "
                f"{index}, then that of a row, {row}"
            )
        row = row.merge_with(rest)
    return TensorSpec(None if row.rank is None else [None, *row], data[0].dtype)


@_stitch.kernel("cpu")
def _stitch_kernel(*arrays: Array, count: int) -> Array:
    indices, data = arrays[:count], arrays[count:]
    row = data[0].shape[indices[0].ndim :]
    for index, values in zip(indices, data, strict=True):
        if values.shape != (*index.shape, *row):
            raise ShapeError(
                f"DynamicStitch: data of shape {list(values.shape)} does not fit indices of shape "
                f"{list(index.shape)} and rows of shape {list(row)}"
            )
        if index.size and int(index.min()) < 0:
            raise InvalidArgumentError(f"DynamicStitch: the index {int(index.min())} is negative")
    size = max((int(i.max()) + 1 for i in indices if i.size), default=0)
    y = np.full((size, *row), b"" if data[0].dtype == object else 0, data[0].dtype)
    for index, values in zip(indices, data, strict=True):
        y[index] = values
    return y


@_stitch.grad
def _stitch_grad(op: OpView, dy: Tensor) -> Grads:
    count = op.attrs["count"]
    indices, data = op.inputs[:count], op.inputs[count:]
    # What a later row has replaced gets no gradient: each row finds which one it shows.
    own, start = [], convert_to_tensor(0, "int64")
    for index in indices:
        size = size_of(index)
        own.append(reshape_like(arange(start, start + size, dtype="int64"), index))
        start = start + size
    shown = dynamic_stitch(indices, own)
    dxs = []
    for index, number, x in zip(indices, own, data, strict=True):
        dx = gather(dy, index)
        kept = equal(gather(shown, index), number)
        mask = expand_dims(kept, list(range(index.ndim, x.ndim)))
        dxs.append(where(mask, dx, zeros_like(dx)))
    return [*(None for _ in indices), *dxs]


def dynamic_stitch(indices: Sequence[Any], data: Sequence[Any], name: str | None = None) -> Tensor:
    """One tensor of rows that come with their places: the inverse of `dynamic_partition`.

    Args:
        indices: tensors of integers.
        data: as many tensors, data[m] of shape (*indices[m].shape, row...).
        name: of the operation.

    Returns:
        (max of all indices + 1, row...): `y[indices[m][i]] = data[m][i]`. Of equal indices the last
        counts; a row to which none points is zeros.

    Raises:
        ShapeError: data and indices do not fit.
        InvalidArgumentError: there are no tensors; at run time, an index is negative.

    Examples:
        >>> engine.dynamic_stitch(
        ...     [engine.constant([0, 2]), engine.constant([1])],
        ...     [engine.constant([10, 30]), engine.constant([20])],
        ... )
        Tensor([10, 20, 30], shape=(3,), dtype=int32)
    """
    given = [convert_to_tensor(i) for i in indices]
    values = [convert_to_tensor(d) for d in data]
    return _stitch(*given, *values, name=name, count=len(given))
