"""Elementwise operations with TensorFlow's ops: another target of `engine.ops.core.scalars`.

What TensorFlow has no one op for is written node by node from the op's scalar expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph import DType, Operation, bool_
from ...ops.core.op_def import OpDef
from ...ops.core.scalar_operators import COMPARISONS, ComposedScalars, ScalarOperators
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


class _Value(ScalarOperators):
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

    def operate(self, sign: str, *operands: Any) -> _Value:
        """The node of an operator."""
        if sign not in _OPERATORS:
            raise AttributeError(f"the operator {sign}")
        dtype = bool_ if sign in COMPARISONS else None
        return self.made(_OPERATORS[sign], *map(self.like, operands), dtype=dtype)


_OPERATORS = {
    "+": "AddV2",
    "-": "Sub",
    "*": "Mul",
    "/": "RealDiv",
    "**": "Pow",
    "negative": "Neg",
    "<": "Less",
    "<=": "LessEqual",
    ">": "Greater",
    ">=": "GreaterEqual",
    "==": "Equal",
    "!=": "NotEqual",
    "~": "LogicalNot",
    "&": "LogicalAnd",
    "|": "LogicalOr",
}
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


class _Scalars(ComposedScalars):
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
