"""When the statements of a kernel run: those that need what a reduction gives, after it."""

from __future__ import annotations

from dataclasses import dataclass

from .fused import Kernel
from .program import Gathered, Map, Operand, Reduce, View, views_of


@dataclass
class Phases:
    """When the statements of a kernel run.

    Attributes:
        of: by id of a statement: its phase; for one on rows, after how many phases.
        count: how many there are.
        crossing: the storages of full size that a later phase asks for too, itself or for what it
            computes again.
    """

    of: dict[int, int]
    count: int
    crossing: set[int]


def phases_of(kernel: Kernel) -> Phases:
    """The phases of a kernel."""
    of: dict[int, int] = {}
    made: dict[int, Map | Reduce] = {}
    crossing: set[int] = set()

    def ready(operand: Operand) -> int:
        if isinstance(operand, Gathered):
            return max([0, *(ready(i) for i in operand.indices)])
        if not isinstance(operand, View) or operand.storage not in made:
            return 0
        s = made[operand.storage]
        return of[id(s)] + isinstance(s, Reduce)

    for s in kernel.statements:
        phase = max([0, *(ready(x) for x in s.operands)])
        of[id(s)] = phase
        made[s.target.storage] = s
        if isinstance(s, Map) and s.target.storage in kernel.rows:
            continue
        asked = [v.storage for v in views_of(s.operands)]
        for number in asked:
            t = made.get(number)
            if t is not None and number not in kernel.rows and of[id(t)] < phase:
                crossing.add(number)
                asked += [v.storage for v in views_of(t.operands) if v.storage not in asked]
    return Phases(of, 1 + max(of.values(), default=0), crossing)
