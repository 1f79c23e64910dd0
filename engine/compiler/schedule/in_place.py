"""Values that take the memory of others, which nobody needs any more: fewer lines are fetched."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ..ir.kernel import Kernel, fills, is_same_element, strides_over
from ..ir.program import IndirectLoad, LoopProgram, Pointwise, View, contiguous, views_of
from .phases import Phases, last_use, moment, phases_of


class _Places(NamedTuple):
    """What is known of all kernels.

    Attributes:
        program: what they compute.
        stored: the storages that are in memory.
        kept: those among them that may be rows on the stack.
        place: storage -> the storage whose memory it shares.
        last: storage -> the last kernel that reads it.
        num_writes: storage -> how many statements write it.
        fixed: storages whose memory is theirs alone.
    """

    program: LoopProgram
    stored: Collection[int]
    kept: Collection[int]
    place: dict[int, int]
    last: dict[int, int]
    num_writes: Counter[int]
    fixed: Collection[int]

    def is_free(self, number: int) -> bool:
        """Whether a storage can share memory."""
        is_temporary = self.program.storages[number].role == "temporary"
        return number in self.stored and is_temporary and number not in self.fixed

    def are_alike(self, a: int, b: int) -> bool:
        """Whether two storages have the same number of elements, of one type."""
        x, y = self.program.storages[a], self.program.storages[b]
        return x.dtype == y.dtype and x.num_elements == y.num_elements


def overwrite(
    program: LoopProgram,
    kernels: Sequence[Kernel],
    stored: Collection[int],
    kept: Collection[int],
    place: dict[int, int],
) -> None:
    """Let kernels of loops write over what they read, or keep for themselves, where they can."""
    last: dict[int, int] = {}
    fixed = {view.storage for view in (*program.outputs, *program.updates.values())}
    for k, kernel in enumerate(kernels):
        last.update((view.storage, k) for view in kernel.views)
        if kernel.loop is not None or kernel.check is not None:
            # Iterations come back to what they use, and threads look at a check when they get
            # there.
            fixed |= {view.storage for view in kernel.views} | kernel.writes
    fixed |= {place[n] for n in fixed}
    num_writes = Counter(n for k in kernels for s in k.all_statements for n in s.writes)
    known = _Places(program, stored, kept, place, last, num_writes, fixed)
    for k, kernel in enumerate(kernels):
        if kernel.statements and kernel.call is None and kernel.shape:
            _within(kernel, k, known)
    for number in place:
        while place[number] != place[place[number]]:
            place[number] = place[place[number]]


def _within(kernel: Kernel, k: int, known: _Places) -> None:
    phases = phases_of(kernel)
    taken: set[int] = set()
    for s in _whole_maps(kernel, known):
        target, now = s.target.storage, moment(s, kernel, phases)
        if known.place[target] != target or target in known.kept:
            continue
        # What is kept of a row for later phases, and read for the last time when this is written.
        # Such a row is not also written over what the first phases read: the rows of a softmax of
        # 1024 took a fourth more time then.
        kept = next(_kept_for(target, now, kernel, k, phases, known), None)
        if kept is not None:
            known.place[kept] = target
        elif target not in phases.crossing and known.is_free(target):
            found = next(_ended_by(target, now, kernel, k, phases, known, taken), None)
            if found is not None:
                known.place[target] = found
                taken.add(found)


def _kept_for(
    target: int, now: int, kernel: Kernel, k: int, phases: Phases, known: _Places
) -> Iterator[int]:
    """What a kernel keeps for later phases and reads last in that which writes `target`."""
    for number in sorted(phases.crossing & kernel.writes - {target}):
        if (
            known.place[number] == number
            and known.is_free(number)
            and known.last[number] == k
            and known.are_alike(number, target)
            and last_use(number, kernel, phases, known.stored) == now
        ):
            yield number


def _ended_by(
    target: int,
    now: int,
    kernel: Kernel,
    k: int,
    phases: Phases,
    known: _Places,
    taken: Collection[int],
) -> Iterator[int]:
    """The memory of what a kernel is the last to read, and has read when it writes `target`."""
    for number in sorted({v.storage for v in kernel.views} - kernel.writes):
        root = known.place[number]
        if (
            root not in taken
            and known.last[number] == k
            and known.is_free(number)
            and known.is_free(root)
            and known.are_alike(number, target)
            and _reads_same_element(number, kernel)
            and last_use(number, kernel, phases, known.stored) <= now
        ):
            yield root


def _whole_maps(kernel: Kernel, known: _Places) -> Iterator[Pointwise]:
    """The maps that alone fill an array in memory, element by element."""
    for s in kernel.statements:
        if (
            isinstance(s, Pointwise)
            and s.target.storage not in kernel.rows
            and s.target.storage in known.stored
            # Zeros below it would be written while what they overwrite is needed.
            and known.num_writes[s.target.storage] == 1
            and is_same_element(s.target, kernel)
            and fills(known.program, s.target)
        ):
            yield s


def _reads_same_element(number: int, kernel: Kernel) -> bool:
    """Whether a kernel reads each element of a storage only for the same element."""
    for s in kernel.statements:
        for operand in s.operands:
            if isinstance(operand, IndirectLoad):
                if any(v.storage == number for v in views_of([operand])):
                    return False
            elif isinstance(operand, View) and operand.storage == number:
                steps = strides_over(operand, kernel)
                if operand.offset or steps != contiguous(kernel.shape):
                    return False
    return True
