"""Native code that reads the time."""

from __future__ import annotations

import time

from .abi import word
from .function import IRFunction, Value

MONOTONIC = int(getattr(time, "CLOCK_MONOTONIC", 1))  # the system's number of the clock
TWO_WORDS = "alloca [2 x i64], align 8"  # at the head of a function: where a time goes
_SECOND = 1_000_000_000


def nanoseconds(fn: IRFunction, clock: int, moment: str) -> Value:
    """What the clock shows, in nanoseconds; `moment` points to two words for it."""
    fn.module.declarations["clock_gettime"] = "declare i32 @clock_gettime(i32, ptr)"
    fn.line(f"{fn.fresh()} = call i32 @clock_gettime(i32 {clock}, ptr {moment})")
    return word(fn, moment, 0) * _SECOND + word(fn, moment, 1)
