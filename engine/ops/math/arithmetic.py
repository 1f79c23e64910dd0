"""Arithmetic of two numbers, and of one: each op a row."""

from __future__ import annotations

import operator

from ... import ops
from ...graph import (
    DENSE,
    INEXACT,
    NUMERIC,
    REAL,
    OpView,
    Tensor,
)
from ..core.basic import zeros_like
from ..core.elementwise import ElementwiseOp, elementwise
from ..core.traits import Traits


def conjugate(x: Tensor) -> Tensor:
    """The complex conjugate; `x` itself when it is real."""
    return conj(x) if x.dtype.is_complex else x


def _sign_grad(op: OpView, dy: Tensor) -> Tensor:
    """y = x / |x| only turns: what `dy` has along y has no effect, the rest is over |x|."""
    (x,), (y,) = op.inputs, op.outputs
    if not x.dtype.is_complex:
        return zeros_like(dy)
    turning = subtract(dy, multiply(multiply(y, y), conj(dy)))  # 2 i y Im(conj(y) dy)
    return ops.elementary.divide_no_nan(multiply(turning, conj(y)), conj(add(x, x)))


def _choose(first: Tensor, dz: Tensor) -> tuple[Tensor, Tensor]:
    """`dz` to the first input where `first` holds, to the second elsewhere."""
    zero = zeros_like(dz)
    return ops.compare.where(first, dz, zero), ops.compare.where(first, zero, dz)


def _doubled(x: Tensor) -> Tensor:
    return add(x, x)


def _times_twice(dy: Tensor, x: Tensor) -> Tensor:
    """dy * x**2, where the square alone can overflow, or vanish."""
    return multiply(multiply(dy, x), x)


add: ElementwiseOp = elementwise(
    "Add",
    "z = x + y; for bool, x or y.",
    scalar=lambda s, x, y: x + y,
    grad=lambda op, dz: (dz, dz),
    dtypes=DENSE,
    traits=Traits(commutative=True, on_sizes=operator.add),
)
subtract: ElementwiseOp = elementwise(
    "Sub",
    "z = x - y.",
    scalar=lambda s, x, y: x - y,
    grad=lambda op, dz: (dz, negative(dz)),
    traits=Traits(on_sizes=operator.sub),
)
multiply: ElementwiseOp = elementwise(
    "Mul",
    "z = x * y; for bool, x and y.",
    scalar=lambda s, x, y: x * y,
    grad=lambda op, dz: (
        multiply(dz, conjugate(op.inputs[1])),
        multiply(dz, conjugate(op.inputs[0])),
    ),
    dtypes=DENSE,
    traits=Traits(commutative=True, on_sizes=operator.mul),
)
divide: ElementwiseOp = elementwise(
    "Div",
    "z = x / y.",
    scalar=lambda s, x, y: x / y,
    grad=lambda op, dz: (
        divide(dz, conjugate(op.inputs[1])),
        negative(divide(multiply(dz, conjugate(op.outputs[0])), conjugate(op.inputs[1]))),
    ),
    dtypes=INEXACT,
)
floor_divide: ElementwiseOp = elementwise(
    "FloorDiv",
    "z = floor(x / y); an integer divided by 0 gives 0.",
    scalar=lambda s, x, y: x // y,
    dtypes=REAL,
)
mod: ElementwiseOp = elementwise(
    "FloorMod",
    "z = x - floor(x / y) * y: the remainder with the sign of y.",
    scalar=lambda s, x, y: s.floor_mod(x, y),
    grad=lambda op, dz: (
        dz,
        negative(multiply(dz, floor_divide(op.inputs[0], op.inputs[1]))),
    ),
    dtypes=REAL,
)
fmod: ElementwiseOp = elementwise(
    "TruncMod",
    "z = x - trunc(x / y) * y: the remainder with the sign of x.",
    scalar=lambda s, x, y: s.trunc_mod(x, y),
    grad=lambda op, dz: (
        dz,
        negative(multiply(dz, trunc(divide(op.inputs[0], op.inputs[1])))),
    ),
    dtypes=REAL,
)
# Not commutative: max(-0.0, 0.0) is the first or the second of them.
maximum: ElementwiseOp = elementwise(
    "Maximum",
    "z = max(x, y); NaN if either is. Where they are equal the gradient goes to x.",
    scalar=lambda s, x, y: s.max(x, y),
    grad=lambda op, dz: _choose(ops.compare.greater_equal(*op.inputs), dz),
    dtypes=REAL,
)
minimum: ElementwiseOp = elementwise(
    "Minimum",
    "z = min(x, y); NaN if either is. Where they are equal the gradient goes to x.",
    scalar=lambda s, x, y: s.min(x, y),
    grad=lambda op, dz: _choose(ops.compare.less_equal(*op.inputs), dz),
    dtypes=REAL,
)
negative: ElementwiseOp = elementwise(
    "Neg",
    "y = -x.",
    scalar=lambda s, x: -x,
    grad=lambda op, dy: (negative(dy),),
)
absolute: ElementwiseOp = elementwise(
    "Abs",
    "y = |x|. The slope at 0 is 0.",
    scalar=lambda s, x: s.abs(x),
    grad=lambda op, dy: (multiply(dy, sign(op.inputs[0])),),
    dtypes=REAL,
)
sign: ElementwiseOp = elementwise(
    "Sign",
    "y = -1, 0 or 1 as x is negative, 0 or positive, of the slope 0; x / |x| of complex numbers.",
    scalar=lambda s, x: s.sign(x),
    grad=lambda op, dy: (_sign_grad(op, dy),),
    dtypes=NUMERIC,
)
floor: ElementwiseOp = elementwise(
    "Floor", "The greatest integer <= x.", scalar=lambda s, x: s.floor(x), dtypes=REAL
)
ceil: ElementwiseOp = elementwise(
    "Ceil", "The least integer >= x.", scalar=lambda s, x: s.ceil(x), dtypes=REAL
)
rint: ElementwiseOp = elementwise(
    "Round", "The nearest integer, halves to even.", scalar=lambda s, x: s.round(x), dtypes=REAL
)
trunc: ElementwiseOp = elementwise(
    "Trunc", "The integer part of x, towards 0.", scalar=lambda s, x: s.trunc(x), dtypes=REAL
)
square: ElementwiseOp = elementwise(
    "Square",
    "y = x * x.",
    scalar=lambda s, x: x * x,
    grad=lambda op, dy: (_doubled(multiply(dy, conjugate(op.inputs[0]))),),  # x + x can overflow
)
reciprocal: ElementwiseOp = elementwise(
    "Reciprocal",
    "y = 1 / x.",
    scalar=lambda s, x: 1 / x,
    grad=lambda op, dy: (negative(_times_twice(dy, conjugate(op.outputs[0]))),),
    dtypes=INEXACT,
)
conj: ElementwiseOp = elementwise(
    "Conj",
    "The complex conjugate of x; x itself when it is real.",
    scalar=lambda s, x: s.conj(x),
    grad=lambda op, dy: (conj(dy),),
    dtypes=NUMERIC,
)
