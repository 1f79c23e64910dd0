"""What a thread reads floating variables as: mixed precision."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..graph import DType, as_dtype


class _Reading(threading.local):
    """`dtype`: what floating variables are read as, None for their own type."""

    dtype: DType | None = None


reading = _Reading()


@contextmanager
def autocast(dtype: Any) -> Iterator[None]:
    """Read floating variables as `dtype` inside (None: as they are)."""
    before, reading.dtype = reading.dtype, None if dtype is None else as_dtype(dtype)
    try:
        yield
    finally:
        reading.dtype = before


def autocast_dtype() -> DType | None:
    """The type that floating variables are read as now, None for their own."""
    return reading.dtype
