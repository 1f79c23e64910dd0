"""The code inside of the loops of a kernel over its kept axes: a row, or a column block."""

from __future__ import annotations

from collections.abc import Sequence

from ...graph import int32
from ..ir.program import Pointwise, Reduce, View
from ..ir.sizes import is_known
from ..schedule.kernel_accesses import Access
from ..schedule.unrolled_rows import is_short
from ..target import host
from .control import fold, loop, replaced, when
from .conversions import convert
from .function import Value
from .loop_nest import LoopNest
from .memory import address_at, first_lanes, prefetch
from .operands import LoopPosition
from .reductions import Combine
from .scalars import write

# Vectors of columns that are reduced side by side, and of a row that are summed apart.
WIDE = 4
PAGE = 4096  # bytes
# Phases with more statements than that are not unrolled.
_LARGE = 8


class Row:
    """The code inside of the loops over kept axes."""

    def __init__(self, nest: LoopNest, offsets: dict[int, Value]) -> None:
        self.w = nest
        self.fn = nest.fn
        self.kernel = nest.kernel
        self.offsets = offsets
        self.rows: dict[int, Value] = {}  # row values: scalars, or vectors of columns
        self.fixed: dict[object, Value] = {}  # loaded once for the row

    def scalar(self) -> None:
        """A kernel of one element."""
        self._elements(LoopPosition(self, self.offsets, None, None, 0), self.kernel.statements, {})

    def write(self) -> None:
        last = len(self.w.groups) - 1
        if not self.w.reduced[last]:
            self._columns(last)
        else:
            self._along()

    # The innermost axis is kept

    def _columns(self, last: int) -> None:
        fn, lanes = self.fn, self.w.lanes
        start, stop = self.w.range_of(last)
        self._prepare()
        wide = WIDE if any(self.w.reduced) else 1
        count = stop - start
        many = start + fn.binary("sdiv", count, lanes * wide) * (lanes * wide)
        loop(fn, start, many, lanes * wide, lambda i: self._column_block(i, wide, None))
        if wide > 1:
            whole = start + fn.binary("and", count, -lanes)
            loop(fn, many, whole, lanes, lambda i: self._column_block(i, 1, None))
            many = whole
        rest = stop - many
        when(fn, rest > 0, lambda: self._column_block(many, 1, first_lanes(fn, rest, lanes)))

    def _column_block(self, i: Value, wide: int, mask: Value | None) -> None:
        """`wide` vectors of columns from column `i` on, all the way down the reduced axes."""
        fn, lanes = self.fn, self.w.lanes
        starts = [i if u == 0 else i + u * lanes for u in range(wide)]
        reduces = [s for s in self.kernel.statements if isinstance(s, Reduce)]
        full = [s for s in self.kernel.statements if not self._is_row(s)]
        if not self.kernel.axes:
            for start in starts:
                self._elements(LoopPosition(self, self.offsets, start, mask, lanes), full, {})
            return
        combines = [self._combine(s) for s in reduces]
        carried = [x for _ in starts for c in combines for x in c.neutral(fn, lanes)]
        axes = [a for a, r in enumerate(self.w.reduced) if r]

        def deeper(
            level: int, offsets: dict[int, Value], places: list[Value], values: list[Value]
        ) -> list[Value]:
            if level == len(axes):
                found = []
                at = 0
                for start in starts:
                    spot = LoopPosition(self, offsets, start, mask, lanes)
                    new = self._elements(spot, full, {})
                    for s, c in zip(reduces, combines, strict=True):
                        width = 1 + c.is_place
                        given = [new[id(s)]]
                        if c.is_place:
                            given.append(fn.splat(self._place(places), lanes))
                        found.extend(c.step(fn, values[at : at + width], given))
                        at += width
                return found
            begin, end = self.w.range_of(axes[level])
            return fold(
                fn,
                begin,
                end,
                1,
                values,
                lambda j, now: deeper(
                    level + 1, self.w.moved(offsets, axes[level], j), [*places, j], now
                ),
            )

        values = deeper(0, self.offsets, [], carried)
        at = 0
        for start in starts:
            self.rows = {}
            spot = LoopPosition(self, self.offsets, start, mask, lanes)
            for s, c in zip(reduces, combines, strict=True):
                width = 1 + c.is_place
                self.rows[s.target.storage] = values[at + width - 1]
                at += width
                self._store(spot, s, values[at - 1])
            self._row_statements(spot, None)

    def _place(self, places: Sequence[Value]) -> Value:
        """The position along the (one) reduced axis, as int32."""
        return convert(self.fn, places[-1], int32)

    # The innermost axis is reduced

    def _along(self) -> None:
        fn = self.fn
        self._prepare()
        here = LoopPosition(self, self.offsets, None, None, 0)
        blocks = self._short_row()
        self._row_statements(here, 0)
        for phase in range(self.w.phases.count):
            full = [
                s
                for s in self.kernel.statements
                if not self._is_row(s) and self.w.phases.of[id(s)] == phase
            ]
            if not full:
                continue
            reduces = [s for s in full if isinstance(s, Reduce)]
            combines = [self._combine(s) for s in reduces]
            if blocks:
                values = self._written_out(phase, full, reduces, combines, blocks)
            else:
                values = self._looped(phase, full, reduces, combines)
            at = 0
            for s, c in zip(reduces, combines, strict=True):
                n = 1 + c.is_place
                found = c.across(fn, values[at : at + n])
                at += n
                self.rows[s.target.storage] = found[-1]
                self._store(here, s, found[-1])
            self._row_statements(here, phase + 1)

    def _short_row(self) -> list[tuple[LoopPosition, dict[int, Value]]]:
        """The vectors of a row whose length is known and small, and what is known of each."""
        w, fn, lanes = self.w, self.fn, self.w.lanes
        last = len(w.groups) - 1
        if sum(w.reduced) > 1 or last in w.limits:
            return []
        if not is_short(w.numbers[last], lanes, len(self.kernel.statements)):
            return []
        found: list[tuple[LoopPosition, dict[int, Value]]] = []
        for start in range(0, w.numbers[last], lanes):
            rest = w.numbers[last] - start
            mask = None if rest >= lanes else first_lanes(fn, fn.number(rest), lanes)
            found.append((LoopPosition(self, self.offsets, fn.number(start), mask, lanes), {}))
        return found

    def _written_out(
        self,
        phase: int,
        full: Sequence[Pointwise | Reduce],
        reduces: Sequence[Reduce],
        combines: Sequence[Combine],
        blocks: Sequence[tuple[LoopPosition, dict[int, Value]]],
    ) -> list[Value]:
        """One phase of a short row: what a vector has been found to be, later phases know too."""
        parts = []
        for spot, known in blocks:
            spot.phase = phase
            new = self._elements(spot, full, known)
            parts.append(self._given(spot, new, reduces, combines))
        while len(parts) > 1:  # as a tree
            pairs = zip(parts[::2], parts[1::2], strict=False)
            joined = [self._combined(combines, a, b) for a, b in pairs]
            parts = [*joined, *parts[len(joined) * 2 :]]
        return parts[0]

    def _given(
        self,
        spot: LoopPosition,
        new: dict[int, Value],
        reduces: Sequence[Reduce],
        combines: Sequence[Combine],
    ) -> list[Value]:
        """What a vector adds to each reduction; lanes outside of the mask add nothing."""
        found: list[Value] = []
        for s, c in zip(reduces, combines, strict=True):
            given = [new[id(s)]]
            if c.is_place:
                given.append(spot.place())
            if spot.mask is not None:
                neutral = c.neutral(self.fn, self.w.lanes)
                given = [
                    self.fn.select(spot.mask, g, n) for g, n in zip(given, neutral, strict=True)
                ]
            found.extend(given)
        return found

    def _combined(
        self, combines: Sequence[Combine], carried: Sequence[Value], new: Sequence[Value]
    ) -> list[Value]:
        """Each reduction's step, over the values of all of them."""
        found: list[Value] = []
        for c in combines:
            at = len(found)
            end = at + 1 + c.is_place
            found.extend(c.step(self.fn, carried[at:end], new[at:end]))
        return found

    def _looped(
        self,
        phase: int,
        full: Sequence[Pointwise | Reduce],
        reduces: Sequence[Reduce],
        combines: Sequence[Combine],
    ) -> list[Value]:
        """One phase of a row of any length, in loops."""
        fn, lanes = self.fn, self.w.lanes
        wide = WIDE if len(full) <= _LARGE and reduces else 1
        carried = [x for _ in range(wide) for c in combines for x in c.neutral(fn, lanes)]
        values = self._passes(phase, full, reduces, combines, wide, carried)
        width = len(values) // wide
        found = values[:width]
        for u in range(1, wide):
            found = self._combined(combines, found, values[u * width : (u + 1) * width])
        return found

    def _passes(
        self,
        phase: int,
        full: Sequence[Pointwise | Reduce],
        reduces: Sequence[Reduce],
        combines: Sequence[Combine],
        wide: int,
        carried: list[Value],
    ) -> list[Value]:
        """One phase: run over the reduced axes, carrying what is combined."""
        fn, lanes = self.fn, self.w.lanes
        axes = [a for a, r in enumerate(self.w.reduced) if r]
        last = axes[-1]
        width = len(carried) // wide
        ahead = self._of_next_row() if phase == 1 else []

        def block(
            offsets: dict[int, Value], i: Value, values: list[Value], mask: Value | None, u: int
        ) -> list[Value]:
            spot = LoopPosition(self, offsets, i, mask, lanes, phase)
            for access, place in ahead:
                if u * lanes * access.dtype.size % host.LINE == 0:
                    prefetch(fn, address_at(fn, place, i, access.dtype.size))
            given = self._given(spot, self._elements(spot, full, {}), reduces, combines)
            found = self._combined(combines, values[u * width : (u + 1) * width], given)
            return [*values[: u * width], *found, *values[(u + 1) * width :]]

        def innermost(offsets: dict[int, Value], values: list[Value]) -> list[Value]:
            start, stop = self.w.range_of(last)
            count = stop - start

            def several(i: Value, now: list[Value]) -> list[Value]:
                for u in range(wide):
                    now = block(offsets, i + u * lanes if u else i, now, None, u)
                return now

            def single(i: Value, now: list[Value]) -> list[Value]:
                return block(offsets, i, now, None, 0)

            at = start
            if wide > 1:
                at = start + fn.binary("sdiv", count, lanes * wide) * (lanes * wide)
                values = fold(fn, start, at, lanes * wide, values, several)
            whole = start + fn.binary("and", count, -lanes)
            values = fold(fn, at, whole, lanes, values, single)
            rest = stop - whole
            return replaced(
                fn,
                rest > 0,
                values,
                lambda: block(offsets, whole, values, first_lanes(fn, rest, lanes), 0),
            )

        def deeper(level: int, offsets: dict[int, Value], values: list[Value]) -> list[Value]:
            if level == len(axes) - 1:
                return innermost(offsets, values)
            begin, end = self.w.range_of(axes[level])
            return fold(
                fn,
                begin,
                end,
                1,
                values,
                lambda j, now: deeper(level + 1, self.w.moved(offsets, axes[level], j), now),
            )

        return deeper(0, self.offsets, carried)

    def _of_next_row(self) -> list[tuple[Access, str]]:
        """What the first phase reads, and where in the next row: to be fetched while there is time.

        The processor itself foresees what is read of a row, but only up to the end of a page. Where
        rows are longer, fetching the next one would drive this one out of the L1 cache.
        """
        w, fn = self.w, self.fn
        last = len(w.groups) - 1
        rows = [a for a, is_reduced in enumerate(w.reduced) if not is_reduced]
        length = w.numbers[last]
        if not rows or sum(w.reduced) > 1 or not is_known(length):
            return []
        found: dict[Access, str] = {}
        first = [s for s in self.kernel.statements if not w.phases.of[id(s)]]
        for view in {v: None for s in first if not self._is_row(s) for v in _views(s)}:
            if w.is_here(view):
                continue
            access = w.accesses[view]
            step = access.steps[rows[-1]]
            is_near = length * access.dtype.size <= PAGE
            if access.steps[-1].name == "1" and step.name != "0" and is_near:
                place = self.offsets[id(access)] + step
                found[access] = address_at(fn, access.pointer, place, access.dtype.size)
        return list(found.items())

    def _prepare(self) -> None:
        """Load before the loops what stays the same in them."""
        spot = LoopPosition(self, self.offsets, None, None, 0)
        for s in self.kernel.statements:
            if not self._is_row(s):
                for operand in s.operands:
                    spot.prepare(operand)

    # Both

    def _is_row(self, s: Pointwise | Reduce) -> bool:
        return isinstance(s, Pointwise) and s.target.storage in self.kernel.rows

    def _combine(self, s: Reduce) -> Combine:
        return Combine(s.kind, self.w.program.dtype(s.operand))

    def _row_statements(self, spot: LoopPosition, ready: int | None) -> None:
        """The statements on rows that can run after `ready` phases; all of them for None."""
        for s in self.kernel.statements:
            if not self._is_row(s) or (ready is not None and self.w.phases.of[id(s)] != ready):
                continue
            assert isinstance(s, Pointwise)
            values = [spot.operand(x, {}, rows=True) for x in s.operands]
            found = self.fn.splat(write(self.fn, s.expression, values), spot.lanes)
            self.rows[s.target.storage] = found
            self._store(spot, s, found)

    def _elements(
        self, spot: LoopPosition, statements: Sequence[Pointwise | Reduce], env: dict[int, Value]
    ) -> dict[int, Value]:
        """Compute full statements at a spot; gives the operand of each reduction by its id."""
        found: dict[int, Value] = {}
        made: list[tuple[Pointwise, Value]] = []
        for s in statements:
            if isinstance(s, Reduce):
                found[id(s)] = self.fn.splat(spot.operand(s.operand, env), spot.lanes)
            else:
                made.append((s, self.value(spot, s, env)))
        for s, value in made:  # a variable is written over once everything has been read
            self._store(spot, s, value)
        return found

    def value(self, spot: LoopPosition, s: Pointwise, env: dict[int, Value]) -> Value:
        key = id(s)
        value = env.get(key)
        if value is None:
            values = [spot.operand(x, env) for x in s.operands]
            value = env[key] = self.fn.splat(write(self.fn, s.expression, values), spot.lanes)
        return value

    def _store(self, spot: LoopPosition, s: Pointwise | Reduce, value: Value) -> None:
        if s.target.storage in self.w.stored:
            spot.store(self.w.target_access(s), self.fn.splat(value, spot.lanes))


def _views(s: Pointwise | Reduce) -> list[View]:
    """The memory that a statement goes through as its elements come."""
    return [x for x in s.operands if isinstance(x, View)]
