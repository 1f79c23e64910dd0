"""The values of operands at a position of the loops: one element, or a vector of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ...graph import bool_, int32, int64
from ..ir.program import IndirectLoad, Iota, Literal, Operand, Pointwise, Size, View
from ..schedule.kernel_accesses import Access
from .conversions import convert
from .function import Value
from .loop_nest import LoopNest
from .memory import address_at, gather, load, load_strided, store, store_strided


class RowValues(Protocol):
    """What is known of the row that a position belongs to.

    Attributes:
        w: the loops.
        rows: the values that there is one of for the row: scalars, or vectors of columns.
        fixed: what was loaded once for the row.
    """

    w: LoopNest
    rows: dict[int, Value]
    fixed: dict[object, Value]

    def value(self, spot: LoopPosition, s: Pointwise, env: dict[int, Value]) -> Value:
        """What a map gives at a position; `env` has what is known there."""
        ...


class LoopPosition:
    """A position in the loops: one element (`lanes` 0), or a vector of them along the last axis."""

    def __init__(
        self,
        row: RowValues,
        offsets: Mapping[int, Value],
        start: Value | None,
        mask: Value | None,
        lanes: int,
        phase: int | None = None,
    ) -> None:
        self.row = row
        self.fn = row.w.fn
        self.offsets = offsets
        self.start = start
        self.mask = mask
        self.lanes = lanes
        self.phase = phase
        self.loaded: dict[object, Value] = {}

    def place(self) -> Value:
        """The positions along the last axis, as int32."""
        assert self.start is not None
        start = self.fn.splat(convert(self.fn, self.start, int32), self.lanes)
        return start + self.fn.lane_numbers(int32, self.lanes)

    # Reading

    def prepare(self, operand: Operand) -> None:
        """Load it before the loop if it stays the same along the last axis."""
        if isinstance(operand, IndirectLoad):
            for index in operand.indices:
                self.prepare(index)
        elif isinstance(operand, View) and not self.row.w.is_here(operand):
            access = self.row.w.accesses[operand]
            if not access.moves:
                self.row.fixed[self._key(operand, access)] = self._fixed(operand, access)

    def operand(self, operand: Operand, env: dict[int, Value], *, rows: bool = False) -> Value:
        """The value of an operand here; `rows` for statements on rows."""
        fn, row = self.fn, self.row
        if isinstance(operand, Literal):
            return fn.constant(operand.value, Value(fn, "poison", operand.dtype, self.lanes))
        if isinstance(operand, Size):
            return fn.splat(row.w.numbers_of[operand], self.lanes)
        if isinstance(operand, IndirectLoad):
            return self._gathered(operand, env, rows)
        if isinstance(operand, View) and row.w.is_here(operand):
            return self._made(operand, env)
        return fn.splat(self._load(operand), self.lanes)

    def _made(self, view: View, env: dict[int, Value]) -> Value:
        """A value of the kernel's own."""
        storage, row = view.storage, self.row
        if storage in self.row.w.kernel.rows:
            return self.fn.splat(row.rows[storage], self.lanes)
        s = row.w.made[storage]
        assert isinstance(s, Pointwise)
        if id(s) not in env and storage in row.w.reloaded and not self._is_now(s):
            return self._load(row.w.program.whole(storage))
        return row.value(self, s, env)

    def _is_now(self, s: Pointwise) -> bool:
        return self.phase is None or self.row.w.phases.of[id(s)] == self.phase

    def _load(self, operand: View | Iota) -> Value:
        access = self.row.w.accesses[operand]
        if isinstance(operand, Iota):
            return self._count(operand, access)
        if self.start is None or not access.moves:
            return self._fixed(operand, access)
        found = self.loaded.get(operand)
        if found is None:
            found = self.loaded[operand] = self._vector(access, self.offsets[id(access)], self.mask)
        return found

    def _key(self, operand: View, access: Access) -> tuple[View, str]:
        return operand, self.offsets[id(access)].name

    def _fixed(self, operand: View, access: Access) -> Value:
        """One element for all lanes: loaded before the loop, or here."""
        key = self._key(operand, access)
        found = self.row.fixed.get(key) or self.loaded.get(key)
        if found is None:
            place = address_at(self.fn, access.pointer, self.offsets[id(access)], access.dtype.size)
            found = self.loaded[key] = load(self.fn, place, access.dtype, 0)
        return found

    def _vector(self, access: Access, offset: Value, mask: Value | None) -> Value:
        fn, step = self.fn, access.steps[-1]
        assert self.start is not None
        base = address_at(fn, access.pointer, offset, access.dtype.size)
        if step.name == "1":
            return load(
                fn,
                address_at(fn, base, self.start, access.dtype.size),
                access.dtype,
                self.lanes,
                mask,
            )
        stride = step * access.dtype.size
        place = address_at(fn, base, self.start * stride, 1)
        return load_strided(fn, place, stride, access.dtype, self.lanes, mask)

    def _count(self, operand: Iota, access: Access) -> Value:
        fn = self.fn
        value = self.offsets[id(access)] + operand.offset
        step = access.steps[-1] if access.steps else fn.number(0)
        if self.start is None or step.name == "0":
            return convert(fn, value, operand.dtype)
        first = value + self.start * step
        spread = fn.splat(first, self.lanes)
        lanes = fn.lane_numbers(int64, self.lanes)
        steps = lanes if step.name == "1" else lanes * fn.splat(step, self.lanes)
        return convert(fn, spread + steps, operand.dtype)

    def _gathered(self, operand: IndirectLoad, env: dict[int, Value], rows: bool) -> Value:
        fn = self.fn
        access = self.row.w.accesses[operand.view]
        if self.start is not None and access.moves and self._stays(operand):
            return self._gathered_row(operand, access)
        valid: Value | None = None
        distance: Value | None = None
        steps = self.row.w.steps_of[operand]
        for index, (stride, limit) in zip(operand.indices, steps, strict=True):
            i = convert(fn, self.operand(index, env, rows=rows), int64)
            inside = (i >= 0) & (i < fn.splat(limit, i.lanes))
            valid = inside if valid is None else valid & inside
            moved = i * fn.splat(stride, i.lanes)
            distance = moved if distance is None else distance + moved
        assert valid is not None
        assert distance is not None
        size = access.dtype.size
        base = address_at(fn, access.pointer, self.offsets[id(access)], size)
        if not self.lanes:
            safe = fn.select(valid, distance, fn.number(0))
            found = load(fn, address_at(fn, base, safe, size), access.dtype, 0)
            return fn.select(valid, found, fn.constant(0, found))
        distance, valid = fn.splat(distance, self.lanes), fn.splat(valid, self.lanes)
        step = access.steps[-1] if access.steps else fn.number(0)
        if self.start is not None and step.name != "0":
            along = fn.splat(self.start * step, self.lanes) + fn.lane_numbers(
                int64, self.lanes
            ) * fn.splat(step, self.lanes)
            distance = distance + along
        if self.mask is not None:
            valid = valid & self.mask
        bytes_ = distance * size
        addresses = fn.named(f"getelementptr i8, ptr {base}, {bytes_}")
        return gather(fn, addresses, access.dtype, self.lanes, valid)

    def _stays(self, operand: IndirectLoad) -> bool:
        """Whether the indices are the same along the last axis."""
        w = self.row.w
        return all(
            isinstance(i, View) and not w.is_here(i) and not w.accesses[i].moves
            for i in operand.indices
        )

    def _gathered_row(self, operand: IndirectLoad, access: Access) -> Value:
        """Elements side by side, at a place that the indices give for all of them."""
        fn = self.fn
        valid, distance = Value(fn, "true", bool_, 0), fn.number(0)
        for index, (stride, limit) in zip(
            operand.indices, self.row.w.steps_of[operand], strict=True
        ):
            assert isinstance(index, View)
            i = convert(fn, self._fixed(index, self.row.w.accesses[index]), int64)
            valid = valid & (i >= 0) & (i < limit)
            distance = distance + i * stride
        place = self.offsets[id(access)] + fn.select(valid, distance, fn.number(0))
        found = self._vector(access, place, self.mask)
        # Where there is no such place, what was read is that of the first one.
        return fn.select(valid, found, fn.splat(fn.constant(0, _scalar(found)), self.lanes))

    # Writing

    def store(self, access: Access, value: Value) -> None:
        """Write a value at this position."""
        fn = self.fn
        size = access.dtype.size
        base = address_at(fn, access.pointer, self.offsets[id(access)], size)
        if self.start is None:
            store(fn, value, base)
            return
        step = access.steps[-1]
        if step.name == "1":
            store(fn, value, address_at(fn, base, self.start, size), self.mask)
            return
        stride = step * size
        store_strided(fn, value, address_at(fn, base, self.start * stride, 1), stride, self.mask)


def _scalar(x: Value) -> Value:
    return Value(x.fn, "poison", x.dtype, 0)
