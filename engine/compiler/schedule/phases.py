"""When the statements of a kernel run: those that need what a reduction gives, after it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from ..ir.kernel import Kernel
from ..ir.program import IndirectLoad, Operand, Pointwise, Reduce, Statement, View, views_of


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
    made: dict[int, Pointwise | Reduce] = {}
    crossing: set[int] = set()

    def ready(operand: Operand) -> int:
        if isinstance(operand, IndirectLoad):
            return max([0, *(ready(i) for i in operand.indices)])
        if not isinstance(operand, View) or operand.storage not in made:
            return 0
        s = made[operand.storage]
        return of[id(s)] + isinstance(s, Reduce)

    for s in kernel.statements:
        phase = max([0, *(ready(x) for x in s.operands)])
        of[id(s)] = phase
        made[s.target.storage] = s
        if isinstance(s, Pointwise) and s.target.storage in kernel.rows:
            continue
        asked = [v.storage for v in views_of(s.operands)]
        for number in asked:
            t = made.get(number)
            if t is not None and number not in kernel.rows and of[id(t)] < phase:
                crossing.add(number)
                asked += [v.storage for v in views_of(t.operands) if v.storage not in asked]
    return Phases(of, 1 + max(of.values(), default=0), crossing)


def moment(statement: Statement, kernel: Kernel, phases: Phases) -> int:
    """When a statement runs, in order: those on rows come between the phases."""
    assert isinstance(statement, Pointwise | Reduce)
    is_on_rows = isinstance(statement, Pointwise) and statement.target.storage in kernel.rows
    return 2 * phases.of[id(statement)] + (not is_on_rows)


def last_use(number: int, kernel: Kernel, phases: Phases, stored: Collection[int]) -> int:
    """The last moment at which a storage is read, by what is computed again there too.

    Args:
        number: the storage.
        kernel: what reads it.
        phases: those of the kernel.
        stored: what is in memory: later phases load that.
    """
    last = 0
    of: dict[int, int] = {number: len(kernel.statements)}  # what is made of it -> its phase
    for s in kernel.statements:
        phase = phases.of[id(s)]
        for view in views_of(s.operands):
            made = of.get(view.storage)
            is_loaded = view.storage in phases.crossing and view.storage in stored
            if made is None or (view.storage != number and made < phase and is_loaded):
                continue
            last = max(last, moment(s, kernel, phases))
            if isinstance(s, Pointwise) and s.target.storage not in kernel.rows:
                of[s.target.storage] = phase
    return last
