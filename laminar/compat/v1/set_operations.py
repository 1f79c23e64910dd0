"""Sets of values along the last axes of arrays."""

from __future__ import annotations

from typing import Any

from laminar.engine.graph import Tensor
from laminar.engine.ops.sparse.sparse_sets import sparse_set_size, sparse_sets
from laminar.engine.ops.sparse.sparse_values import SparseValues

from .adapting import v1
from .values import symbol


def _operand(x: Any) -> Any:
    return x if isinstance(x, SparseValues) else symbol(x)


@v1()
def set_intersection(a: Any, b: Any, validate_indices: bool = True) -> SparseValues:
    """What is in both sets, sparse; places are in order in any case."""
    return sparse_sets("intersection", _operand(a), _operand(b))


@v1()
def set_union(a: Any, b: Any, validate_indices: bool = True) -> SparseValues:
    """What is in one of the sets, sparse."""
    return sparse_sets("union", _operand(a), _operand(b))


@v1()
def set_difference(
    a: Any, b: Any, aminusb: bool = True, validate_indices: bool = True
) -> SparseValues:
    """What is in `a` and not in `b`, or the other way round, sparse."""
    first, second = (a, b) if aminusb else (b, a)
    return sparse_sets("difference", _operand(first), _operand(second))


@v1()
def set_size(a: Any, validate_indices: bool = True) -> Tensor:
    """How many different values there are along the last axis of a sparse tensor."""
    return sparse_set_size(a)
