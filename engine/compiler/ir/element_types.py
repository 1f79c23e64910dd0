"""The element types that loop programs compute with."""

from __future__ import annotations

from ...graph import (
    DType,
    bfloat16,
    bool_,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from .not_lowered import NotLoweredError

# Computed in float32, and rounded once for each op.
HALVES = frozenset({float16, bfloat16})
_INTEGERS = (int8, int16, int32, int64, uint8, uint16, uint32, uint64)
_COMPUTED = frozenset({bool_, float32, float64, *HALVES, *_INTEGERS})


def check_computed(dtype: DType) -> None:
    """Check that elements of a type can be computed with.

    Raises:
        NotLoweredError: they cannot.
    """
    if dtype not in _COMPUTED:
        raise NotLoweredError(f"no native code is generated for {dtype}")


def wide(dtype: DType) -> DType:
    """The type in which elements are computed."""
    return float32 if dtype in HALVES else dtype
