"""The places that the loops of a kernel go through, whatever writes its code."""

from __future__ import annotations

from typing import Any

from ...graph import DType, int64
from ..ir.kernel import Kernel, fills, is_same_element, strides_over
from ..ir.program import (
    IndirectLoad,
    Iota,
    Operand,
    Pointwise,
    Reduce,
    Shape,
    View,
    contiguous,
)
from .buffer_assignment import BufferAssignment
from .phases import phases_of


class Access:
    """An affine place in memory, or an affine number, followed through the loops.

    Attributes:
        storage: where it is; None for a number.
        strides: along the axes of the kernel.
        offset: of the first element.
        dtype: of the elements.
        pointer: what the code calls the first element.
        steps: along the joined axes, as values of the code.
    """

    def __init__(self, storage: int | None, strides: Shape, offset: int, dtype: DType) -> None:
        self.storage = storage
        self.strides = strides
        self.offset = offset
        self.dtype = dtype
        self.pointer = ""
        self.steps: list[Any] = []

    @property
    def moves(self) -> bool:
        """Whether it differs along the last axis."""
        return bool(self.strides) and self.strides[-1] != 0


class KernelAccesses:
    """What a kernel reads and writes, and what of that it has in registers.

    Args:
        layout: the program where it belongs, and the storages that are in memory; others stay in
            registers.
        kernel: the statements.

    Attributes:
        made: storage -> the statement that makes it.
        partial: the storages that no statement fills.
        accesses: what is read by its operand, what is written by ("store", target).
        reloaded: the storages that later phases load.
        rows: the storages of which each thread has a row of its own.
    """

    def __init__(self, layout: BufferAssignment, kernel: Kernel) -> None:
        self.program = program = layout.program
        self.kernel = kernel
        self.stored = layout.stored | layout.rows
        self.made = {s.target.storage: s for s in kernel.statements}
        self.partial = {
            s.target.storage
            for s in kernel.statements
            if isinstance(s, Pointwise) and not fills(program, s.target)
        }
        self.accesses: dict[object, Access] = {}
        self.phases = phases_of(kernel)
        self.reloaded = self.phases.crossing & self.stored
        self.rows = layout.rows & self.made.keys()
        self._collect()

    def _collect(self) -> None:
        for statement in self.kernel.statements:
            for operand in statement.operands:
                self._collect_operand(operand)
            target = statement.target
            if target.storage in self.stored:
                self.target_access(statement)
                if target.storage in self.reloaded:
                    self._access(self.program.whole(target.storage))

    def _collect_operand(self, operand: Operand) -> None:
        if isinstance(operand, IndirectLoad):
            self._access(operand.view)
            for index in operand.indices:
                self._collect_operand(index)
        elif isinstance(operand, Iota) or (isinstance(operand, View) and not self.is_here(operand)):
            self._access(operand)

    def is_here(self, view: View) -> bool:
        """Whether a view is a value that the kernel makes for the very element."""
        return (
            view.storage in self.made
            and view.storage not in self.partial
            and is_same_element(view, self.kernel)
        )

    def _access(self, operand: View | Iota) -> Access:
        found = self.accesses.get(operand)
        if found is None:
            strides = strides_over(operand, self.kernel)
            assert strides is not None
            storage = operand.storage if isinstance(operand, View) else None
            dtype = (
                self.program.storages[operand.storage].dtype if isinstance(operand, View) else int64
            )
            if storage in self.rows:
                found = self._row_access(storage, dtype)
            else:
                found = Access(storage, strides, operand.offset, dtype)
            self.accesses[operand] = found
        return found

    def _row_access(self, storage: int, dtype: DType) -> Access:
        """A row of this thread's own, which each row of the kernel takes in its turn."""
        shape, axes = self.kernel.shape, self.kernel.axes or frozenset()
        along = iter(contiguous(tuple(n for a, n in enumerate(shape) if a in axes)))
        strides = tuple(next(along) if a in axes else 0 for a in range(len(shape)))
        return Access(storage, strides, 0, dtype)

    def target_access(self, statement: Pointwise | Reduce) -> Access:
        target = statement.target
        if target.storage in self.rows:
            return self._access(self.program.whole(target.storage))
        key = ("store", target)
        found = self.accesses.get(key)
        if found is None:
            view = target
            if isinstance(statement, Reduce) and statement.split is not None:
                view = View(target.storage, target.shape[1:], target.strides[1:], target.offset)
            strides = strides_over(view, self.kernel)
            assert strides is not None
            dtype = self.program.storages[target.storage].dtype
            found = self.accesses[key] = Access(target.storage, strides, target.offset, dtype)
        return found

    def joined(self) -> list[list[int]]:
        """The axes, those that all accesses step over as over one put together."""
        shape = self.kernel.shape
        axes = self.kernel.axes or frozenset()
        groups: list[list[int]] = []
        for a in range(len(shape)):
            if (
                groups
                and (a in axes) == (groups[-1][0] in axes)
                and all(
                    acc.strides[a - 1] == acc.strides[a] * shape[a]
                    for acc in self.accesses.values()
                )
            ):
                groups[-1].append(a)
            else:
                groups.append([a])
        return groups
