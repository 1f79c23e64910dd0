"""In which type a kernel computes, and compares."""

from __future__ import annotations

from typing import Any

from ...graph import Array, bfloat16, float16

HALVES = (float16.numpy, bfloat16.numpy)


def computing_dtype(xp: Any, x: Array) -> Any:
    """float32 for half types, so that a kernel rounds once, at its end; else the type of `x`."""
    return xp.float32 if x.dtype in HALVES else x.dtype


def in_order(xp: Any, x: Array) -> Array:
    """`x` in a type that is put in order with NaN as the greatest: bfloat16 is not."""
    return x.astype(xp.float32) if x.dtype == bfloat16.numpy else x
