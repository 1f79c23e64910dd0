"""Native functions by their code: compiled or read from the cache once, then known by address.

Every compile is noted (see report.py).
"""

from __future__ import annotations

import threading
import time

from . import llvm, report
from .cache import cached
from .kernels.launch import Code

_addresses: dict[Code, int] = {}
_lock = threading.Lock()


def address_of(code: Code, label: str = "") -> int:
    """Where the function of `code` is; `label` tells whom it is for."""
    found = _addresses.get(code)
    if found is None:
        with _lock:
            found = _addresses.get(code)
            if found is None:
                found = _addresses[code] = _load(code, label)
    return found


def _load(code: Code, label: str) -> int:
    start = time.perf_counter()
    text = code.text()
    compiled = False

    def make(ir: str) -> bytes:
        nonlocal compiled
        compiled = True
        return llvm.compile_object(ir, code.vector_bytes)

    content = cached(llvm.identity(code.vector_bytes), text, make)
    address = llvm.load_object(content, [code.symbol])[code.symbol]
    seconds = time.perf_counter() - start
    report.note(report.Compile(label or code.symbol, compiled, seconds, len(content)))
    return address
