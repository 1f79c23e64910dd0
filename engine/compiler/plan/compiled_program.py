"""What a program is for any sizes: kernels, and their code."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

from ..codegen.arguments import Loops
from ..codegen.loop_kernel import LoopWriter
from ..ir.kernel import Kernel
from ..ir.sizes import Sizes, known_sizes
from ..schedule.buffer_assignment import BufferAssignment, in_order, live_ranges


def changed_in_part(kernel: Kernel, place: Mapping[int, int]) -> dict[int, int]:
    """The storages that a kernel changes in place, but for most of it: how many elements it has
    to do with."""
    call = kernel.call
    if call is None or call.alias is None:
        return {}
    (made,) = call.writes
    table, changed = call.alias
    return {table: 0, made: changed} if place[made] == place[table] else {}


class CompiledProgram:
    """The kernels of a program and their code.

    Args:
        layout: the program.
        vector_bytes: of the host's vectors.
        name: of the cluster, for reports.
    """

    def __init__(self, layout: BufferAssignment, vector_bytes: int, name: str) -> None:
        self.layout = layout
        self.name = name
        self.kernels = list(in_order(layout.kernels))
        self.loops: list[Loops | None] = []
        for kernel in self.kernels:
            loops = self._write(kernel, vector_bytes)
            self.loops.append(loops)

    def _write(self, kernel: Kernel, vector_bytes: int) -> Loops | None:
        if not kernel.statements:
            return None
        writer = LoopWriter(self.layout, kernel, vector_bytes)
        return writer.write() if kernel.call is None else writer.write_epilogue()

    @functools.cached_property
    def ranges(self) -> dict[int, tuple[int, int]]:
        """The first and the last kernel that need a storage's memory; see `live_ranges`."""
        return live_ranges(self.layout)

    @functools.cached_property
    def unaligned(self) -> frozenset[int]:
        """The storages that may begin anywhere: what the user gives, and constants.

        Variables begin at lines of the cache, as the arena does.
        """
        storages = self.layout.program.storages
        place = self.layout.place.items()
        return frozenset(n for n, at in place if storages[at].role in ("input", "constant"))

    @functools.cached_property
    def touched(self) -> list[tuple[int, ...]]:
        """For each kernel, the storages in memory that it reads or writes all of."""
        stored = self.layout.stored
        return [
            tuple(
                sorted(
                    stored
                    & ({v.storage for v in kernel.views} | kernel.writes)
                    - changed_in_part(kernel, self.layout.place).keys()
                )
            )
            for kernel in self.kernels
        ]

    def labels(self, kernel: Kernel) -> tuple[str, ...]:
        """The operations that a kernel came from."""
        labels = self.layout.program.labels
        names = dict.fromkeys(labels.get(id(s), "") for s in kernel.all_statements)
        return tuple(n for n in names if n)

    def sizes(self, values: Sequence[int]) -> Sizes:
        """The real sizes, with those that are derived from them."""
        return Sizes(self.known_sizes(values))

    def known_sizes(self, values: Sequence[int]) -> list[int]:
        """The real size for each symbolic one, with those that are derived from them."""
        return known_sizes(values, self.layout.program.derived.values())
