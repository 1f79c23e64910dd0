"""The updates of all variables side by side at the end, where one launch can make many of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

from ..ir.kernel import Kernel
from ..schedule.buffer_assignment import BufferAssignment
from ..schedule.reorder import moved_late


def updates_together(layout: BufferAssignment) -> BufferAssignment:
    """The layout with kernel calls and their epilogues apart, and with updates at the end."""
    kernels = list(_apart(layout.kernels))
    updates = layout.program.updates
    late = moved_late(kernels, layout.place, updates, _is_over_elements)
    return dataclasses.replace(layout, kernels=late)


def _apart(kernels: Sequence[Kernel]) -> Iterator[Kernel]:
    for kernel in kernels:
        kernel.test, kernel.body = list(_apart(kernel.test)), list(_apart(kernel.body))
        if kernel.call is None or not kernel.statements:
            yield kernel
            continue
        yield Kernel(kernel.shape, call=kernel.call)
        yield Kernel(kernel.shape, kernel.statements)


def _is_over_elements(kernel: Kernel) -> bool:
    special = (kernel.call, kernel.check, kernel.loop)
    return kernel.axes is None and all(s is None for s in special)
