"""What a number is made of: sign, neighbours, exponent, limits, divisors."""

from __future__ import annotations

import math
from typing import Any

from ...graph import (
    FLOATING,
    INTEGER,
    REAL,
    Array,
    OpView,
    Tensor,
    TensorSpec,
    bfloat16,
    bool_,
    broadcast_shapes,
    finfo,
    float16,
    float32,
    float64,
)
from ..array.broadcast import unbroadcast
from ..core.arrays import computing_dtype
from ..core.basic import ones_like, zeros_like
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from ..core.traits import Traits
from .arithmetic import maximum, sign
from .compare import equal, greater, is_finite, less, logical_or, where

copysign: OpDef = elementwise(
    "CopySign",
    "z = |x| with the sign of y, also that of -0.0. The slope at x = 0 is 0.",
    scalar=lambda s, x, y: s.copysign(x, y),
    grad=lambda op, dz: (
        dz * sign(op.inputs[0]) * copysign(ones_like(op.inputs[1]), op.inputs[1]),
        None,
    ),
    dtypes=FLOATING,
)
signbit: OpDef = elementwise(
    "SignBit",
    "Whether x is negative, or -0.0.",
    scalar=lambda s, x: s.copysign(1.0, x) < 0,
    dtypes=FLOATING,
    result=bool_,
)
next_after: OpDef = elementwise(
    "NextAfter",
    "The number next to x on the way to y. The slope by x is 1, by y it is 0.",
    scalar=lambda s, x, y: s.next_after(x, y),
    grad=lambda op, dz: (dz, zeros_like(dz)),
    dtypes={float32, float64},  # half types are computed in float32, whose neighbours are nearer
)


@define("NextAfterHalf", dtypes={float16, bfloat16})
def next_after_half(x: TensorSpec, y: TensorSpec) -> TensorSpec:
    """The half number next to x on the way to y, which is NaN where one of them is."""
    return TensorSpec(broadcast_shapes("NextAfterHalf", x.shape, y.shape), x.dtype)


@next_after_half.reference
def _next_after_half_kernel(xp: Any, x: Array, y: Array) -> Array:
    """Halves with the same sign are ordered as their bits are: next to one is one bit more."""
    x, y = xp.broadcast_arrays(x, y)
    bits = x.view(xp.int16)
    is_zero, is_away = x == 0, (x < y) == (x > 0)
    smallest = xp.where(y < 0, xp.int16(-(2**15) + 1), xp.int16(1))
    moved = xp.where(is_zero, smallest, bits + xp.where(is_away, 1, -1).astype(xp.int16))
    found = moved.astype(xp.int16).view(x.dtype)
    return xp.where(x == y, y, xp.where(xp.isnan(x) | xp.isnan(y), x + y, found))


@next_after_half.grad
def _next_after_half_grad(op: OpView, dz: Tensor) -> Grads:
    return unbroadcast(dz, 0, op.inputs), zeros_like(op.inputs[1])


heaviside: OpDef = elementwise(
    "Heaviside",
    "z = 0 where x < 0, y where x is 0, 1 where x > 0.",
    scalar=lambda s, x, y: s.where(x < 0, 0, s.where(x == 0, y, s.where(x > 0, 1, x))),
    grad=lambda op, dz: (
        None,
        where(equal(op.inputs[0], zeros_like(op.inputs[0])), dz, zeros_like(dz)),
    ),
    dtypes=FLOATING,
)
gcd: OpDef = elementwise(
    "Gcd",
    "The greatest common divisor, >= 0.",
    scalar=lambda s, x, y: s.gcd(x, y),
    dtypes=INTEGER,
    traits=Traits(commutative=True),
)
lcm: OpDef = elementwise(
    "Lcm",
    "The least common multiple, >= 0.",
    scalar=lambda s, x, y: s.lcm(x, y),
    dtypes=INTEGER,
    traits=Traits(commutative=True),
)


def _clip_grad(op: OpView, dy: Tensor) -> Grads:
    x, low, high = op.inputs
    zero = zeros_like(dy)
    over, under = greater(maximum(x, low), high), less(x, low)
    return (
        where(logical_or(over, under), zero, dy),
        where(over, zero, where(under, dy, zero)),
        where(over, dy, zero),
    )


clip: OpDef = elementwise(
    "ClipByValue",
    "y = min(max(x, low), high). At a limit the gradient goes to x.",
    scalar=lambda s, x, low, high: s.min(s.max(x, low), high),
    grad=_clip_grad,
    dtypes=REAL,
)


def _nan_to_num_scalar(s: Any, x: Any, *, nan: float, posinf: float, neginf: float) -> Any:
    at_ends = s.where(x == math.inf, posinf, s.where(x == -math.inf, neginf, x))
    return s.where(s.is_nan(x), nan, at_ends)


_nan_to_num: OpDef = elementwise(
    "NanToNum",
    "x with NaN and the infinities replaced; there the slope is 0.",
    scalar=_nan_to_num_scalar,
    grad=lambda op, dy: (where(is_finite(op.inputs[0]), dy, zeros_like(dy)),),
    dtypes=FLOATING,
)


def nan_to_num(
    x: Tensor, nan: float = 0.0, posinf: float | None = None, neginf: float | None = None
) -> Tensor:
    """`x` with NaN and the infinities replaced.

    Args:
        x: floating.
        nan: stands in for NaN.
        posinf: stands in for infinity; by default the greatest number of the dtype.
        neginf: stands in for minus infinity; by default the least number of the dtype.
    """
    greatest = float(finfo(x.dtype).max)
    high = greatest if posinf is None else posinf
    low = -greatest if neginf is None else neginf
    return _nan_to_num(x, nan=float(nan), posinf=float(high), neginf=float(low))


@define("Ldexp", dtypes={"x": FLOATING, "n": INTEGER}, same_dtype=False)
def ldexp(x: TensorSpec, n: TensorSpec) -> TensorSpec:
    """z = x * 2**n for a whole number n, rounded once: 2**n alone may overflow."""
    return TensorSpec(broadcast_shapes("Ldexp", x.shape, n.shape), x.dtype)


ldexp.scalar = lambda s, x, n: s.ldexp(x, n)


@ldexp.reference
def _ldexp_kernel(xp: Any, x: Array, n: Array) -> Array:
    exponent = xp.clip(n, -9999, 9999).astype(xp.int32)
    return xp.ldexp(x.astype(computing_dtype(xp, x), copy=False), exponent).astype(x.dtype)


@ldexp.grad
def _ldexp_grad(op: OpView, dz: Tensor) -> Grads:
    return unbroadcast(ldexp(dz, op.inputs[1]), 0, op.inputs), None
