"""Rows so short that their code is written out: what a phase has made stays in registers."""

from __future__ import annotations

from ..ir.kernel import Kernel
from ..ir.program import IndirectLoad, LoopProgram, View
from ..ir.sizes import is_known

# Rows of at most so many vectors are written out, if that makes at most so many values.
_SHORT = 8
_WRITTEN = 96


def lanes_of(program: LoopProgram, kernel: Kernel, vector_bytes: int) -> int:
    """How many elements of the kernel's smallest type a vector takes; none smaller than 4 bytes."""
    sizes = [program.storages[s.target.storage].dtype.size for s in kernel.statements]
    for statement in kernel.statements:
        for operand in statement.operands:
            view = operand.view if isinstance(operand, IndirectLoad) else operand
            if isinstance(view, View):
                sizes.append(program.storages[view.storage].dtype.size)
    return vector_bytes // max(min(sizes), 4)


def is_short(length: int, lanes: int, num_statements: int) -> bool:
    """Whether a row is written out."""
    if not is_known(length):
        return False
    count = -(-length // lanes)
    return count <= _SHORT and count * num_statements <= _WRITTEN


def has_short_rows(program: LoopProgram, kernel: Kernel, vector_bytes: int) -> bool:
    """Whether a kernel goes along rows that are written out."""
    if not kernel.is_along or kernel.split is not None or len(kernel.axes or ()) != 1:
        return False
    lanes = lanes_of(program, kernel, vector_bytes)
    return is_short(kernel.shape[-1], lanes, len(kernel.statements))
