"""What a kernel over rows keeps from one phase for a later one.

Most of what a later phase asks for is computed again there. What takes more than a few instructions
is kept: at its place in what the kernel writes there in the end (`in_place.py`), in a row on the
stack, which the rows of the kernel reuse, or in memory like what other kernels need.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from ..ir.kernel import Kernel
from ..ir.program import LoopProgram, Pointwise, views_of
from ..ir.sizes import is_known
from .cost import instructions
from .phases import phases_of

# To keep a value takes a store and a load, and room in the L1 cache.
_CHEAP = 4
# What one kernel may keep on the stack: with the row itself that is about the size of
# an L1 cache.
_ROOM = 1 << 15


def spilled_values(kernel: Kernel, stored: Collection[int]) -> set[int]:
    """What is not computed again in later phases, besides what is in memory in any case."""
    made = {
        s.target.storage: s
        for s in kernel.statements
        if isinstance(s, Pointwise) and s.target.storage not in kernel.rows
    }
    kept: set[int] = set()

    def again(number: int) -> list[int]:
        """What is computed again where a value is asked for: itself, and what it is made of."""
        found = [number]
        for n in found:
            inner = {v.storage for v in views_of(made[n].operands)} & made.keys()
            found += sorted(inner.difference(found, stored, kept))
        return found

    asked = _asked_later(kernel)
    for number in made:
        if number not in asked or number in stored:
            continue
        tree = [] if number in kept else again(number)
        costs = {n: instructions(made[n].expression) for n in tree}
        total = sum(costs.values())
        if total > _CHEAP:
            # The one thing that makes it expensive, if there is one.
            kept.add(next((n for n in tree if total - costs[n] <= _CHEAP), number))
    return kept


def stack_rows(
    program: LoopProgram, kernel: Kernel, kept: Collection[int], place: Mapping[int, int]
) -> set[int]:
    """What is kept a row at a time: what has no place, while there is room."""
    axes = kernel.axes or frozenset()
    length = math.prod(kernel.shape[a] for a in axes)
    found: set[int] = set()
    if not axes or not is_known(length):
        return found
    room = _ROOM
    for s in kernel.statements:
        number = s.target.storage
        size = length * program.storages[number].dtype.size
        if number in kept and place[number] == number and size <= room:
            room -= size
            found.add(number)
    return found


def _asked_later(kernel: Kernel) -> set[int]:
    """What statements of later phases take."""
    phases = phases_of(kernel)
    of = {s.target.storage: phases.of[id(s)] for s in kernel.statements}
    return {
        v.storage
        for s in kernel.statements
        for v in views_of(s.operands)
        if of.get(v.storage, math.inf) < phases.of[id(s)]
    }
