"""A kernel that runs another, and writes down when: it takes that one's place while it is watched.

    traced_kernel(ptr words, i64 tid, i64 nth)

Its words: the code of the other, the words of that, and where the times go, two words for each
thread.
"""

from __future__ import annotations

from ...graph import int64
from ..target.code import Code
from ..target.llvm import vector_bytes
from .abi import pointer, put, word
from .clock import MONOTONIC, TWO_WORDS, nanoseconds
from .function import POINTER, IRFunction, Module, Value
from .memory import address_at

KERNEL_CODE, KERNEL_WORDS, KERNEL_TIMES = range(3)
TRACE_WORDS = 4
_THREAD_BYTES = 16


def traced_kernel_code() -> Code:
    """The code of the kernel."""
    return Code("traced_kernel", vector_bytes(), text, (MONOTONIC,))


def text(clock: int) -> str:
    """The IR; `clock` is the system's number of the clock that it reads."""
    module = Module()
    fn = IRFunction(module, "traced_kernel", [POINTER, "i64", "i64"])
    words = fn.arguments[0]
    tid, nth = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
    moment = fn.named(TWO_WORDS)

    code = pointer(fn, word(fn, words, KERNEL_CODE))
    own = pointer(fn, word(fn, words, KERNEL_WORDS))
    slot = address_at(fn, pointer(fn, word(fn, words, KERNEL_TIMES)), tid, _THREAD_BYTES)
    start = nanoseconds(fn, clock, moment)
    fn.line(f"call void {code}(ptr {own}, {tid}, {nth})")
    end = nanoseconds(fn, clock, moment)
    put(fn, slot, 0, start)
    put(fn, slot, 1, end)
    return module.text()
