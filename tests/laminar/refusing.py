"""How a hostile file is to be refused."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from laminar.engine.errors import DataLossError

MAX_SECONDS = 2.0
MAX_BYTES = 16 << 20


@contextmanager
def refused(match: str) -> Iterator[None]:
    """The block raises DataLossError, with a remedy, soon and without taking much memory."""
    tracemalloc.start()
    start = time.thread_time()
    try:
        with pytest.raises(DataLossError, match=match) as caught:
            yield
        assert caught.value.remedy
        assert time.thread_time() - start < MAX_SECONDS
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()
