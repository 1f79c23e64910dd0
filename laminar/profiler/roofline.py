"""The roofline of this machine: how much arithmetic and memory traffic native code reaches at most.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for
    multicore architectures", 2009.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from laminar import ops
from laminar.engine import function
from laminar.engine.compiler.target.thread_count import num_threads

_RUNS = 7
_ROWS = 640  # of the matrices of a product: in the second cache by blocks, long enough for threads
_NUMBERS = 1 << 24  # that are copied: more than caches hold


class Roofline(NamedTuple):
    """What native code reaches at most.

    Attributes:
        flops: in a second.
        num_bytes: read and written in a second.
    """

    flops: float
    num_bytes: float

    def seconds(self, flops: float, num_bytes: float) -> float:
        """The least time that work can take, and be it alone."""
        return max(flops / self.flops, num_bytes / self.num_bytes)


def roofline() -> Roofline:
    """Measured once for a number of threads, by a product of matrices and by a copy."""
    return _measured(num_threads())


@functools.cache
def _measured(threads: int) -> Roofline:
    a = np.ones((_ROWS, _ROWS), np.float32)
    x = np.ones(_NUMBERS, np.float32)
    product = function(lambda a: ops.matmul(a, a))
    add = function(lambda x: x + 1.0)
    flops = 2.0 * _ROWS**3 / _least(lambda: product(a))
    return Roofline(flops, 8.0 * _NUMBERS / _least(lambda: add(x)))


def _least(run: Callable[[], Any]) -> float:
    run()
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)
