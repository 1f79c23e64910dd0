"""A kernel's nest of loops while it is written: its axes, its words, the places it touches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from ...graph import DType, int64
from ..ir.kernel import Kernel, at_hand, fills, strides_over
from ..ir.program import IndirectLoad, Iota, Operand, Pointwise, Reduce, Size, View, contiguous
from ..schedule.buffer_assignment import BufferAssignment
from ..schedule.phases import phases_of
from ..schedule.unrolled_rows import lanes_of
from .arguments import (
    Access,
    BufferWord,
    NumberWord,
    WordSpec,
)
from .conversions import convert
from .function import IRFunction, Value
from .memory import address_at, load, load_pointer, room

Range: TypeAlias = tuple[Value, Value]


class LoopNest:
    """What all parts of a kernel's code know of it.

    Args:
        layout: the program where it belongs, and the storages that are in memory; others stay in
            registers.
        kernel: the statements.
        vector_bytes: size of the host's vector registers.

    Attributes:
        fn: the function under construction.
        limits: joined axis -> the part of it that is run over.
    """

    fn: IRFunction
    limits: dict[int, Range]

    def __init__(self, layout: BufferAssignment, kernel: Kernel, vector_bytes: int) -> None:
        self.program = program = layout.program
        self.kernel = kernel
        self.stored = layout.stored | layout.rows
        self.vector_bytes = vector_bytes
        self.made = {s.target.storage: s for s in kernel.statements}
        self.partial = {
            s.target.storage
            for s in kernel.statements
            if isinstance(s, Pointwise) and not fills(program, s.target)
        }
        self.accesses: dict[object, Access] = {}
        self.words: list[WordSpec] = []
        self.phases = phases_of(kernel)
        self.reloaded = self.phases.crossing & self.stored  # by later phases
        self.rows = layout.rows & self.made.keys()
        self.lanes = lanes_of(program, kernel, vector_bytes) if kernel.shape else 0
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
            and at_hand(view, self.kernel)
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

    def _joined(self) -> list[list[int]]:
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

    def _begin(self, groups: list[list[int]]) -> None:
        """Load the words; set `sizes`, `reduced` and the accesses' steps along joined axes."""
        fn, shape = self.fn, self.kernel.shape
        axes = self.kernel.axes or frozenset()
        self.groups = groups
        self.reduced = [g[0] in axes for g in self.groups]
        self.sizes = []
        self.numbers = []
        for group in self.groups:
            number = 1
            for a in group:
                number *= shape[a]
            self.numbers.append(number)
            self.sizes.append(self._word(NumberWord(number)))
        for access in self.accesses.values():
            if access.storage in self.rows:
                length = math.prod(shape[a] for a in axes)
                access.pointer = room(fn, length * access.dtype.size)
            elif access.storage is not None:
                word = BufferWord(access.storage, access.offset * access.dtype.size)
                access.pointer = load_pointer(fn, self._word_address(word))
            access.steps = [self._step(access.strides[g[-1]]) for g in self.groups]
        self.numbers_of: dict[Size, Value] = {}
        self.steps_of: dict[IndirectLoad, list[tuple[Value, Value]]] = {}
        for statement in self.kernel.statements:
            for operand in statement.operands:
                self._load_numbers(operand)

    def _word(self, spec: WordSpec) -> Value:
        return load(self.fn, self._word_address(spec), int64, 0)

    def _word_address(self, spec: WordSpec) -> str:
        self.words.append(spec)
        place = self.fn.number(len(self.words) - 1)
        return address_at(self.fn, self.fn.arguments[0], place, 8)

    def _load_numbers(self, operand: Operand) -> None:
        """Load the words of an operand that are no memory."""
        if isinstance(operand, Size) and operand not in self.numbers_of:
            number = self._word(NumberWord(operand.value))
            self.numbers_of[operand] = convert(self.fn, number, operand.dtype)
        elif isinstance(operand, IndirectLoad) and operand not in self.steps_of:
            pairs = zip(operand.strides, operand.limits, strict=True)
            self.steps_of[operand] = [(self._step(s), self._word(NumberWord(n))) for s, n in pairs]
            for index in operand.indices:
                self._load_numbers(index)

    def _step(self, stride: int) -> Value:
        if stride in (0, 1):
            return self.fn.number(stride)
        return self._word(NumberWord(stride))

    def _loops(self) -> list[int]:
        """The kept axes that are looped over one element at a time."""
        last = len(self.groups) - 1
        return [a for a in range(last + 1) if not self.reduced[a] and a != last]

    def range_of(self, axis: int) -> Range:
        """The part of a joined axis that is run over."""
        return self.limits.get(axis) or (self.fn.number(0), self.sizes[axis])

    def moved(self, offsets: Mapping[int, Value], axis: int, i: Value) -> dict[int, Value]:
        """The offsets at position `i` of an axis."""
        return {
            id(a): _plus(self.fn, offsets[id(a)], a.steps[axis], i) for a in self.accesses.values()
        }


def _plus(fn: IRFunction, offset: Value, step: Value, i: Value) -> Value:
    """offset + step * i."""
    if step.name == "0":
        return offset
    moved = i if step.name == "1" else i * step
    return moved if offset.name == "0" else offset + moved
