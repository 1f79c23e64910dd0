"""Sets of values along the last axis of sparse arrays: what two have in common, and so on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, Tensor, TensorSpec, int32, int64, string
from ..array.join import stack
from ..array.search import nonzero
from ..array.shape import reshape, shape_of
from ..core.basic import ones_like
from ..core.convert import convert_to_tensor
from ..core.registry import define, no_gradient
from ..math.cast import cast
from ..math.compare import equal
from ..text.string import collect
from .sparse_values import SparseValues, as_sparse, check_sparse

_KINDS = INTEGER | {string}
_OPERATIONS: dict[str, Callable[[set[Any], set[Any]], set[Any]]] = {
    "intersection": set.intersection,
    "union": set.union,
    "difference": set.difference,
}
_DTYPES = {
    "a_indices": INTEGER,
    "a_values": _KINDS,
    "a_shape": INTEGER,
    "b_indices": INTEGER,
    "b_values": _KINDS,
    "b_shape": INTEGER,
}


@define("SparseSets", dtypes=_DTYPES, same_dtype=False)
def sets_op(
    a_indices: TensorSpec,
    a_values: TensorSpec,
    a_shape: TensorSpec,
    b_indices: TensorSpec,
    b_values: TensorSpec,
    b_shape: TensorSpec,
    *,
    operation: str,
) -> tuple[TensorSpec, TensorSpec, TensorSpec]:
    """Indices, values and shape of the sets that `operation` makes of those along the last axis."""
    rank = check_sparse("SparseSets", a_indices, a_shape)
    other = check_sparse("SparseSets", b_indices, b_shape)
    if None not in (rank, other) and rank != other:
        raise ShapeError(f"sets: one argument has {rank} axes, and the other {other}")
    if a_values.dtype != b_values.dtype:
        raise DTypeError(f"sets: one holds {a_values.dtype}, the other {b_values.dtype}")
    if operation not in _OPERATIONS:
        raise InvalidArgumentError(f"sets: expected one of {sorted(_OPERATIONS)}, got {operation}")
    return (
        TensorSpec([None, rank], int64),
        TensorSpec([None], a_values.dtype),
        TensorSpec([rank], int64),
    )


def _sets(indices: Array, values: Array) -> dict[tuple[int, ...], set[Any]]:
    found: dict[tuple[int, ...], set[Any]] = {}
    for place, value in zip(indices[:, :-1].tolist(), values.tolist(), strict=True):
        found.setdefault(tuple(place), set()).add(value)
    return found


@sets_op.kernel("cpu")
def _sets_kernel(
    a_indices: Array,
    a_values: Array,
    a_shape: Array,
    b_indices: Array,
    b_values: Array,
    b_shape: Array,
    *,
    operation: str,
) -> tuple[Array, Array, Array]:
    if a_shape[:-1].tolist() != b_shape[:-1].tolist():
        raise ShapeError(
            f"sets: the axes before the last differ: {a_shape.tolist()} and {b_shape.tolist()}"
        )
    one, other = _sets(a_indices, a_values), _sets(b_indices, b_values)
    places: list[tuple[int, ...]] = []
    values: list[Any] = []
    longest = 0
    for place in sorted(one.keys() | other.keys()):
        items = sorted(_OPERATIONS[operation](one.get(place, set()), other.get(place, set())))
        places += [(*place, i) for i in range(len(items))]
        values += items
        longest = max(longest, len(items))
    return (
        np.asarray(places, np.int64).reshape(-1, len(a_shape)),
        collect(values, (len(values),), a_values.dtype),
        np.asarray([*a_shape[:-1], longest], np.int64),
    )


@define(
    "SparseSetSize",
    dtypes={"indices": INTEGER, "values": _KINDS, "dense_shape": INTEGER},
    same_dtype=False,
)
def size_op(indices: TensorSpec, values: TensorSpec, dense_shape: TensorSpec) -> TensorSpec:
    """How many different values there are along the last axis, int32."""
    rank = check_sparse("SparseSetSize", indices, dense_shape)
    return TensorSpec(None if rank is None else [None] * (rank - 1), int32)


@size_op.kernel("cpu")
def _size_kernel(indices: Array, values: Array, dense_shape: Array) -> Array:
    counts = np.zeros(tuple(dense_shape[:-1].tolist()), np.int32)
    for place, items in _sets(indices, values).items():
        counts[place] = len(items)
    return counts


for _op in (sets_op, size_op):
    _op.grad(no_gradient)


def sparse_sets(operation: str, a: Any, b: Any) -> SparseValues:
    """Of the sets along the last axes of two arrays: their intersection, union or difference.

    Args:
        operation: "intersection", "union" or "difference" (what is in `a` alone).
        a, b: sparse or dense, integers or strings, of one shape but for the last axis.

    Returns:
        Sparse: the values of each set in order. Its last size is that of the largest set.

    Raises:
        ShapeError: the axes before the last differ.
        DTypeError: so do the element types, or they are none of these.
    """
    own, other = _elements(a), _elements(b)
    return SparseValues(*sets_op.many(*own, *other, operation=operation))


def sparse_set_size(a: Any) -> Tensor:
    """How many different values a sparse array has along its last axis, int32."""
    return size_op(*as_sparse("set_size", a))


def _elements(x: Any) -> SparseValues:
    """A dense array as a sparse one of all its elements."""
    if isinstance(x, SparseValues):
        return as_sparse("sets", x)
    dense = convert_to_tensor(x)
    if dense.shape.rank == 0:
        raise ShapeError(f"sets: expected an axis along which sets are, got {dense.spec}")
    everywhere = ones_like(equal(dense, dense))
    places = stack([cast(place, int64) for place in nonzero(everywhere)], 1)
    return SparseValues(places, reshape(dense, [-1]), shape_of(dense, dtype=int64))
