"""The roofline of this machine: how much arithmetic and memory traffic native code reaches at most.

Source: Williams, Waterman and Patterson, "Roofline: an insightful visual performance model for
    multicore architectures", 2009; Ilic, Pratas and Sousa, "Cache-aware roofline model", 2014.
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
from laminar.engine.timeline import Recording, Timeline

_RUNS = 7
_ROWS = 640  # of the matrices of a product: in the second cache by blocks, long enough for threads
_COPIES = (1 << 16, 1 << 19, 1 << 22, 1 << 24, 1 << 27)  # bytes: in caches, and in memory


class Roofline(NamedTuple):
    """What native code reaches at most.

    Attributes:
        flops: in a second.
        rates: (size, bytes read and written in a second) of copies that move so many bytes in all,
            the smallest first: what a cache holds is moved faster.
    """

    flops: float
    rates: tuple[tuple[int, float], ...]

    @property
    def num_bytes(self) -> float:
        """Of memory, in a second."""
        return self.rates[-1][1]

    def rate(self, num_bytes: float) -> float:
        """How many bytes move in a second where a kernel touches so many."""
        return next((rate for size, rate in self.rates if num_bytes <= size), self.num_bytes)

    def seconds(self, flops: float, num_bytes: float) -> float:
        """The least time that work can take, and be it alone."""
        return max(flops / self.flops, num_bytes / self.rate(num_bytes))


def roofline() -> Roofline:
    """Measured once for a number of threads, by a product of matrices and by copies."""
    return _measured(num_threads())


@functools.cache
def _measured(threads: int) -> Roofline:
    a = np.ones((_ROWS, _ROWS), np.float32)
    product = function(lambda a: ops.matmul(a, a))
    flops = 2.0 * _ROWS**3 / _least(lambda: product(a))
    add = function(lambda x: x + 1.0)
    rates: list[tuple[int, float]] = []
    for size in _COPIES:
        rate = size / _least_in_kernel(functools.partial(add, np.ones(size // 8, np.float32)))
        # Where threads cost more than a cache gives, its rate is that of the next one.
        rates = [(known, max(rate, faster)) for known, faster in rates] + [(size, rate)]
    return Roofline(flops, tuple(rates))


def _least(run: Callable[[], Any]) -> float:
    run()
    times = []
    for _ in range(_RUNS):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def _least_in_kernel(run: Callable[[], Any]) -> float:
    """The seconds of the only kernel of a function, without those of the call."""
    run()
    timeline = Timeline(lambda plan, context, feeds: plan.execute(context, feeds))
    with Recording.lock:
        before, Recording.active = Recording.active, timeline
    try:
        for _ in range(_RUNS):
            run()
    finally:
        with Recording.lock:
            Recording.active = before
    timeline.finish()
    (native,) = timeline.runs
    began, ended = native.kernels[..., 0], native.kernels[..., 1]
    spent = ended.max((1, 2)) - np.where(ended > 0, began, ended.max()).min((1, 2))
    return float(spent.min()) * 1e-9
