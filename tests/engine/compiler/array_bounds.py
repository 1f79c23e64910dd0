"""Native code between pages that cannot be touched: a plugin of pytest.

    GUARD=end python -m pytest -p tests.engine.compiler.array_bounds tests/engine/ops

What runs natively gets inputs, outputs and an arena that end at such a page; with
GUARD=begin they begin at one. A read or write outside of them ends the process. At the end the ops
with a lowering that no test has run this way are named.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
from collections.abc import Sequence
from itertools import starmap
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.lower.rules import LOWERINGS
from laminar.engine.compiler.native import executable, heap
from laminar.engine.compiler.native.cluster_kernel import NativeCluster

from ..ops.native import Array

_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)
_seen: set[str] = set()


def guarded(shape: int | Sequence[int], dtype: Any, *, at_end: bool) -> Array:
    """An array that ends, or begins, at a page that cannot be touched."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    num_bytes = math.prod(sizes) * np.dtype(dtype).itemsize
    if not num_bytes:
        return np.empty(sizes, dtype)
    length = -(-num_bytes // _PAGE) * _PAGE
    memory = mmap.mmap(-1, length + 2 * _PAGE)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + _PAGE + length):
        if _libc.mprotect(ctypes.c_void_p(page), _PAGE, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = _PAGE + length - num_bytes if at_end else _PAGE
    found: Array = np.frombuffer(memory, np.uint8, num_bytes, first).view(dtype).reshape(sizes)
    return found


@pytest.fixture(autouse=True)
def _guards(monkeypatch: pytest.MonkeyPatch) -> None:
    at_end = os.environ["GUARD"] == "end"

    def empty(shape: Any, dtype: Any = np.float64) -> Array:
        return guarded(shape, dtype, at_end=at_end)

    def run(cluster: NativeCluster, context: Any, ready: Any, arrays: Any, stores: Any) -> Any:
        _seen.update(step.definition.type for step in cluster._body.steps)
        copies = []
        for array in arrays:
            copies.append(empty(array.shape, array.dtype))
            copies[-1][...] = array
        ready.places, ready.is_plain = tuple(heap.made(ready.executable.results)), False
        return original(cluster, context, ready, copies, stores)

    original = NativeCluster._run
    names = {name: getattr(np, name) for name in dir(np) if not name.startswith("_")}
    monkeypatch.setattr(NativeCluster, "_run", run)
    monkeypatch.setattr(heap, "made", lambda forms: list(starmap(empty, forms)))
    monkeypatch.setattr(executable, "np", SimpleNamespace(**{**names, "empty": empty}))


def pytest_sessionfinish() -> None:
    print("\nnot run:", *sorted(LOWERINGS.keys() - _seen) or ["none"])
