"""Writing LLVM's text IR: functions, blocks, loops.

A `Function` collects instructions in their final form: loops are bottom-tested, arithmetic is on
explicit vectors, and nothing is left to LLVM's middle end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..graph import (
    DType,
    bool_,
    float32,
    float64,
    int32,
    int64,
    uint32,
    uint64,
)
from .halves import in_memory, rounded, widened
from .values import HALVES as HALVES
from .values import NotLoweredError as NotLoweredError
from .values import Value as Value
from .values import conversion, element_bytes, literal, vector_type
from .values import scalar_type as scalar_type

_SUFFIX = {"float": "f32", "double": "f64", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}
POINTER = "ptr"


class Module:
    """Functions that are compiled together, and what they declare.

    Args:
        vector_bytes: the size of the vector registers that they are for; 0: any processor.
    """

    def __init__(self, vector_bytes: int = 0) -> None:
        self.vector_bytes = vector_bytes
        self.functions: list[Function] = []
        self.declarations: dict[str, str] = {}

    def text(self) -> str:
        """The IR."""
        parts = [*self.declarations.values(), *(f.text() for f in self.functions), _METADATA]
        return "\n".join(parts)


# Loops are unrolled by hand where it pays.
_METADATA = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}\n'


class Function:
    """A native function under construction.

    Args:
        module: where it belongs.
        name: the symbol.
        arguments: LLVM types of the arguments.
    """

    def __init__(self, module: Module, name: str, arguments: Sequence[str]) -> None:
        self.module = module
        self.name = name
        self.arguments = [f"%a{i}" for i in range(len(arguments))]
        self.types = list(arguments)
        self._lines = ["entry:"]
        self._block = "entry"
        self._count = 0
        self.halves: set[tuple[str, DType]] = set()  # see halves.py
        self.one_lane: set[str] = set()  # masks of the first lane alone
        module.functions.append(self)

    def text(self) -> str:
        """The IR of the function."""
        pairs = zip(self.types, self.arguments, strict=True)
        declared = ", ".join(f"{t} {a}" for t, a in pairs)
        body = "\n".join(self._lines)
        return f"define void @{self.name}({declared}) nounwind {{\n{body}\n  ret void\n}}\n"

    # Names and lines

    def fresh(self) -> str:
        """A name that has not been used."""
        self._count += 1
        return f"%v{self._count}"

    def label(self) -> str:
        """A block name that has not been used."""
        self._count += 1
        return f"b{self._count}"

    def line(self, text: str) -> None:
        """Add an instruction without a result."""
        self._lines.append("  " + text)

    def start(self, block: str) -> None:
        """Begin a block."""
        self._lines.append(block + ":")
        self._block = block

    def named(self, text: str) -> str:
        """Add an instruction with a result; gives its name."""
        self._count += 1
        name = f"%v{self._count}"
        self._lines.append(f"  {name} = {text}")
        return name

    def instruction(self, text: str, dtype: DType, lanes: int) -> Value:
        """Add an instruction with a typed result."""
        return Value(self, self.named(text), dtype, lanes)

    # Values

    def constant(self, value: Any, like: Value) -> Value:
        """`value` with the type of `like`; itself when it is a value already.

        Raises:
            NotLoweredError: a float among integers, which would become floats.
        """
        if isinstance(value, Value):
            return value
        if isinstance(value, float) and not like.is_float:
            raise NotLoweredError(f"the constant {value} among {like.dtype}")
        if like.dtype in HALVES:
            value = float(np.asarray(value, np.float32).astype(like.dtype.numpy))
        text = literal(value, like.element)
        name = f"splat ({like.element} {text})" if like.lanes else text
        return Value(self, name, like.dtype, like.lanes)

    def number(self, value: int) -> Value:
        """A scalar int64."""
        return Value(self, str(int(value)), int64, 0)

    def binary(self, op: str, a: Value, b: Any) -> Value:
        """`a op b` of one type."""
        b = self.constant(b, a)
        if (b.dtype != a.dtype or b.lanes != a.lanes) and b.type != a.type:
            raise NotLoweredError(f"{op} of {a.type} and {b.type}")
        if a.dtype in HALVES:
            raise NotLoweredError(f"{op} of {a.dtype}, which is computed in float32")
        return self.instruction(f"{op} {a}, {b.name}", a.dtype, a.lanes)

    def compare(self, relation: str, a: Value, b: Any) -> Value:
        """A comparison; with NaN all but "ne" are false."""
        b = self.constant(b, a)
        if a.is_float:
            word = "fcmp " + ("une" if relation == "ne" else "o" + relation)
        elif relation in ("eq", "ne"):
            word = "icmp " + relation
        else:
            unsigned = a.dtype == bool_ or a.dtype.startswith("u")
            word = "icmp " + ("u" if unsigned else "s") + relation
        return self.instruction(f"{word} {a}, {b.name}", bool_, a.lanes)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where `condition`, `b` elsewhere."""
        return self.instruction(f"select {condition}, {a}, {b}", a.dtype, a.lanes)

    def call(self, intrinsic: str, *values: Value) -> Value:
        """An LLVM intrinsic of operands and result of one type."""
        first = values[0]
        suffix = _SUFFIX[first.element]
        mangled = f"llvm.{intrinsic}.{f'v{first.lanes}' if first.lanes else ''}{suffix}"
        types = ", ".join([first.type] * len(values))
        self.module.declarations[mangled] = f"declare {first.type} @{mangled}({types})"
        operands = ", ".join(map(str, values))
        return self.instruction(
            f"call {first.type} @{mangled}({operands})", first.dtype, first.lanes
        )

    def fma(self, a: Value, b: Any, c: Any) -> Value:
        """a * b + c, rounded once."""
        return self.call("fma", a, self.constant(b, a), self.constant(c, a))

    def convert(self, x: Value, dtype: DType) -> Value:
        """`x` as another element type, as Cast defines it."""
        if x.dtype == dtype:
            return x
        if x.dtype in HALVES:
            return self.convert(Value(self, x.name, float32, x.lanes), dtype)
        if dtype in HALVES:
            return rounded(self, self.convert(x, float32), dtype)
        target = vector_type(scalar_type(dtype), x.lanes)
        if dtype == bool_:
            return x != self.constant(0, x)
        if x.is_float and dtype.is_integer:
            return self._truncated(x, dtype)
        return self.instruction(f"{conversion(x.dtype, dtype)} {x} to {target}", dtype, x.lanes)

    def _truncated(self, x: Value, dtype: DType) -> Value:
        """A float as an integer of 32 or 64 bits, of which a smaller type keeps the lower ones.

        NaN and what is out of range of these give their least number, as on x86 processors.
        """
        if dtype in (uint32, uint64):
            raise NotLoweredError(f"a float as {dtype}: out of range, the reference's loops differ")
        wide = int64 if dtype == int64 else int32
        limit = 2.0 ** (8 * wide.size - 1)
        inside = (x >= -limit) & (x < limit)
        safe = self.select(inside, x, self.constant(0.0, x))
        target = vector_type(scalar_type(wide), x.lanes)
        whole = self.instruction(f"fptosi {safe} to {target}", wide, x.lanes)
        least = self.constant(-(1 << 8 * wide.size - 1), whole)
        return self.convert(self.select(inside, whole, least), dtype)

    def bits(self, x: Value, dtype: DType) -> Value:
        """The bits of `x` read as another type of the same size."""
        target = vector_type(scalar_type(dtype), x.lanes)
        return self.instruction(f"bitcast {x} to {target}", dtype, x.lanes)

    def splat(self, x: Value, lanes: int) -> Value:
        """A vector with `x` in each lane; `x` itself for 0 lanes."""
        if not lanes or x.lanes:
            return x
        if not x.name.startswith("%"):
            return Value(self, f"splat ({x.element} {x.name})", x.dtype, lanes)
        wide = vector_type(x.element, lanes)
        one = self.named(f"insertelement {wide} poison, {x}, i64 0")
        return self.instruction(
            f"shufflevector {wide} {one}, {wide} poison, <{lanes} x i32> zeroinitializer",
            x.dtype,
            lanes,
        )

    def part(self, x: Value, start: int, lanes: int) -> Value:
        """Lanes `start`, ..., `start + lanes - 1` of a vector; beyond its end the last one."""
        return self._shuffled(x, f"{x.type} poison", range(start, start + lanes), x.lanes)

    def joined(self, low: Value, high: Value) -> Value:
        """The lanes of a vector, then those of another one of its type."""
        lanes = 2 * low.lanes
        return self._shuffled(low, str(high), range(lanes), lanes)

    def _shuffled(self, x: Value, other: str, lanes: range, count: int) -> Value:
        """Lanes of two vectors, those from `count` on being the one before."""
        places = ", ".join(f"i32 {min(lane, count - 1)}" for lane in lanes)
        mask = f"<{len(lanes)} x i32> <{places}>"
        return self.instruction(f"shufflevector {x}, {other}, {mask}", x.dtype, len(lanes))

    def element(self, x: Value, lane: int) -> Value:
        """One lane of a vector."""
        return self.instruction(f"extractelement {x}, i64 {lane}", x.dtype, 0)

    def lane_numbers(self, dtype: DType, lanes: int) -> Value:
        """0, 1, 2, ... as a vector of integers."""
        element = scalar_type(dtype)
        steps = ", ".join(f"{element} {i}" for i in range(lanes))
        return Value(self, f"<{steps}>", dtype, lanes)

    # Memory

    def offset(self, pointer: str, index: Value, size: int) -> str:
        """The address `index` elements of `size` bytes after `pointer`."""
        if index.name == "0":
            return pointer
        scaled = index if size == 1 else index * size
        return self.named(f"getelementptr inbounds i8, ptr {pointer}, i64 {scaled.name}")

    def room(self, size: int) -> str:
        """The address of `size` bytes on the stack, at a line of the cache."""
        return self.named(f"alloca [{size} x i8], align 64")

    def prefetch(self, pointer: str) -> None:
        """Fetch a line into the nearest cache, to read it; any address will do."""
        self.module.declarations["llvm.prefetch.p0"] = (
            "declare void @llvm.prefetch.p0(ptr, i32 immarg, i32 immarg, i32 immarg)"
        )
        self.line(f"call void @llvm.prefetch.p0(ptr {pointer}, i32 0, i32 3, i32 1)")

    def load_pointer(self, pointer: str) -> str:
        """The address stored at an address."""
        return self.named(f"load ptr, ptr {pointer}, align 8")

    def load(self, pointer: str, dtype: DType, lanes: int, mask: Value | None = None) -> Value:
        """Elements at an address; lanes outside of `mask` are 0."""
        if dtype == bool_:
            raw = self._load("i8", pointer, lanes, mask)
            zero = "zeroinitializer" if lanes else "0"
            wide = vector_type("i8", lanes)
            return self.instruction(f"icmp ne {wide} {raw}, {zero}", bool_, lanes)
        if dtype in HALVES:
            return widened(self, self._load("i16", pointer, lanes, mask), dtype, lanes)
        name = self._load(scalar_type(dtype), pointer, lanes, mask)
        return Value(self, name, dtype, lanes)

    def _load(self, element: str, pointer: str, lanes: int, mask: Value | None) -> str:
        kind = vector_type(element, lanes)
        align = element_bytes(element)
        if mask is None:
            return self.named(f"load {kind}, ptr {pointer}, align {align}")
        mangled = f"llvm.masked.load.v{lanes}{_SUFFIX[element]}.p0"
        masks = f"<{lanes} x i1>"
        self.module.declarations[mangled] = (
            f"declare {kind} @{mangled}(ptr, i32 immarg, {masks}, {kind})"
        )
        return self.named(
            f"call {kind} @{mangled}(ptr {pointer}, i32 {align}, {mask}, {kind} zeroinitializer)"
        )

    def _spread(self, pointer: str, stride: Value, lanes: int) -> str:
        """The addresses `pointer` + lane * `stride` bytes."""
        wide = f"<{lanes} x i64>"
        steps = ", ".join(f"i64 {i}" for i in range(lanes))
        offsets = self.named(f"mul {wide} <{steps}>, {self.splat(stride, lanes).name}")
        return self.named(f"getelementptr i8, ptr {pointer}, {wide} {offsets}")

    def _mask(self, mask: Value | None, lanes: int) -> str:
        return f"<{lanes} x i1> splat (i1 true)" if mask is None else str(mask)

    def gather(self, addresses: str, dtype: DType, lanes: int, mask: Value | None = None) -> Value:
        """Elements at a vector of addresses; lanes outside of `mask` are 0."""
        element = "i16" if dtype in HALVES else scalar_type(dtype)
        if dtype == bool_:
            element = "i8"
        kind = vector_type(element, lanes)
        mangled = f"llvm.masked.gather.v{lanes}{_SUFFIX[element]}.v{lanes}p0"
        self.module.declarations[mangled] = (
            f"declare {kind} @{mangled}(<{lanes} x ptr>, i32 immarg, <{lanes} x i1>, {kind})"
        )
        raw = self.named(
            f"call {kind} @{mangled}(<{lanes} x ptr> {addresses}, i32 {element_bytes(element)}, "
            f"{self._mask(mask, lanes)}, {kind} zeroinitializer)"
        )
        if dtype == bool_:
            return self.instruction(f"icmp ne {kind} {raw}, zeroinitializer", bool_, lanes)
        if dtype in HALVES:
            return widened(self, raw, dtype, lanes)
        return Value(self, raw, dtype, lanes)

    def load_strided(
        self, pointer: str, stride: Value, dtype: DType, lanes: int, mask: Value | None = None
    ) -> Value:
        """Elements that stand `stride` bytes apart; lanes outside of `mask` are 0."""
        return self.gather(self._spread(pointer, stride, lanes), dtype, lanes, mask)

    def store_strided(
        self, x: Value, pointer: str, stride: Value, mask: Value | None = None
    ) -> None:
        """Write elements `stride` bytes apart, those of `mask` alone."""
        lanes = x.lanes
        element, name = in_memory(self, x)
        kind = vector_type(element, lanes)
        mangled = f"llvm.masked.scatter.v{lanes}{_SUFFIX[element]}.v{lanes}p0"
        self.module.declarations[mangled] = (
            f"declare void @{mangled}({kind}, <{lanes} x ptr>, i32 immarg, <{lanes} x i1>)"
        )
        addresses = self._spread(pointer, stride, lanes)
        self.line(
            f"call void @{mangled}({kind} {name}, <{lanes} x ptr> {addresses}, "
            f"i32 {element_bytes(element)}, {self._mask(mask, lanes)})"
        )

    def store(self, x: Value, pointer: str, mask: Value | None = None) -> None:
        """Write elements to an address, those of `mask` alone."""
        if mask is not None and mask.name in self.one_lane:
            # Under such a mask LLVM 22 writes elements that it narrows as wide as they were.
            x, mask = self.element(x, 0), None
        element, name = in_memory(self, x)
        kind = vector_type(element, x.lanes)
        align = element_bytes(element)
        if mask is None:
            self.line(f"store {kind} {name}, ptr {pointer}, align {align}")
            return
        mangled = f"llvm.masked.store.v{x.lanes}{_SUFFIX[element]}.p0"
        masks = f"<{x.lanes} x i1>"
        self.module.declarations[mangled] = (
            f"declare void @{mangled}({kind}, ptr, i32 immarg, {masks})"
        )
        self.line(f"call void @{mangled}({kind} {name}, ptr {pointer}, i32 {align}, {mask})")

    def lookup(self, name: str, table: Sequence[float], index: Value) -> Value:
        """The element of a constant table of float64, called `name`, at each int64 index."""
        lanes = index.lanes
        elements = ", ".join(f"double {literal(x, 'double')}" for x in table)
        kind = f"[{len(table)} x double]"
        self.module.declarations[name] = f"@{name} = private constant {kind} [{elements}]"
        address = self.named(f"getelementptr double, ptr @{name}, {index}")
        if not lanes:
            return self.load(address, float64, 0)
        return self.gather(address, float64, lanes)

    def first_lanes(self, count: Value, lanes: int) -> Value:
        """The mask of the first `count` lanes."""
        wide = f"<{lanes} x i64>"
        steps = ", ".join(f"i64 {i}" for i in range(lanes))
        limit = self.splat(count, lanes)
        mask = self.instruction(f"icmp slt {wide} <{steps}>, {limit.name}", bool_, lanes)
        if count.name == "1":
            self.one_lane.add(mask.name)
        return mask

    # Control

    def loop(self, start: Value, stop: Value, step: int, body: Callable[[Value], None]) -> None:
        """Run `body(i)` for i = start, start + step, ... below `stop`."""

        def carry_nothing(i: Value, _: list[Value]) -> Sequence[Value]:
            body(i)
            return ()

        self.fold(start, stop, step, (), carry_nothing)

    def fold(
        self,
        start: Value,
        stop: Value,
        step: int,
        carried: Sequence[Value],
        body: Callable[[Value, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Carry values through a loop: `carried = body(i, carried)` for i = start, ... below stop.

        Gives the values after the last round; those given where there is none.
        """
        inside, after = self.label(), self.label()
        before = self._block
        enter = self.compare("lt", start, stop)
        self.line(f"br i1 {enter.name}, label %{inside}, label %{after}")
        self.start(inside)
        index = Value(self, self.fresh(), int64, 0)
        current = [Value(self, self.fresh(), c.dtype, c.lanes) for c in carried]
        place = len(self._lines)
        self._lines.extend([""] * (1 + len(current)))
        found = list(body(index, current))
        following = index + step
        again = self.compare("lt", following, stop)
        latch = self._block
        self.line(f"br i1 {again.name}, label %{inside}, label %{after}, !llvm.loop !0")
        phis = [(index, start, following), *zip(current, carried, found, strict=True)]
        for i, (name, first, later) in enumerate(phis):
            self._lines[place + i] = (
                f"  {name.name} = phi {name.type} "
                f"[ {first.name}, %{before} ], [ {later.name}, %{latch} ]"
            )
        self.start(after)
        return [
            self.instruction(
                f"phi {old.type} [ {old.name}, %{before} ], [ {new.name}, %{latch} ]",
                old.dtype,
                old.lanes,
            )
            for old, new in zip(carried, found, strict=True)
        ]

    def when(self, condition: Value, body: Callable[[], object]) -> None:
        """Run `body` if a scalar condition holds."""
        inside, after = self.label(), self.label()
        self.line(f"br i1 {condition.name}, label %{inside}, label %{after}")
        self.start(inside)
        body()
        self.line(f"br label %{after}")
        self.start(after)

    def any(self, condition: Value) -> Value:
        """Whether it holds in some lane: a scalar condition."""
        lanes = condition.lanes
        if not lanes:
            return condition
        mangled = f"llvm.vector.reduce.or.v{lanes}i1"
        self.module.declarations[mangled] = f"declare i1 @{mangled}(<{lanes} x i1>)"
        return self.instruction(f"call i1 @{mangled}({condition})", bool_, 0)

    def replaced(
        self, condition: Value, values: Sequence[Value], body: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """What `body` gives if a scalar condition holds, else `values`."""
        inside, after = self.label(), self.label()
        before = self._block
        self.line(f"br i1 {condition.name}, label %{inside}, label %{after}")
        self.start(inside)
        found = body()
        end = self._block
        self.line(f"br label %{after}")
        self.start(after)
        return [
            self.instruction(
                f"phi {old.type} [ {old.name}, %{before} ], [ {new.name}, %{end} ]",
                old.dtype,
                old.lanes,
            )
            for old, new in zip(values, found, strict=True)
        ]

    def repeat(self, value: Value, body: Callable[[Value], tuple[Value, Value]]) -> Value:
        """Run `body(value)` -> its next value, and a scalar condition: whether to run again."""
        inside, after = self.label(), self.label()
        before = self._block
        self.line(f"br label %{inside}")
        self.start(inside)
        current = Value(self, self.fresh(), value.dtype, value.lanes)
        place = len(self._lines)
        self._lines.append("")
        following, again = body(current)
        self._lines[place] = (
            f"  {current.name} = phi {value.type} "
            f"[ {value.name}, %{before} ], [ {following.name}, %{self._block} ]"
        )
        self.line(f"br i1 {again.name}, label %{inside}, label %{after}, !llvm.loop !0")
        self.start(after)
        return following
