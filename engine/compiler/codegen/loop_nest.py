"""A kernel's nest of loops while it is written: its axes, its words, the places it touches."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from ...graph import int64
from ..ir.kernel import Kernel
from ..ir.program import IndirectLoad, Operand, Size
from ..schedule.buffer_assignment import BufferAssignment
from ..schedule.kernel_accesses import KernelAccesses
from ..schedule.unrolled_rows import lanes_of
from .arguments import BufferWord, NumberWord, WordSpec
from .conversions import convert
from .function import IRFunction, Value
from .memory import address_at, load, load_pointer, room

Range: TypeAlias = tuple[Value, Value]


class LoopNest(KernelAccesses):
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
        super().__init__(layout, kernel)
        self.vector_bytes = vector_bytes
        self.words: list[WordSpec] = []
        self.lanes = lanes_of(layout.program, kernel, vector_bytes) if kernel.shape else 0

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
