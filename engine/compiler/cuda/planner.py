"""From a program whose memory is laid out, for real sizes, to a `CudaProgram`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ...cuda_program import (
    Buffer,
    CudaProgram,
    Launch,
    LibraryCall,
    Table,
)
from ...graph import Array, TensorSpec
from ..ir.kernel import Kernel
from ..ir.not_lowered import NotLoweredError
from ..schedule.buffer_assignment import BufferAssignment, arrange, in_order, live_ranges
from .calls import Operand, Scratch, plan_call
from .launches import LoopLaunch, LoopPlanner
from .loops import LoopCode
from .source import ArgumentSpec, Failed, Pointer, kernel

_ALIGNMENT = 256  # bytes, of what is in the arena
_OF_ARRAYS = 16  # of all other memory
_FLAG = -1  # the piece of the arena that says that a check has failed

_RESET = kernel(["@(int* failed) {", "*failed = 0;", "}"], 1)
_CHECK = kernel(
    ["@(const bool* __restrict__ fails, int* failed) {", "if (*fails) *failed = 1;", "}"], 1
)


class Externals(NamedTuple):
    """Which array of a call each storage is.

    Attributes:
        inputs: storage -> its number among the inputs.
        variables: the same among the variables.
        outputs: the same among the outputs.
    """

    inputs: Mapping[int, int]
    variables: Mapping[int, int]
    outputs: Mapping[int, int]


class _Range(NamedTuple):
    """A piece of memory."""

    base: str
    index_of_base: int
    begin: int
    end: int

    def meets(self, other: _Range) -> bool:
        """Whether both have a byte in common."""
        is_one = self[:2] == other[:2]
        return is_one and self.begin < other.end and other.begin < self.end


class _Batch(NamedTuple):
    """Kernels of loops that run at once, and the memory that they read and write."""

    code: LoopCode
    members: list[tuple[Kernel, LoopLaunch]]
    reads: list[_Range]
    writes: list[_Range]

    def meets(self, reads: Sequence[_Range], writes: Sequence[_Range]) -> bool:
        """Whether what reads and writes elsewhere must wait for these, or these for it."""
        return any(a.meets(b) for a in self.writes for b in (*reads, *writes)) or any(
            a.meets(b) for a in self.reads for b in writes
        )


class CudaPlanner:
    """Plans a program.

    Args:
        layout: its kernels, and where its values are.
        real: gives the real size of a symbolic size.
        externals: where what is not of its own is.
    """

    def __init__(
        self, layout: BufferAssignment, real: Callable[[int], int], externals: Externals
    ) -> None:
        self._layout = layout
        self._program = layout.program
        self._real = real
        self._externals = externals
        self._constants: dict[int, int] = {}  # storage -> its number among the constants
        self._iterations: dict[int, int] = {}  # window -> the iteration that is planned
        self._arena: dict[object, int] = {}
        self._scratch = Scratch(0)
        kernels = list(in_order(layout.kernels))
        self._has_checks = any(k.check is not None for k in kernels)
        self._loops = LoopPlanner(layout, real, self._is_aligned, self._is_guarded)
        self._planned: dict[int, LoopLaunch] = {}  # by id() of a kernel

    def plan(self) -> CudaProgram:
        """The program."""
        arena_bytes = self._place_arena()
        self._scratch = Scratch(arena_bytes)
        launches: list[Launch | LibraryCall] = []
        if self._has_checks:
            launches.append(Launch(_RESET, (1, 1, 1), (1, 1, 1), (self._flag(),), "checks"))
        launches.extend(self._launches(self._layout.kernels))
        program, externals = self._program, self._externals
        written = {externals.variables[n] for n in program.updates}
        return CudaProgram(
            tuple(launches),
            arena_bytes + self._scratch.num_bytes,
            tuple(self._value(n) for n in self._constants),
            self._specs(externals.inputs),
            self._specs(externals.variables),
            tuple(
                TensorSpec(tuple(map(self._real, view.shape)), program.dtype(view))
                for view in program.outputs
            ),
            frozenset(written),
            self._flag() if self._has_checks else None,
        )

    def _value(self, number: int) -> Array:
        value = self._program.storages[number].value
        assert value is not None
        return value

    def _specs(self, numbers: Mapping[int, int]) -> tuple[TensorSpec, ...]:
        storages = self._program.storages
        return tuple(
            TensorSpec(tuple(map(self._real, storages[n].shape)), storages[n].dtype)
            for n, _ in sorted(numbers.items(), key=lambda item: item[1])
        )

    # Memory

    def _place_arena(self) -> int:
        ranges: dict[object, tuple[int, int]] = dict(live_ranges(self._layout).items())
        sizes: dict[object, int] = {n: self._num_bytes(n) for n in live_ranges(self._layout)}
        if self._has_checks:
            ranges[_FLAG] = (0, len(list(in_order(self._layout.kernels))))
            sizes[_FLAG] = 4
        for piece, size in sizes.items():
            sizes[piece] = -(-max(size, 1) // _ALIGNMENT) * _ALIGNMENT
        self._arena, total = arrange(ranges, sizes)
        return total

    def _num_bytes(self, number: int) -> int:
        storage = self._program.storages[number]
        return storage.dtype.size * math.prod(map(self._real, storage.shape))

    def _flag(self) -> Buffer:
        return Buffer("arena", 0, self._arena[_FLAG])

    def buffer(self, storage: int, offset: int) -> Buffer:
        """Where an element of a storage is.

        Args:
            storage: its number.
            offset: of the element, a real number.
        """
        number = self._layout.place[storage]
        found = self._program.storages[number]
        size = found.dtype.size
        if found.window is not None:
            base, first, step = found.window
            moved = self._real(first) + self._iterations[number] * self._real(step)
            return self.buffer(base, moved + offset)
        if found.role == "constant":
            place = self._constants.setdefault(number, len(self._constants))
            return Buffer("constant", place, offset * size)
        externals = self._externals
        if number in externals.inputs:
            return Buffer("input", externals.inputs[number], offset * size)
        if number in externals.variables:
            return Buffer("variable", externals.variables[number], offset * size)
        if number in externals.outputs:
            return Buffer("output", externals.outputs[number], offset * size)
        return Buffer("arena", 0, self._arena[number] + offset * size)

    def _is_aligned(self, storage: int, offset: int, num_bytes: int) -> bool:
        number = self._layout.place[storage]
        found = self._program.storages[number]
        size = found.dtype.size
        while found.window is not None:
            base, first, step = found.window
            if self._real(step) * size % num_bytes:
                return False
            offset += self._real(first)
            number = self._layout.place[base]
            found = self._program.storages[number]
        return offset * size % num_bytes == 0 and num_bytes <= _OF_ARRAYS

    def _is_guarded(self, made: Kernel) -> bool:
        """Whether a kernel writes to a variable, in a program that may be stopped before that."""
        place, storages = self._layout.place, self._program.storages
        return self._has_checks and any(storages[place[n]].role == "variable" for n in made.writes)

    # Launches

    def _launches(self, kernels: Sequence[Kernel]) -> Iterator[Launch | LibraryCall]:
        waiting: list[Kernel] = []  # kernels of loops in a row
        for made in kernels:
            if made.loop is None and made.check is None and made.call is None:
                waiting.append(made)
                continue
            yield from self._side_by_side(waiting)
            waiting = []
            if made.loop is not None:
                yield from self._repeated(made)
            elif made.check is not None:
                view = made.check.view
                arguments = (self.buffer(view.storage, self._real(view.offset)), self._flag())
                yield Launch(_CHECK, (1, 1, 1), (1, 1, 1), arguments, self._label(made))
            else:
                yield from self._called(made)
        yield from self._side_by_side(waiting)

    def _repeated(self, made: Kernel) -> Iterator[Launch | LibraryCall]:
        """The launches of all iterations: only the windows are elsewhere in each."""
        loop = made.loop
        assert loop is not None
        if loop.count is None or loop.stop is not None:
            raise NotLoweredError("a loop whose end depends on data")
        for iteration in range(self._real(loop.count)):
            self._iterations.update(dict.fromkeys(loop.windows, iteration))
            yield from self._launches(made.body)

    def _side_by_side(self, kernels: Sequence[Kernel]) -> Iterator[Launch]:
        """Kernels of loops in a row: those with the same code that need not wait are one launch."""
        batches: list[_Batch] = []
        for made in kernels:
            planned = self._planned.get(id(made))
            if planned is None:
                planned = self._planned[id(made)] = self._loops.plan(made)
            reads, writes = self._ranges({v.storage for v in made.views}), self._ranges(made.writes)
            joined = None
            for batch in reversed(batches):
                if planned.code.many is not None and batch.code.many == planned.code.many:
                    joined = batch
                if batch.meets(reads, writes):
                    break
            if joined is None or joined.meets(reads, writes):
                joined = _Batch(planned.code, [], [], [])
                batches.append(joined)
            joined.members.append((made, planned))
            joined.reads.extend(reads)
            joined.writes.extend(writes)
        for batch in batches:
            yield self._batch_launch(batch.members)

    def _ranges(self, storages: set[int]) -> list[_Range]:
        """The memory of storages, those in registers apart: windows as all of what they are in."""
        found = []
        for number in sorted({self._layout.place[n] for n in storages & self._layout.stored}):
            storage = self._program.storages[number]
            while storage.window is not None:
                number = self._layout.place[storage.window.base]
                storage = self._program.storages[number]
            base, index, offset = self.buffer(number, 0)
            found.append(_Range(base, index, offset, offset + self._num_bytes(number)))
        return found

    def _batch_launch(self, members: Sequence[tuple[Kernel, LoopLaunch]]) -> Launch:
        """One launch for kernels that have the same code."""
        (first, planned), *others = members
        label = "+".join(filter(None, (self._label(made) for made, _ in members)))
        given = [self._arguments(launch) for _, launch in members]
        code = planned.code
        if not others or code.many is None:
            return Launch(code.kernel, planned.grid, planned.block, given[0], self._label(first))
        words: list[Buffer | int] = []
        block = 0
        for (_, launch), arguments in zip(members, given, strict=True):
            words += [block, block + launch.grid[0], *arguments]
            block += launch.grid[0]
        table = Table(tuple(words))
        return Launch(code.many, (block, 1, 1), planned.block, (table, len(members)), label)

    def _arguments(self, planned: LoopLaunch) -> tuple[Buffer | int, ...]:
        return tuple(self._argument(x, planned) for x in planned.code.arguments)

    def _argument(self, spec: ArgumentSpec, planned: LoopLaunch) -> Buffer | int:
        if isinstance(spec, Pointer):
            return self.buffer(spec.storage, self._real(spec.offset))
        return self._flag() if isinstance(spec, Failed) else planned.numbers[spec]

    def _called(self, made: Kernel) -> Iterator[Launch | LibraryCall]:
        call = made.call
        assert call is not None
        operands = [
            Operand(
                self.buffer(view.storage, self._real(view.offset)),
                tuple(map(self._real, view.shape)),
                tuple(map(self._real, view.strides)),
                self._program.dtype(view),
            )
            for view in call.inputs
        ]
        outputs = [self._operand_of(n) for n in call.writes]
        guard = self._flag() if self._is_guarded(made) else None
        label = self._label(made)
        yield from plan_call(call, operands, outputs, self._real, guard, label, self._scratch)

    def _operand_of(self, number: int) -> Operand:
        view = self._program.whole(number)
        shape, strides = tuple(map(self._real, view.shape)), tuple(map(self._real, view.strides))
        return Operand(self.buffer(number, 0), shape, strides, self._program.dtype(view))

    def _label(self, made: Kernel) -> str:
        labels = self._program.labels
        names = dict.fromkeys(labels.get(id(s), "") for s in made.all_statements)
        return "+".join(n for n in names if n)
