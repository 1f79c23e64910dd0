"""Kernels in another order, which leaves what they compute as it is."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from ..ir.kernel import Kernel


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


def moved_late(
    kernels: Sequence[Kernel],
    place: Mapping[int, int],
    updates: Collection[int],
    may_move: Callable[[Kernel], bool],
) -> list[Kernel]:
    """The kernels with those that update variables as late as they can be.

    What is made of their new values, and may move too, goes with them.

    Args:
        kernels: in order.
        place: storage -> the storage whose memory it shares.
        updates: the variables that are written.
        may_move: whether a kernel is one to be moved.
    """
    found: list[Kernel] = []
    waiting: list[_Access] = []
    for kernel in kernels:
        now = _Access(kernel, place)
        before = [now]
        for other in reversed(waiting):
            if any(other.must_precede(later) for later in before):
                before.append(other)
        is_update = not now.writes.isdisjoint(updates)
        if (is_update or len(before) > 1) and may_move(kernel):
            waiting.append(now)
            continue
        found += [access.kernel for access in reversed(before)]
        waiting = [other for other in waiting if other not in before]
    return [*found, *(access.kernel for access in waiting)]
