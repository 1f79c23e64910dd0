"""Updates of a few numbers come late: a run that ends before them has changed no variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.kernel import Kernel
from ..ir.program import LoopProgram
from ..ir.sizes import is_known
from .reorder import moved_late

# What a larger update reads would be kept in memory for long.
_FEW_ELEMENTS = 4096


def sink_updates(
    program: LoopProgram, kernels: Sequence[Kernel], place: Mapping[int, int]
) -> list[Kernel]:
    """The kernels with those that update variables of a few elements as late as they can be.

    Counters, seeds and averages could be written long before the program ends; while they are not,
    it can be cancelled. What is made of their new values, and small too, goes with them.
    """
    return moved_late(kernels, place, program.updates, lambda kernel: _is_small(program, kernel))


def _is_small(program: LoopProgram, kernel: Kernel) -> bool:
    if kernel.loop is not None or kernel.check is not None or kernel.call is not None:
        return False
    numbers = {view.storage for view in kernel.views} | kernel.writes
    sizes = [program.storages[number].num_elements for number in numbers]
    return all(is_known(size) and size <= _FEW_ELEMENTS for size in sizes)
