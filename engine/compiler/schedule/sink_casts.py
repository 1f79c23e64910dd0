"""Kernels that read halves where they are, instead of a float32 copy of them in memory.

A half that is used as float32 is widened once, by a map that runs in the first kernel which has it
in registers. What another kernel needs of it would come through memory, in twice the bytes: so that
one reads the half, too, and widens it in registers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ...graph import bfloat16, float32
from ..ir.kernel import Kernel
from ..ir.machine import HOST, Machine
from ..ir.program import (
    IndirectLoad,
    LoopProgram,
    Operand,
    Pointwise,
    Reduce,
    Storage,
    View,
    contiguous,
    views_of,
)
from ..ir.recording_scalars import record, same
from ..target.llvm import converts_halves, vector_bytes


def sink_casts(
    program: LoopProgram, kernels: Sequence[Kernel], machine: Machine = HOST
) -> list[Kernel]:
    """The kernels without the copies of halves that none needs any more."""
    copies = _copies(program, kernels, machine)
    for kernel in kernels:
        others = {n: half for n, half in copies.items() if n not in kernel.writes}
        if not others.keys().isdisjoint(view.storage for view in kernel.views):
            kernel.statements = [
                made for s in kernel.statements for made in _on_halves(program, s, others)
            ]
    read = {view.storage for kernel in kernels for view in kernel.views}
    unread = copies.keys() - read
    for kernel in kernels:
        kernel.statements = [s for s in kernel.statements if s.target.storage not in unread]
    return [kernel for kernel in kernels if kernel.all_statements]


def _copies(program: LoopProgram, kernels: Sequence[Kernel], machine: Machine) -> dict[int, View]:
    """The copies that need not be in memory, and the halves that they have the values of."""
    written = Counter(number for kernel in kernels for number in kernel.writes)
    kept = {view.storage for view in (*program.outputs, *program.updates.values())}
    for kernel in kernels:
        for statement in (kernel.call, kernel.check, kernel.loop):
            kept |= (
                set() if statement is None else {v.storage for v in views_of(statement.operands)}
            )
    return {
        number: half
        for number, half in program.halves.items()
        if number not in kept
        and written[number] == 1
        and written[half.storage] <= 1  # it keeps its value
        and half.is_contiguous
        and _is_cheap(program.storages[half.storage], machine)
    }


def _is_cheap(half: Storage, machine: Machine) -> bool:
    """Whether widening takes no time to speak of."""
    return half.dtype == bfloat16 or bool(machine.halves) or converts_halves(vector_bytes())


def _on_halves(
    program: LoopProgram, statement: Pointwise | Reduce, copies: dict[int, View]
) -> list[Pointwise | Reduce]:
    """The same statement on the halves themselves."""
    if not any(_is_copy(x, copies) for x in statement.operands):
        return [statement]
    label = program.labels.get(id(statement), "")
    if isinstance(statement, Pointwise):
        found: list[Pointwise | Reduce] = [_on_half_operands(program, statement, copies)]
    else:
        whole = program.add(Storage(float32, statement.shape))
        view = View(whole, statement.shape, contiguous(statement.shape))
        widening = Pointwise(view, statement.operands, same(float32))
        found = [_on_half_operands(program, widening, copies), replace(statement, operand=view)]
    for made in found:
        program.labels[id(made)] = label
    return found


def _is_copy(x: Operand, copies: dict[int, View]) -> bool:
    view = x.view if isinstance(x, IndirectLoad) else x
    return isinstance(view, View) and view.storage in copies


def _half(x: Operand, copies: dict[int, View]) -> Operand:
    """An operand among the halves, if it is one among their copies."""
    if not _is_copy(x, copies):
        return x
    if isinstance(x, IndirectLoad):
        inside = _half(x.view, copies)
        assert isinstance(inside, View)
        return x._replace(view=inside)
    assert isinstance(x, View)
    half = copies[x.storage]
    return x._replace(storage=half.storage, fence=x.fence or half.fence)


def _on_half_operands(
    program: LoopProgram, statement: Pointwise, copies: dict[int, View]
) -> Pointwise:
    """The same map, which widens the operands that are copies itself."""
    before = statement.expression
    operands = tuple(_half(x, copies) for x in statement.operands)
    dtypes = tuple(map(program.dtype, operands))
    expression = record(lambda s, *given: before.evaluate(s, given), dtypes, before.dtype)
    return Pointwise(statement.target, operands, expression)
