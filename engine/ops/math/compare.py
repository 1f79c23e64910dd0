"""Comparison, logic, and choice by condition."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError
from ...graph import (
    ANY,
    BOOLEAN,
    INEXACT,
    INTEGER,
    REAL,
    Array,
    OpView,
    Tensor,
    TensorSpec,
    bool_,
    broadcast_shapes,
)
from ..array.broadcast import unbroadcast
from ..core.basic import zeros_like
from ..core.elementwise import ElementwiseOp, elementwise
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from ..core.traits import Traits

_ORDERED = REAL | BOOLEAN

equal: ElementwiseOp = elementwise(
    "Equal",
    "x == y.",
    scalar=lambda s, x, y: x == y,
    dtypes=ANY,
    result=bool_,
    traits=Traits(commutative=True),
)
not_equal: ElementwiseOp = elementwise(
    "NotEqual",
    "x != y.",
    scalar=lambda s, x, y: x != y,
    dtypes=ANY,
    result=bool_,
    traits=Traits(commutative=True),
)
less: ElementwiseOp = elementwise(
    "Less", "x < y.", scalar=lambda s, x, y: x < y, dtypes=_ORDERED, result=bool_
)
less_equal: ElementwiseOp = elementwise(
    "LessEqual", "x <= y.", scalar=lambda s, x, y: x <= y, dtypes=_ORDERED, result=bool_
)
greater: ElementwiseOp = elementwise(
    "Greater", "x > y.", scalar=lambda s, x, y: x > y, dtypes=_ORDERED, result=bool_
)
greater_equal: ElementwiseOp = elementwise(
    "GreaterEqual", "x >= y.", scalar=lambda s, x, y: x >= y, dtypes=_ORDERED, result=bool_
)
logical_and: OpDef = elementwise(
    "LogicalAnd",
    "x and y.",
    scalar=lambda s, x, y: s.logical_and(x, y),
    dtypes=BOOLEAN,
    traits=Traits(commutative=True),
)
logical_or: OpDef = elementwise(
    "LogicalOr",
    "x or y.",
    scalar=lambda s, x, y: s.logical_or(x, y),
    dtypes=BOOLEAN,
    traits=Traits(commutative=True),
)
logical_xor: OpDef = elementwise(
    "LogicalXor",
    "x or y, not both.",
    scalar=lambda s, x, y: s.logical_xor(x, y),
    dtypes=BOOLEAN,
    traits=Traits(commutative=True),
)
logical_not: OpDef = elementwise(
    "LogicalNot", "not x.", scalar=lambda s, x: s.logical_not(x), dtypes=BOOLEAN
)
bitwise_and: OpDef = elementwise(
    "BitwiseAnd",
    "The bits set in both.",
    scalar=lambda s, x, y: x & y,
    dtypes=INTEGER | BOOLEAN,
    traits=Traits(commutative=True),
)
bitwise_or: OpDef = elementwise(
    "BitwiseOr",
    "The bits set in either.",
    scalar=lambda s, x, y: x | y,
    dtypes=INTEGER | BOOLEAN,
    traits=Traits(commutative=True),
)
bitwise_xor: OpDef = elementwise(
    "BitwiseXor",
    "The bits set in one alone.",
    scalar=lambda s, x, y: x ^ y,
    dtypes=INTEGER | BOOLEAN,
    traits=Traits(commutative=True),
)
bitwise_not: OpDef = elementwise(
    "BitwiseNot", "All bits turned.", scalar=lambda s, x: ~x, dtypes=INTEGER | BOOLEAN
)
left_shift: OpDef = elementwise(
    "LeftShift", "x * 2**y.", scalar=lambda s, x, y: s.shift_left(x, y), dtypes=INTEGER
)
right_shift: OpDef = elementwise(
    "RightShift",
    "floor(x / 2**y); the sign is kept.",
    scalar=lambda s, x, y: s.shift_right(x, y),
    dtypes=INTEGER,
)
is_nan: OpDef = elementwise(
    "IsNan", "Whether x is NaN.", scalar=lambda s, x: s.is_nan(x), dtypes=INEXACT, result=bool_
)
is_inf: OpDef = elementwise(
    "IsInf",
    "Whether x is infinite.",
    scalar=lambda s, x: s.is_inf(x),
    dtypes=INEXACT,
    result=bool_,
)
is_finite: OpDef = elementwise(
    "IsFinite",
    "Whether x is neither infinite nor NaN.",
    scalar=lambda s, x: s.is_finite(x),
    dtypes=INEXACT,
    result=bool_,
)


@define("Where", dtypes={"x": ANY, "y": ANY})
def _where(condition: TensorSpec, x: TensorSpec, y: TensorSpec) -> TensorSpec:
    """z = x where the bool `condition` holds, y elsewhere; the three broadcast."""
    if condition.dtype != bool_:
        raise DTypeError(
            f"Where: condition must be bool, got {condition}",
            remedy="compare it, such as condition != 0",
        )
    return TensorSpec(broadcast_shapes("Where", condition.shape, x.shape, y.shape), x.dtype)


_where.scalar = lambda s, condition, x, y: s.where(condition, x, y)


@_where.reference
def _where_kernel(xp: Any, condition: Array, x: Array, y: Array) -> Array:
    return xp.where(condition, x, y)


@_where.grad
def _where_grad(op: OpView, dz: Tensor) -> Grads:
    condition = op.inputs[0]
    zero = zeros_like(dz)
    return (
        None,
        unbroadcast(_where(condition, dz, zero), 1, op.inputs),
        unbroadcast(_where(condition, zero, dz), 2, op.inputs),
    )


def where(condition: Tensor, x: Tensor, y: Tensor) -> Tensor:
    """`x` where `condition` holds, `y` elsewhere."""
    return _where(condition, x, y)
