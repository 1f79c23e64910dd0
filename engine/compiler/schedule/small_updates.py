"""Updates of a few numbers come late: a run that ends before them has changed no variable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ir.kernel import Kernel
from ..ir.program import LoopProgram
from ..ir.sizes import is_known

# What a larger update reads would be kept in memory for long.
_FEW_ELEMENTS = 4096


class _Access:
    """A kernel with the memory that it reads and writes."""

    def __init__(self, kernel: Kernel, place: Mapping[int, int]) -> None:
        self.kernel = kernel
        self.reads = {place[view.storage] for view in kernel.views}
        self.writes = {place[number] for number in kernel.writes}

    def must_precede(self, later: _Access) -> bool:
        """Whether one that comes later must stay behind it."""
        return not (
            self.writes.isdisjoint(later.reads | later.writes)
            and self.reads.isdisjoint(later.writes)
        )


def small_updates_late(
    program: LoopProgram, kernels: Sequence[Kernel], place: Mapping[int, int]
) -> list[Kernel]:
    """The kernels with those that update variables of a few elements as late as they can be.

    Counters, seeds and averages could be written long before the program ends; while they are not,
    it can be cancelled. What is made of their new values, and small too, goes with them.
    """
    found: list[Kernel] = []
    waiting: list[_Access] = []
    for kernel in kernels:
        now = _Access(kernel, place)
        before = [now]
        for other in reversed(waiting):
            if any(other.must_precede(later) for later in before):
                before.append(other)
        is_update = not now.writes.isdisjoint(program.updates)
        if (is_update or len(before) > 1) and _is_small(program, kernel):
            waiting.append(now)
            continue
        found += [access.kernel for access in reversed(before)]
        waiting = [other for other in waiting if other not in before]
    return [*found, *(access.kernel for access in waiting)]


def _is_small(program: LoopProgram, kernel: Kernel) -> bool:
    if kernel.loop is not None or kernel.check is not None or kernel.call is not None:
        return False
    numbers = {view.storage for view in kernel.views} | kernel.writes
    sizes = [program.storages[number].num_elements for number in numbers]
    return all(is_known(size) and size <= _FEW_ELEMENTS for size in sizes)
