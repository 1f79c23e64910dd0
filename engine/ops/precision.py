"""In which type a kernel computes."""

from __future__ import annotations

from typing import Any

from ..graph import Array, bfloat16, float16

HALVES = (float16.numpy, bfloat16.numpy)


def computing_dtype(xp: Any, x: Array) -> Any:
    """float32 for half types, so that a kernel rounds once, at its end; else the type of `x`."""
    return xp.float32 if x.dtype in HALVES else x.dtype
