"""Code for a kernel of loops: `void kernel(ptr words, i64 tid, i64 nth)`.

The loops run over the kept axes, then over the reduced ones; the innermost axis goes by vectors,
the last of them under a mask. If that axis is reduced, each row is run over once for each phase: a
statement that needs what a reduction gives belongs to the phase after it. If it is kept, several
vectors of columns are carried down the reduced axes side by side.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from ...graph import DType, int64
from ..ir.kernel import Kernel, at_hand, fills, strides_over
from ..ir.program import Gathered, Iota, Map, Operand, Reduce, Size, View, contiguous
from ..ir.sizes import is_known
from ..schedule.buffer_assignment import Layout
from ..schedule.phases import phases_of
from ..schedule.unrolled_rows import lanes_of
from ..target.code import Code, same
from .arguments import Access, BufferWord, Loops, ModeWord, NumberWord, PartWord, TurnWord, WordSpec
from .function import POINTER, Function, Module, Value
from .loop_body import PAGE, WIDE, Row
from .serpentine import turning

SYMBOL = "kernel"

_Range: TypeAlias = tuple[Value, Value]


class LoopWriter:
    """Writes one kernel.

    Args:
        layout: the program where it belongs, and the storages that are in memory; others stay in
            registers.
        kernel: the statements.
        vector_bytes: size of the host's vector registers.
    """

    def __init__(self, layout: Layout, kernel: Kernel, vector_bytes: int) -> None:
        self.program = program = layout.program
        self.kernel = kernel
        self.stored = layout.stored | layout.rows
        self.vector_bytes = vector_bytes
        self.made = {s.target.storage: s for s in kernel.statements}
        self.partial = {
            s.target.storage
            for s in kernel.statements
            if isinstance(s, Map) and not fills(program, s.target)
        }
        self.accesses: dict[object, Access] = {}
        self.words: list[WordSpec] = []
        self.phases = phases_of(kernel)
        self.reloaded = self.phases.crossing & self.stored  # by later phases
        self.rows = layout.rows & self.made.keys()
        self.lanes = lanes_of(program, kernel, vector_bytes) if kernel.shape else 0
        self.back: Value | None = None  # whether to begin at the end
        self._collect()

    # Before writing

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
        if isinstance(operand, Gathered):
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

    def target_access(self, statement: Map | Reduce) -> Access:
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

    # Writing

    def write(self) -> Loops:
        """The code, for threads that share the work."""
        module = Module(self.vector_bytes)
        self.fn = fn = Function(module, SYMBOL, [POINTER, "i64", "i64"])
        self._begin(self._joined())
        # No unit of work takes what another one makes: threads share them, too.
        if self._can_turn():
            place = self._word_address(TurnWord())
            self.back = fn.load(fn.load_pointer(place), int64, 0) != 0
        tid, nth = (Value(fn, fn.arguments[i], int64, 0) for i in (1, 2))
        outer_range, inner_range = self._shares(tid, nth)
        self._outermost(outer_range, inner_range)
        return self._finished(module)

    def write_epilogue(self) -> Loops:
        """The code of `void epilogue(ptr words, i64 row0, i64 rows, i64 column0, i64 columns)`."""
        module = Module(self.vector_bytes)
        self.fn = fn = Function(module, SYMBOL, [POINTER, "i64", "i64", "i64", "i64"])
        last = len(self.kernel.shape) - 1
        self._begin([list(range(last)), [last]])
        row, rows, column, columns = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
        self._outermost((row, row + rows), (column, column + columns))
        return self._finished(module)

    def _finished(self, module: Module) -> Loops:
        text = module.text()
        return Loops(Code(SYMBOL, self.vector_bytes, same, (text,)), tuple(self.words))

    def _word(self, spec: WordSpec) -> Value:
        return self.fn.load(self._word_address(spec), int64, 0)

    def _word_address(self, spec: WordSpec) -> str:
        self.words.append(spec)
        place = self.fn.number(len(self.words) - 1)
        return self.fn.offset(self.fn.arguments[0], place, 8)

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
                access.pointer = fn.room(length * access.dtype.size)
            elif access.storage is not None:
                word = BufferWord(access.storage, access.offset * access.dtype.size)
                access.pointer = fn.load_pointer(self._word_address(word))
            access.steps = [self._step(access.strides[g[-1]]) for g in self.groups]
        self.numbers_of: dict[Size, Value] = {}
        self.steps_of: dict[Gathered, list[tuple[Value, Value]]] = {}
        for statement in self.kernel.statements:
            for operand in statement.operands:
                self._load_numbers(operand)

    def _load_numbers(self, operand: Operand) -> None:
        """Load the words of an operand that are no memory."""
        if isinstance(operand, Size) and operand not in self.numbers_of:
            number = self._word(NumberWord(operand.value))
            self.numbers_of[operand] = self.fn.convert(number, operand.dtype)
        elif isinstance(operand, Gathered) and operand not in self.steps_of:
            pairs = zip(operand.strides, operand.limits, strict=True)
            self.steps_of[operand] = [(self._step(s), self._word(NumberWord(n))) for s, n in pairs]
            for index in operand.indices:
                self._load_numbers(index)

    def _step(self, stride: int) -> Value:
        if stride in (0, 1):
            return self.fn.number(stride)
        return self._word(NumberWord(stride))

    def _shares(self, tid: Value, nth: Value) -> tuple[_Range | None, _Range | None]:
        """What this thread does of the outermost kept axis, and of the innermost if it is kept."""
        fn, kernel = self.fn, self.kernel
        if not self.groups:
            return None, None
        zero = fn.number(0)
        last = len(self.groups) - 1
        inner = None if self.reduced[last] else (zero, self.sizes[last])
        if kernel.split is not None:
            parts = self._word(NumberWord(kernel.split[1]))
            return _share(fn, parts, 1, tid, nth), inner
        kept = [a for a in range(last + (inner is None)) if not self.reduced[a]]
        if not kept and inner is None:
            return None, None
        if not kept:
            return None, _share(fn, self.sizes[last], max(self.lanes, 1) * WIDE, tid, nth)
        first = kept[0]
        whole = (zero, self.sizes[first])
        if inner is None:
            return _share(fn, self.sizes[first], 1, tid, nth), None
        by_inner = self._word(ModeWord(self.numbers[first], self.numbers[last])) != 0
        outer_share = _share(fn, self.sizes[first], 1, tid, nth)
        inner_share = _share(fn, self.sizes[last], self.lanes * WIDE, tid, nth)

        def choose(a: _Range, b: _Range) -> _Range:
            return fn.select(by_inner, a[0], b[0]), fn.select(by_inner, a[1], b[1])

        return choose(whole, outer_share), choose(inner_share, (zero, self.sizes[last]))

    def _outermost(self, outer: _Range | None, inner: _Range | None) -> None:
        fn = self.fn
        zero = fn.number(0)
        offsets = {id(a): zero for a in self.accesses.values()}
        if not self.groups:
            Row(self, offsets).scalar()
            return
        self.limits: dict[int, _Range] = {}  # joined axis -> the part of it that is run over
        if inner is not None:
            self.limits[len(self.groups) - 1] = inner
        if self.kernel.split is None:
            kept = [a for a in self._loops() if not self.reduced[a]]
            if outer is not None and kept:
                self.limits[kept[0]] = outer
            self._kept(0, offsets)
            return
        assert outer is not None
        axis, parts = self.kernel.split
        group = next(i for i, g in enumerate(self.groups) if axis in g)
        size = self.kernel.shape[axis]
        inner_size = self.numbers[group] // size
        length = self._word(PartWord(size, parts, inner_size))
        targets = {
            id(self.target_access(s)): self._word(NumberWord(_row_size(s)))
            for s in self.kernel.statements
            if isinstance(s, Reduce)
        }

        def part(g: Value) -> None:
            begin = g * length
            end = begin + length
            total = self.sizes[group]
            stop = fn.select(end < total, end, total)
            self.limits[group] = (fn.select(begin < total, begin, total), stop)
            moved = {
                key: g * targets[key] if key in targets else offset
                for key, offset in offsets.items()
            }
            self._kept(0, moved)

        fn.loop(outer[0], outer[1], 1, part)

    def _can_turn(self) -> bool:
        """Whether it may pay to begin at the end.

        Rows are gone through from their beginning in any case: where several are in a page of
        memory, the processor does not foresee which lines come next.
        """
        if self.kernel.split is not None or not self.groups:
            return False
        if not self._loops():
            return not self.kernel.axes
        length = self.numbers[-1]
        size = max((a.dtype.size for a in self.accesses.values()), default=1)
        return is_known(length) and length * size >= PAGE

    def next_row(self, axis: int, step: Value) -> Value:
        """How far on, in elements, the row is that comes next along a kept axis."""
        if self.back is None or axis != self._loops()[0]:
            return step
        return self.fn.select(self.back, self.fn.number(0) - step, step)

    def _loops(self) -> list[int]:
        """The kept axes that are looped over one element at a time."""
        last = len(self.groups) - 1
        return [a for a in range(last + 1) if not self.reduced[a] and a != last]

    def range_of(self, axis: int) -> _Range:
        """The part of a joined axis that is run over."""
        return self.limits.get(axis) or (self.fn.number(0), self.sizes[axis])

    def moved(self, offsets: Mapping[int, Value], axis: int, i: Value) -> dict[int, Value]:
        """The offsets at position `i` of an axis."""
        return {
            id(a): _plus(self.fn, offsets[id(a)], a.steps[axis], i) for a in self.accesses.values()
        }

    def _kept(self, level: int, offsets: dict[int, Value]) -> None:
        loops = self._loops()
        if level == len(loops):
            Row(self, offsets).write()
            return
        start, stop = self.range_of(loops[level])

        def one(i: Value) -> None:
            self._kept(level + 1, self.moved(offsets, loops[level], i))

        if level == 0:
            turning(self.fn, self.back, start, stop, 1, one)
        else:
            self.fn.loop(start, stop, 1, one)


def _share(fn: Function, total: Value, unit: int, tid: Value, nth: Value) -> _Range:
    """What thread `tid` of `nth` does of `total`, in whole units."""
    units = fn.binary("sdiv", total + (unit - 1), unit) if unit > 1 else total
    low = fn.binary("sdiv", units * tid, nth) * unit
    high = fn.binary("sdiv", units * (tid + 1), nth) * unit
    return low, fn.select(high < total, high, total) if unit > 1 else high


def _plus(fn: Function, offset: Value, step: Value, i: Value) -> Value:
    """offset + step * i."""
    if step.name == "0":
        return offset
    moved = i if step.name == "1" else i * step
    return moved if offset.name == "0" else offset + moved


def _row_size(s: Reduce) -> int:
    """The elements of one part's result."""
    number = 1
    for n in s.target.shape[1:]:
        number *= n
    return number
