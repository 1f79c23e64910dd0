"""Typed values of a function under construction, with Python's operators."""

from __future__ import annotations

import functools
import math
import struct
from typing import Any, Protocol

from ...graph import DType, bool_, float32, float64
from ..ir.not_lowered import NotLoweredError

_LLVM: dict[str, str] = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "i8",
    "uint16": "i16",
    "uint32": "i32",
    "uint64": "i64",
    "float16": "float",
    "bfloat16": "float",
    "float32": "float",
    "float64": "double",
}
# How the names of LLVM's intrinsics end, by the element type.
SUFFIXES = {"float": "f32", "double": "f64", "i8": "i8", "i16": "i16", "i32": "i32", "i64": "i64"}


def scalar_type(dtype: DType) -> str:
    """LLVM's type for one element in a register.

    Raises:
        NotLoweredError: the element type has none.
    """
    found = _LLVM.get(dtype)
    if found is None:
        raise NotLoweredError(f"no native code is generated for {dtype}")
    return found


def vector_type(element: str, lanes: int) -> str:
    """The type of `lanes` elements; of one when `lanes` is 0."""
    return f"<{lanes} x {element}>" if lanes else element


@functools.cache
def _type(dtype: DType, lanes: int) -> str:
    return vector_type(scalar_type(dtype), lanes)


def literal(value: Any, element: str) -> str:
    """A constant as LLVM writes it."""
    if element == "float":
        try:
            rounded = struct.unpack("f", struct.pack("f", value))[0]
        except OverflowError:
            rounded = math.copysign(math.inf, value)
        return "0x" + struct.pack(">d", rounded).hex().upper()
    if element == "double":
        return "0x" + struct.pack(">d", float(value)).hex().upper()
    if element == "i1":
        return "true" if value else "false"
    bits = int(element[1:])
    number = int(value) & ((1 << bits) - 1)
    return str(number - (1 << bits) if number >> (bits - 1) else number)


def element_bytes(element: str) -> int:
    """The size of LLVM's type of an element."""
    return {"float": 4, "double": 8}.get(element) or int(element[1:]) // 8


def conversion(source: DType, target: DType) -> str:
    """The instruction that changes the element type."""
    if source == bool_:
        return "uitofp" if target.is_floating else "zext"
    if source.is_floating and target.is_floating:
        return "fptrunc" if (source, target) == (float64, float32) else "fpext"
    unsigned = source.startswith("u")
    if target.is_floating:
        return "uitofp" if unsigned else "sitofp"
    if target.size > source.size:
        return "zext" if unsigned else "sext"
    return "trunc" if target.size < source.size else "bitcast"


class Instructions(Protocol):
    """What values need of the function that they belong to (see function.py)."""

    def constant(self, value: Any, like: Value) -> Value:
        """A number with the type of `like`."""
        ...

    def binary(self, op: str, a: Value, b: Any) -> Value:
        """`a op b` of one type."""
        ...

    def compare(self, relation: str, a: Value, b: Any) -> Value:
        """A comparison."""
        ...

    def instruction(self, text: str, dtype: DType, lanes: int) -> Value:
        """An instruction with a typed result."""
        ...


class Value:
    """A typed name of a function under construction; `lanes` is 0 for a scalar.

    Booleans are i1 in registers.
    """

    __slots__ = ("dtype", "fn", "lanes", "name")
    __hash__ = object.__hash__

    def __init__(self, fn: Instructions, name: str, dtype: DType, lanes: int) -> None:
        self.fn = fn
        self.name = name
        self.dtype = dtype
        self.lanes = lanes

    @property
    def element(self) -> str:
        """LLVM's type of an element."""
        return scalar_type(self.dtype)

    @property
    def type(self) -> str:
        """LLVM's type of the value."""
        return _type(self.dtype, self.lanes)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating value."""
        return self.dtype.is_floating

    @property
    def is_constant(self) -> bool:
        """Whether its value is known."""
        return not self.name.startswith("%")

    def __str__(self) -> str:
        return f"{self.type} {self.name}"

    def __add__(self, other: Any) -> Value:
        if self.dtype == bool_:
            return self.fn.binary("or", self, other)
        return self.fn.binary("fadd" if self.is_float else "add", self, other)

    def __radd__(self, other: Any) -> Value:
        return self.fn.constant(other, self) + self

    def __sub__(self, other: Any) -> Value:
        return self.fn.binary("fsub" if self.is_float else "sub", self, other)

    def __rsub__(self, other: Any) -> Value:
        return self.fn.constant(other, self) - self

    def __mul__(self, other: Any) -> Value:
        if self.dtype == bool_:
            return self.fn.binary("and", self, other)
        return self.fn.binary("fmul" if self.is_float else "mul", self, other)

    def __rmul__(self, other: Any) -> Value:
        return self.fn.constant(other, self) * self

    def __truediv__(self, other: Any) -> Value:
        if not self.is_float:
            raise NotLoweredError("division of integers")
        return self.fn.binary("fdiv", self, other)

    def __rtruediv__(self, other: Any) -> Value:
        return self.fn.constant(other, self) / self

    def __neg__(self) -> Value:
        if self.is_float:
            return self.fn.instruction(f"fneg {self}", self.dtype, self.lanes)
        return self.fn.constant(0, self) - self

    def __invert__(self) -> Value:
        return self.fn.binary("xor", self, True if self.dtype == bool_ else -1)

    def __and__(self, other: Any) -> Value:
        return self.fn.binary("and", self, other)

    def __rand__(self, other: Any) -> Value:
        return self.fn.constant(other, self) & self

    def __or__(self, other: Any) -> Value:
        return self.fn.binary("or", self, other)

    def __ror__(self, other: Any) -> Value:
        return self.fn.constant(other, self) | self

    def __xor__(self, other: Any) -> Value:
        return self.fn.binary("xor", self, other)

    def __rxor__(self, other: Any) -> Value:
        return self.fn.constant(other, self) ^ self

    def __eq__(self, other: object) -> Value:  # type: ignore[override]  # an expression
        return self.fn.compare("eq", self, other)

    def __ne__(self, other: object) -> Value:  # type: ignore[override]  # an expression
        return self.fn.compare("ne", self, other)

    def __lt__(self, other: Any) -> Value:
        return self.fn.compare("lt", self, other)

    def __le__(self, other: Any) -> Value:
        return self.fn.compare("le", self, other)

    def __gt__(self, other: Any) -> Value:
        return self.fn.compare("gt", self, other)

    def __ge__(self, other: Any) -> Value:
        return self.fn.compare("ge", self, other)
