"""Running plans of kernels on arrays, as tests need it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.launches import Array as Array
from benchmarks.launches import Prepared as Prepared
from benchmarks.launches import aligned as aligned
from laminar.engine.compiler.kernels import Launch
from laminar.engine.compiler.target import llvm

# The sizes of vectors that this host has: kernels for all of them can be tried out.
VECTOR_BYTES = [size for size in (16, 32, 64) if size <= llvm.vector_bytes()]
MOST_THREADS = 4


def results(launches: Sequence[Launch], *arrays: Array) -> Array:
    """The last array after the launches have run, with garbage in it before.

    They are run for 1, 2 and 3 threads, which must not make a difference.
    """
    *inputs, output = arrays
    found = []
    for nth in (1, 2, 3):
        result = output.copy()
        Prepared(launches, [*inputs, result]).run(nth)
        found.append(result)
    for other in found[1:]:
        np.testing.assert_array_equal(found[0], other)
    return found[0]
