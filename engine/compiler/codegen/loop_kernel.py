"""Code for a kernel of loops: `void kernel(ptr words, i64 tid, i64 nth)`.

The loops run over the kept axes, then over the reduced ones; the innermost axis goes by vectors,
the last of them under a mask. If that axis is reduced, each row is run over once for each phase: a
statement that needs what a reduction gives belongs to the phase after it. If it is kept, several
vectors of columns are carried down the reduced axes side by side.
"""

from __future__ import annotations

from ...graph import int64
from ..ir.program import Reduce
from ..target.code import Code, same
from .arguments import Loops, ModeWord, NumberWord, PartWord
from .control import loop
from .function import POINTER, IRFunction, Module, Value
from .loop_body import WIDE, Row
from .loop_nest import LoopNest, Range

SYMBOL = "kernel"


class LoopWriter(LoopNest):
    """Writes one kernel."""

    def write(self) -> Loops:
        """The code, for threads that share the work."""
        module = Module(self.vector_bytes)
        self.fn = fn = IRFunction(module, SYMBOL, [POINTER, "i64", "i64"])
        self._begin(self.joined())
        tid, nth = (Value(fn, fn.arguments[i], int64, 0) for i in (1, 2))
        outer_range, inner_range = self._shares(tid, nth)
        self._outermost(outer_range, inner_range)
        return self._finished(module)

    def write_epilogue(self) -> Loops:
        """The code of `void epilogue(ptr words, i64 row0, i64 rows, i64 column0, i64 columns)`."""
        module = Module(self.vector_bytes)
        self.fn = fn = IRFunction(module, SYMBOL, [POINTER, "i64", "i64", "i64", "i64"])
        last = len(self.kernel.shape) - 1
        self._begin([list(range(last)), [last]])
        row, rows, column, columns = (Value(fn, a, int64, 0) for a in fn.arguments[1:])
        self._outermost((row, row + rows), (column, column + columns))
        return self._finished(module)

    def _finished(self, module: Module) -> Loops:
        text = module.text()
        return Loops(Code(SYMBOL, self.vector_bytes, same, (text,)), tuple(self.words))

    def _shares(self, tid: Value, nth: Value) -> tuple[Range | None, Range | None]:
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

        def choose(a: Range, b: Range) -> Range:
            return fn.select(by_inner, a[0], b[0]), fn.select(by_inner, a[1], b[1])

        return choose(whole, outer_share), choose(inner_share, (zero, self.sizes[last]))

    def _outermost(self, outer: Range | None, inner: Range | None) -> None:
        fn = self.fn
        zero = fn.number(0)
        offsets = {id(a): zero for a in self.accesses.values()}
        if not self.groups:
            Row(self, offsets).scalar()
            return
        self.limits = {}
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

        loop(fn, outer[0], outer[1], 1, part)

    def _kept(self, level: int, offsets: dict[int, Value]) -> None:
        loops = self._loops()
        if level == len(loops):
            Row(self, offsets).write()
            return
        start, stop = self.range_of(loops[level])

        def one(i: Value) -> None:
            self._kept(level + 1, self.moved(offsets, loops[level], i))

        loop(self.fn, start, stop, 1, one)


def _share(fn: IRFunction, total: Value, unit: int, tid: Value, nth: Value) -> Range:
    """What thread `tid` of `nth` does of `total`, in whole units."""
    units = fn.binary("sdiv", total + (unit - 1), unit) if unit > 1 else total
    low = fn.binary("sdiv", units * tid, nth) * unit
    high = fn.binary("sdiv", units * (tid + 1), nth) * unit
    return low, fn.select(high < total, high, total) if unit > 1 else high


def _row_size(s: Reduce) -> int:
    """The elements of one part's result."""
    number = 1
    for n in s.target.shape[1:]:
        number *= n
    return number
