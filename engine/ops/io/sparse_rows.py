"""Sparse examples as strings: the form in which a queue holds those of unequal numbers of values.

A string is, in little-endian int64: the number of values, the number of axes, the dense shape, the
indices; then the values, those of strings as their lengths (int64) and bytes.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import DataLossError, ShapeError
from ...graph import ANY, Array, DType, TensorSpec, as_dtype, int64, string
from ..core.registry import define, no_gradient
from ..text.string import collect

_INT64 = np.dtype("<i8")


def _check(who: str, indices: TensorSpec, values: TensorSpec, dense_shape: TensorSpec) -> None:
    if indices.dtype != int64 or dense_shape.dtype != int64:
        raise ShapeError(f"{who}: indices and dense_shape are int64, got {indices}, {dense_shape}")
    ranks = indices.shape.rank, values.shape.rank, dense_shape.shape.rank
    if any(found not in (None, wanted) for found, wanted in zip(ranks, (2, 1, 1), strict=True)):
        raise ShapeError(
            f"{who}: expected indices (n, axes), values (n) and dense_shape (axes), "
            f"got {indices}, {values}, {dense_shape}"
        )


def _packed(indices: Array, values: Array, dense_shape: Array) -> bytes:
    head = np.asarray([len(values), len(dense_shape), *dense_shape], _INT64).tobytes()
    places = np.ascontiguousarray(indices, _INT64).tobytes()
    if values.dtype != object:
        return head + places + np.ascontiguousarray(values).tobytes()
    items = values.tolist()
    lengths = np.asarray([len(item) for item in items], _INT64).tobytes()
    return head + places + lengths + b"".join(items)


@define("SerializeSparse", dtypes={"values": ANY})
def serialize_sparse(
    indices: TensorSpec, values: TensorSpec, dense_shape: TensorSpec, *, many: bool
) -> TensorSpec:
    """A sparse array as a string; with `many` a vector of its rows along the first axis."""
    _check("SerializeSparse", indices, values, dense_shape)
    return TensorSpec([None] if many else (), string)


@serialize_sparse.kernel("cpu")
def _serialize_kernel(indices: Array, values: Array, dense_shape: Array, *, many: bool) -> Array:
    if len(indices) != len(values) or indices.shape[1:] != dense_shape.shape:
        raise ShapeError(
            f"SerializeSparse: indices {list(indices.shape)}, values {list(values.shape)} and a "
            f"dense shape of {len(dense_shape)} axes do not fit"
        )
    if not many:
        return np.array(_packed(indices, values, dense_shape), object)
    count = int(dense_shape[0])
    rows = [indices[:, 0] == i for i in range(count)]
    texts = [_packed(indices[own, 1:], values[own], dense_shape[1:]) for own in rows]
    return collect(texts, (count,))


@define("DeserializeManySparse", dtypes={"texts": frozenset({string})})
def deserialize_many_sparse(
    texts: TensorSpec, *, dtype: DType, rank: int | None
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Sparse arrays as one, along a new first axis: the indices, values and dense shape.

    The dense shape is the number of them, then the greatest of each of their dimensions.
    """
    if texts.shape.rank not in (None, 1):
        raise ShapeError(f"DeserializeManySparse: expected a vector, got {texts}")
    axes = None if rank is None else rank + 1
    return (
        TensorSpec([None, axes], int64),
        TensorSpec([None], as_dtype(dtype)),
        TensorSpec([axes], int64),
    )


def _unpacked(text: bytes, dtype: DType) -> tuple[Array, Array, Array]:
    """Indices, values and dense shape of one array; DataLossError when it is damaged."""
    try:
        count, axes = np.frombuffer(text, _INT64, 2).tolist()
        if count < 0 or axes < 0:
            raise ValueError("a number is negative")
        shape = np.frombuffer(text, _INT64, axes, 16)
        start = 8 * (2 + axes)
        indices = np.frombuffer(text, _INT64, count * axes, start).reshape(count, axes)
        start += 8 * count * axes
        if dtype != string:
            size = dtype.numpy.itemsize
            if len(text) != start + count * size:
                raise ValueError("its length is another")
            return indices, np.frombuffer(text, dtype.numpy, count, start), shape
        lengths = np.frombuffer(text, _INT64, count, start).tolist()
        start += 8 * count
        if min(lengths, default=0) < 0 or len(text) != start + sum(lengths):
            raise ValueError("its length is another")
        ends = np.cumsum([start, *lengths]).tolist()
        items = [text[a:b] for a, b in zip(ends, ends[1:], strict=False)]
        return indices, collect(items, (count,)), shape
    except ValueError as cause:
        raise DataLossError(f"DeserializeManySparse: no sparse array: {cause}") from None


@deserialize_many_sparse.kernel("cpu")
def _deserialize_kernel(texts: Array, *, dtype: DType, rank: int | None) -> Any:
    found = [_unpacked(text, dtype) for text in texts.tolist()]
    axes = {len(shape) for _, _, shape in found} or {rank or 0}
    if len(axes) > 1 or (rank is not None and axes != {rank}):
        wanted = "equally many" if rank is None else rank
        raise ShapeError(
            f"DeserializeManySparse: expected arrays of {wanted} axes, got {sorted(axes)}"
        )
    width = axes.pop()
    indices = np.zeros((sum(len(i) for i, _, _ in found), width + 1), np.int64)
    start = 0
    for row, (own, _, _) in enumerate(found):
        indices[start : start + len(own), 0] = row
        indices[start : start + len(own), 1:] = own
        start += len(own)
    values = np.empty(start, dtype.numpy)
    if found:
        values[...] = np.concatenate([v for _, v, _ in found])
    greatest = np.max([s for _, _, s in found], axis=0) if found else np.zeros(width, np.int64)
    return indices, values, np.asarray([len(found), *greatest], np.int64)


for _op in (serialize_sparse, deserialize_many_sparse):
    _op.grad(no_gradient)
