"""Writing LLVM's text IR: modules, and functions as lists of instructions.

A `IRFunction` collects instructions in their final form: arithmetic is on explicit vectors, and
nothing is left to LLVM's middle end. What takes several instructions are functions of it: memory.py
reads and writes memory, control.py has loops and conditions, conversions.py other element types,
vector_math/ mathematics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...graph import DType, bool_, int64
from ..ir.element_types import HALVES
from ..ir.not_lowered import NotLoweredError
from .values import SUFFIXES, literal, vector_type
from .values import Value as Value
from .values import scalar_type as scalar_type

POINTER = "ptr"
_NOWHERE = "%nowhere"


class Module:
    """Functions that are compiled together, and what they declare.

    Args:
        vector_bytes: the size of the vector registers that they are for; 0: any processor.
    """

    def __init__(self, vector_bytes: int = 0) -> None:
        self.vector_bytes = vector_bytes
        self.functions: list[IRFunction] = []
        self.declarations: dict[str, str] = {}

    def text(self) -> str:
        """The IR."""
        parts = [*self.declarations.values(), *(f.text() for f in self.functions), _METADATA]
        return "\n".join(parts)


# Loops are unrolled by hand where it pays.
_METADATA = '!0 = distinct !{!0, !1}\n!1 = !{!"llvm.loop.unroll.disable"}\n'


class IRFunction:
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
        self.lines = ["entry:"]
        self.block = "entry"  # the one that is being written
        self._count = 0
        self.halves: set[tuple[str, DType]] = set()  # see half_precision.py
        self.counts: dict[str, Value] = {}  # masks of the first lanes -> how many
        self._has_nowhere = False
        self.result = "void"  # or a type and what is returned, as `ptr %x`
        module.functions.append(self)

    def text(self) -> str:
        """The IR of the function."""
        pairs = zip(self.types, self.arguments, strict=True)
        declared = ", ".join(f"{t} {a}" for t, a in pairs)
        lines = list(self.lines)
        if self._has_nowhere:
            lines.insert(1, f"  {_NOWHERE} = alloca [8 x i8], align 8")
        body = "\n".join(lines)
        kind, *_ = self.result.split()
        head = f"define {kind} @{self.name}({declared}) nounwind"
        return f"{head} {{\n{body}\n  ret {self.result}\n}}\n"

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
        self.lines.append("  " + text)

    def start(self, block: str) -> None:
        """Begin a block."""
        self.lines.append(block + ":")
        self.block = block

    def named(self, text: str) -> str:
        """Add an instruction with a result; gives its name."""
        self._count += 1
        name = f"%v{self._count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def instruction(self, text: str, dtype: DType, lanes: int) -> Value:
        """Add an instruction with a typed result."""
        return Value(self, self.named(text), dtype, lanes)

    def nowhere(self) -> str:
        """The address of an element on the stack that nobody reads."""
        self._has_nowhere = True
        return _NOWHERE

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
        """A comparison; with NaN all but "ne" are false.

        Raises:
            NotLoweredError: with a negative number, which the type of `a` does not have.
        """
        unsigned = a.dtype == bool_ or a.dtype.startswith("u")
        if unsigned and not isinstance(b, Value) and b < 0:
            raise NotLoweredError(f"a comparison of {a.dtype} with {b}")
        b = self.constant(b, a)
        if a.is_float:
            word = "fcmp " + ("une" if relation == "ne" else "o" + relation)
        elif relation in ("eq", "ne"):
            word = "icmp " + relation
        else:
            word = "icmp " + ("u" if unsigned else "s") + relation
        return self.instruction(f"{word} {a}, {b.name}", bool_, a.lanes)

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """`a` where `condition`, `b` elsewhere."""
        return self.instruction(f"select {condition}, {a}, {b}", a.dtype, a.lanes)

    def call(self, intrinsic: str, *values: Value) -> Value:
        """An LLVM intrinsic of operands and result of one type."""
        first = values[0]
        suffix = SUFFIXES[first.element]
        mangled = f"llvm.{intrinsic}.{f'v{first.lanes}' if first.lanes else ''}{suffix}"
        types = ", ".join([first.type] * len(values))
        self.module.declarations[mangled] = f"declare {first.type} @{mangled}({types})"
        operands = ", ".join(map(str, values))
        return self.instruction(
            f"call {first.type} @{mangled}({operands})", first.dtype, first.lanes
        )

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
