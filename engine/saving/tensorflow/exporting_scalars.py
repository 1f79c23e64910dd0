"""Elementwise operations with TensorFlow's ops: another target of `engine.ops.core.scalars`.

What TensorFlow has no one op for is written node by node from the op's scalar expression.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph import DType, Operation, bool_
from ...ops.core.op_def import OpDef
from ...ops.nn.gelu import gelu, gelu_slope
from .writing import Writer, refused


class _Expression:
    """Writes the nodes of one operation, in the scope of its name."""

    def __init__(self, writer: Writer, op: Operation) -> None:
        self._writer = writer
        self._scope = op.name
        self._count = 0

    def node(self, kind: str, inputs: list[str], **attrs: Any) -> str:
        """A node with a name of its own."""
        self._count += 1
        return self._writer.node(f"{self._scope}/{kind}_{self._count}", kind, inputs, **attrs)

    def number(self, value: Any, dtype: DType) -> str:
        """A constant."""
        self._count += 1
        name = f"{self._scope}/number_{self._count}"
        return self._writer.constant(name, np.array(value, dtype.numpy))


class _Value:
    """A value of the expression; operators write nodes."""

    def __init__(self, scope: _Expression, name: str, dtype: DType) -> None:
        self.scope = scope
        self.name = name
        self.dtype = dtype

    def like(self, other: Any) -> str:
        """Another operand: numbers are constants of the same type."""
        if isinstance(other, _Value):
            return other.name
        return self.scope.number(other, self.dtype)

    def made(self, kind: str, *names: str, dtype: DType | None = None) -> _Value:
        """What a node of this type gives."""
        typed = {} if kind.startswith("Logical") else {"T": self.dtype}
        name = self.scope.node(kind, [*names], **typed)
        return _Value(self.scope, name, self.dtype if dtype is None else dtype)

    def __add__(self, other: Any) -> _Value:
        return self.made("AddV2", self.name, self.like(other))

    __radd__ = __add__

    def __sub__(self, other: Any) -> _Value:
        return self.made("Sub", self.name, self.like(other))

    def __rsub__(self, other: Any) -> _Value:
        return self.made("Sub", self.like(other), self.name)

    def __mul__(self, other: Any) -> _Value:
        return self.made("Mul", self.name, self.like(other))

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> _Value:
        return self.made("RealDiv", self.name, self.like(other))

    def __rtruediv__(self, other: Any) -> _Value:
        return self.made("RealDiv", self.like(other), self.name)

    def __pow__(self, other: Any) -> _Value:
        return self.made("Pow", self.name, self.like(other))

    def __neg__(self) -> _Value:
        return self.made("Neg", self.name)

    def __lt__(self, other: Any) -> _Value:
        return self.made("Less", self.name, self.like(other), dtype=bool_)

    def __le__(self, other: Any) -> _Value:
        return self.made("LessEqual", self.name, self.like(other), dtype=bool_)

    def __gt__(self, other: Any) -> _Value:
        return self.made("Greater", self.name, self.like(other), dtype=bool_)

    def __ge__(self, other: Any) -> _Value:
        return self.made("GreaterEqual", self.name, self.like(other), dtype=bool_)

    def __eq__(self, other: Any) -> Any:
        return self.made("Equal", self.name, self.like(other), dtype=bool_)

    def __ne__(self, other: Any) -> Any:
        return self.made("NotEqual", self.name, self.like(other), dtype=bool_)

    def __invert__(self) -> _Value:
        return self.made("LogicalNot", self.name)

    def __and__(self, other: Any) -> _Value:
        return self.made("LogicalAnd", self.name, self.like(other))

    def __or__(self, other: Any) -> _Value:
        return self.made("LogicalOr", self.name, self.like(other))

    __hash__ = None  # type: ignore[assignment]  # as with all that compares elements


_UNARY = {
    "abs": "Abs",
    "sign": "Sign",
    "sqrt": "Sqrt",
    "exp": "Exp",
    "expm1": "Expm1",
    "log": "Log",
    "log1p": "Log1p",
    "sin": "Sin",
    "cos": "Cos",
    "tan": "Tan",
    "sinh": "Sinh",
    "cosh": "Cosh",
    "tanh": "Tanh",
    "erf": "Erf",
    "erfc": "Erfc",
    "sigmoid": "Sigmoid",
    "floor": "Floor",
    "ceil": "Ceil",
}
_TESTS = {"is_nan": "IsNan", "is_inf": "IsInf", "is_finite": "IsFinite"}


class _Scalars:
    """The functions of expressions, as nodes."""

    def __getattr__(self, name: str) -> Callable[[_Value], _Value]:
        if name in _UNARY:
            return lambda x: x.made(_UNARY[name], x.name)
        if name in _TESTS:
            return lambda x: x.made(_TESTS[name], x.name, dtype=bool_)
        raise AttributeError(name)

    def _pair(self, kind: str, a: Any, b: Any) -> _Value:
        like = a if isinstance(a, _Value) else b
        return like.made(kind, like.like(a), like.like(b))

    def where(self, condition: Any, a: Any, b: Any) -> _Value:
        like = a if isinstance(a, _Value) else b
        if not isinstance(like, _Value):
            raise AttributeError("where of two numbers")
        return like.made("SelectV2", condition.name, like.like(a), like.like(b))

    def max(self, a: Any, b: Any) -> _Value:
        return self._pair("Maximum", a, b)

    def min(self, a: Any, b: Any) -> _Value:
        return self._pair("Minimum", a, b)

    def root_quotient(self, a: _Value, x: _Value, epsilon: float) -> _Value:
        return a / (self.sqrt(x) + epsilon)

    def hypot(self, a: _Value, b: _Value) -> _Value:
        return self.sqrt(a * a + b * b)

    def normal_cdf(self, x: _Value) -> _Value:
        return 0.5 * (1.0 + self.erf(x / math.sqrt(2)))

    def gelu(self, x: _Value, approximate: bool) -> Any:
        return gelu(self, x, approximate)

    def gelu_slope(self, x: _Value, approximate: bool) -> Any:
        return gelu_slope(self, x, approximate)

    def log2(self, x: _Value) -> _Value:
        return self.log(x) / math.log(2)

    def log10(self, x: _Value) -> _Value:
        return self.log(x) / math.log(10)

    def exp2(self, x: _Value) -> _Value:
        return self.exp(x * math.log(2))

    def logical_and(self, a: _Value, b: _Value) -> _Value:
        return a & b

    def logical_or(self, a: _Value, b: _Value) -> _Value:
        return a | b

    def logical_not(self, a: _Value) -> _Value:
        return ~a

    def logical_xor(self, a: _Value, b: _Value) -> _Value:
        return a.made("NotEqual", a.name, b.name)

    def conj(self, x: _Value) -> _Value:
        if x.dtype.is_complex:
            raise AttributeError("conj")
        return x


def is_elementwise(op: Operation) -> bool:
    """Whether an operation has a scalar expression."""
    return isinstance(op.definition, OpDef) and op.definition.scalar is not None


def write_elementwise(w: Writer, op: Operation) -> None:
    """The nodes of an elementwise operation, from its expression.

    Raises:
        UnimplementedError: it holds a function that TensorFlow does not have.
    """
    assert isinstance(op.definition, OpDef)
    expression = op.definition.scalar
    assert expression is not None
    scope = _Expression(w, op)
    names = w.names(op.inputs)
    values = [_Value(scope, name, x.dtype) for name, x in zip(names, op.inputs, strict=True)]
    try:
        found = expression(_Scalars(), *values, **op.attrs)
    except AttributeError as error:
        raise refused(op, f"it is made of {error}") from error
    (y,) = op.outputs
    if not isinstance(found, _Value):
        raise refused(op, "it is the same number for all")
    kind = {"SrcT": found.dtype, "DstT": y.dtype}
    if found.dtype != y.dtype:
        w.give(op, [w.node(op.name, "Cast", [found.name], **kind)])
    else:
        w.give(op, [w.node(op.name, "Identity", [found.name], T=y.dtype)])
