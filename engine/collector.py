"""Python's garbage collector, held back from full passes while something is traced or compiled.

A full pass goes over all objects of the process (26 ms after a ResNet-20 has been built), and one
is due when many have been made: in the middle of a first step, whose graph and plan nearly all
stay. Meanwhile it may wait for 100 more passes over the young ones, which go on, so that garbage of
other threads is not kept for long. The thresholds are those of the process: where somebody else has
set them meanwhile, they stay as they are set. (`gc.freeze` would spare later passes too, but keeps
for ever what is garbage by then.)

State, guarded by `_lock`: `_Held.depth` blocks are open, of any threads; `before` and `during` are
the thresholds that the first of them found, and set.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

from . import forks

# How many more passes over the younger objects may come before a full one.
_MORE = 100


class _Held:
    depth = 0
    before = during = (0, 0, 0)


_lock = forks.lock()


@contextmanager
def few_full_passes() -> Iterator[None]:
    """A block, or a function that is decorated with it, in which full passes wait."""
    with _lock:
        if not _Held.depth:
            _Held.before = young, middle, full = gc.get_threshold()
            _Held.during = young, middle, full + _MORE if full else 0
            gc.set_threshold(*_Held.during)
        _Held.depth += 1
    try:
        yield
    finally:
        with _lock:
            _Held.depth -= 1
            if not _Held.depth and gc.get_threshold() == _Held.during:
                gc.set_threshold(*_Held.before)
