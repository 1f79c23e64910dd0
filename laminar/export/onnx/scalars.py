"""Elementwise expressions as nodes: another target of `engine.ops.core.scalars`.

An expression is evaluated on `Value`s, which write a node for each thing that is done with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from laminar.engine.graph import DType, Operation, as_dtype, bool_
from laminar.engine.ops.core.op_def import OpDef
from laminar.engine.ops.core.scalar_operators import COMPARISONS, ComposedScalars, ScalarOperators

from .table import Nodes, is_half, refused


class Value(ScalarOperators):
    """A value of the graph; operators write nodes."""

    def __init__(self, writer: Nodes, name: str, dtype: DType) -> None:
        self.writer = writer
        self.name = name
        self.dtype = dtype

    def _like(self, other: Any) -> str:
        """Another operand: numbers are constants of the same type."""
        if isinstance(other, Value):
            return other.name
        return self.writer.constant(other, self.dtype)

    def _made(self, kind: str, *names: str, dtype: DType | None = None, **attributes: Any) -> Value:
        name = self.writer.node(kind, *names, **attributes)
        return Value(self.writer, name, self.dtype if dtype is None else dtype)

    def _as(self, dtype: DType) -> Value:
        if dtype == self.dtype:
            return self
        return Value(self.writer, self.writer.cast(self.name, dtype), dtype)

    def operate(self, sign: str, *operands: Any) -> Any:
        """The node of an operator, or those that it takes."""
        a, *rest = operands
        if sign == "!=":
            return ~self.operate("==", *operands)
        if sign == "//":
            if self.dtype.is_floating:
                return self._made("Floor", (a / rest[0]).name)
            return (a - a % rest[0]) / rest[0]  # division of whole numbers drops what is left
        if sign == "%" and self.dtype.is_floating:
            return a - (a // rest[0]) * rest[0]
        kind = _OPERATORS[sign]
        if sign in _ON_BITS:
            kind = kind if self.dtype == bool_ else f"Bitwise{kind}"
        dtype = bool_ if sign in COMPARISONS else None
        return self._made(kind, *map(self._like, operands), dtype=dtype)


_OPERATORS = {
    "+": "Add",
    "-": "Sub",
    "*": "Mul",
    "/": "Div",
    "%": "Mod",
    "**": "Pow",
    "negative": "Neg",
    "<": "Less",
    "<=": "LessOrEqual",
    ">": "Greater",
    ">=": "GreaterOrEqual",
    "==": "Equal",
    "~": "Not",
    "&": "And",
    "|": "Or",
    "^": "Xor",
}
_ON_BITS = frozenset("~&|^")
_UNARY = {
    "abs": "Abs",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "log": "Log",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "arcsin": "Asin",
    "arccos": "Acos",
    "arctan": "Atan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "arcsinh": "Asinh",
    "arccosh": "Acosh",
    "arctanh": "Atanh",
    "erf": "Erf",
    "sigmoid": "Sigmoid",
}
_ROUNDING = {"floor": "Floor", "ceil": "Ceil", "round": "Round"}


class OnnxScalars(ComposedScalars):
    """The functions of expressions, as nodes."""

    def __init__(self, writer: Nodes) -> None:
        self._writer = writer

    def __getattr__(self, name: str) -> Callable[[Value], Value]:
        if name in _UNARY:
            return lambda x: x._made(_UNARY[name], x.name)
        if name in _ROUNDING:  # whole numbers are their own
            return lambda x: x._made(_ROUNDING[name], x.name) if x.dtype.is_floating else x
        raise AttributeError(name)

    def _pair(self, a: Any, b: Any) -> tuple[Value, str, str]:
        like = a if isinstance(a, Value) else b
        return like, like._like(a), like._like(b)

    def where(self, condition: Any, a: Any, b: Any) -> Value:
        if not isinstance(a, Value) and not isinstance(b, Value):
            raise AttributeError("where of two numbers")
        like, first, second = self._pair(a, b)
        return like._made("Where", condition.name, first, second)

    def max(self, a: Any, b: Any) -> Value:
        like, first, second = self._pair(a, b)
        return like._made("Max", first, second)

    def min(self, a: Any, b: Any) -> Value:
        like, first, second = self._pair(a, b)
        return like._made("Min", first, second)

    def trunc(self, x: Value) -> Value:
        return self.sign(x) * self.floor(self.abs(x)) if x.dtype.is_floating else x

    def cbrt(self, x: Value) -> Any:
        return self.sign(x) * self.abs(x) ** (1 / 3)

    def expm1(self, x: Value) -> Value:
        """exp(x) - 1 = 2 tanh(x / 2) / (1 - tanh(x / 2)) near 0, where the difference loses x."""
        half = self.tanh(x / 2)
        return self.where(self.abs(x) < 0.5, 2 * half / (1 - half), self.exp(x) - 1)

    def log1p(self, x: Value) -> Value:
        """log(1 + x) = 2 artanh(x / (2 + x)) near 0, where the sum loses x."""
        small = 2 * self.arctanh(x / (2 + x))
        return self.where(self.abs(x) < 0.5, small, self.log(1 + x))

    def erfc(self, x: Value) -> Any:
        return 1 - self.erf(x)

    def conj(self, x: Value) -> Value:
        return x  # complex numbers do not come here

    def is_nan(self, x: Value) -> Value:
        return x._made("IsNaN", x.name, dtype=bool_)

    def is_inf(self, x: Value) -> Value:
        return x._made("IsInf", x.name, dtype=bool_)

    def is_finite(self, x: Value) -> Any:
        return ~(self.is_nan(x) | self.is_inf(x))

    def logical_xor(self, a: Value, b: Value) -> Any:
        return a ^ b

    def shift_left(self, a: Value, b: Any) -> Any:
        if a.dtype.name.startswith("uint"):
            return a._made("BitShift", a.name, a._like(b), direction="LEFT")
        wide, factor = self._shifted(a, b)
        return wide.__mul__(factor)._as(a.dtype)

    def shift_right(self, a: Value, b: Any) -> Any:
        if a.dtype.name.startswith("uint"):
            return a._made("BitShift", a.name, a._like(b), direction="RIGHT")
        wide, factor = self._shifted(a, b)
        return wide.__floordiv__(factor)._as(a.dtype)

    @staticmethod
    def _shifted(a: Value, b: Any) -> tuple[Value, Value]:
        """a and 2**b: ONNX shifts no signed numbers, and multiplies none of less than 4 bytes."""
        dtype = a.dtype if a.dtype.size >= 4 else as_dtype("int32")
        count = b._as(dtype) if isinstance(b, Value) else b
        return a._as(dtype), Value(a.writer, a.writer.constant(2, dtype), dtype) ** count

    def floor_mod(self, a: Value, b: Any) -> Any:
        return a.__mod__(b)

    def trunc_mod(self, a: Value, b: Any) -> Value:
        return a._made("Mod", a.name, a._like(b), fmod=1)


def expression_of(op: Operation) -> Callable[..., Any] | None:
    """The expression of an elementwise operation; None of any other."""
    return op.definition.scalar if isinstance(op.definition, OpDef) else None


def written_elementwise(w: Nodes, op: Operation, names: Sequence[str]) -> str:
    """The nodes of an elementwise operation, from its expression.

    Raises:
        UnimplementedError: it holds a function that ONNX does not have.
    """
    expression = expression_of(op)
    assert expression is not None
    dtypes = [as_dtype(x.dtype) for x in op.inputs]
    halves = is_half(dtypes[0])
    wide = as_dtype("float32")
    values = [
        Value(w, w.cast(name, wide), wide) if is_half(dtype) else Value(w, name, dtype)
        for name, dtype in zip(names, dtypes, strict=True)
    ]
    try:
        found = expression(OnnxScalars(w), *values, **op.attrs)
    except AttributeError as error:
        raise refused(op, f"it is made of {error}") from error
    dtype = as_dtype(op.outputs[0].dtype)
    if not isinstance(found, Value):
        shape = w.node("Shape", names[0])
        return w.node("Expand", w.constant(found, dtype), shape)
    if halves and found.dtype == wide or found.dtype != dtype:
        return w.cast(found.name, dtype)
    return found.name
