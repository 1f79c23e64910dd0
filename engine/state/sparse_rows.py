"""Sparse components of examples, on their way through a queue: there, each is a string."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..ops.io.sparse_rows import deserialize_many_sparse, serialize_sparse
from ..ops.sparse.sparse_values import SparseValues, as_sparse


def pack_sparse(tensors: Any, many: bool) -> tuple[Any, Callable[[Any], Any]]:
    """An example with strings for its sparse components, and what makes a batch of it again.

    Args:
        tensors: a component, or a list or dict of them.
        many: whether they hold many examples, along the first axis.
    """
    if isinstance(tensors, SparseValues):
        text, unpack = _packed(tensors, many)
        return text, unpack
    if not isinstance(tensors, Mapping | list | tuple):
        return tensors, lambda batch: batch
    keys: Any = tensors if isinstance(tensors, Mapping) else range(len(tensors))
    sparse = {k: _packed(tensors[k], many) for k in keys if isinstance(tensors[k], SparseValues)}
    if not sparse:
        return tensors, lambda batch: batch
    if isinstance(tensors, Mapping):
        return (
            {k: sparse[k][0] if k in sparse else v for k, v in tensors.items()},
            lambda batch: {k: sparse[k][1](v) if k in sparse else v for k, v in batch.items()},
        )

    def unpack_list(batch: Any) -> Any:
        items = batch if isinstance(batch, list | tuple) else [batch]
        found = [sparse[i][1](v) if i in sparse else v for i, v in enumerate(items)]
        return found if isinstance(batch, list | tuple) else found[0]

    return [sparse[i][0] if i in sparse else v for i, v in enumerate(tensors)], unpack_list


def _packed(x: SparseValues, many: bool) -> tuple[Any, Callable[[Any], SparseValues]]:
    indices, values, shape = as_sparse("batch", x)
    axes = shape.shape[0] if shape.shape.rank == 1 else None
    rank = None if axes is None else axes - many

    def unpack(texts: Any) -> SparseValues:
        found = deserialize_many_sparse.many(texts, dtype=values.dtype, rank=rank)
        return SparseValues(*found)

    return serialize_sparse(indices, values, shape, many=many), unpack
