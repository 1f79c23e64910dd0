"""How long each kernel of a plan takes."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import Array
from ..codegen.driver import driver_code
from ..target.code_cache import address_of
from . import heap
from .executable import Executable

_SECONDS = 0.02  # all kernels are run again until so much time was measured
_RUNS = (3, 200)

_ALONE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)


def seconds_of_launches(
    executable: Executable, given: Sequence[heap.Form], variables: Sequence[Array]
) -> list[float] | None:
    """The median time of each launch on one thread, in the order in which they run.

    They run one after the other, as in a step, on copies of the variables, so nothing changes.
    Inputs are random numbers from 0 to 1; whole numbers, which may be places, are 0. A call from
    Python costs about 0.5 us more each.

    Args:
        executable: nobody else may run it, nor work in its memory.
        given: the forms of the inputs.
        variables: their values.

    Returns:
        None if the arrays could not be used.
    """
    objects: list[Any] = [heap.aligned(*form) for form in given]
    rng = np.random.default_rng(0)
    for x in objects:
        x[...] = rng.random(x.shape, np.float32) if x.dtype.kind not in "biu" else 0
    for value in variables:
        objects.append(heap.aligned(value.shape, value.dtype))
        objects[-1][...] = value
    launches = executable.launches()
    results = executable.place([*objects, *[None] * len(executable.results)])
    if type(results) is not list:
        return None
    run = _ALONE(address_of(driver_code("alone")))
    times: list[list[float]] = [[] for _ in launches]
    least, most = _RUNS
    begin = time.perf_counter()
    while len(times[0]) < least or (
        time.perf_counter() - begin < _SECONDS and len(times[0]) < most
    ):
        for (code, words), found in zip(launches, times, strict=True):
            start = time.perf_counter()
            run(code, words)
            found.append(time.perf_counter() - start)
    return [statistics.median(found) for found in times]
