"""What loop programs are made for, as far as their statements and memory depend on it."""

from __future__ import annotations

from typing import NamedTuple

from ...graph import DType


class Machine(NamedTuple):
    """A kind of processor.

    Attributes:
        part_bytes: a part of a reduction is at least so large.
        most_parts: a reduction has at most so many, which run side by side.
        recomputes: a later phase of a kernel computes again what it needs of an earlier one,
            instead of keeping it in memory.
        halves: the element types of which products take factors as they are; None: as the host
            can.
    """

    part_bytes: int = 1 << 16
    most_parts: int = 16
    recomputes: bool = False
    halves: frozenset[DType] | None = None


HOST = Machine()
