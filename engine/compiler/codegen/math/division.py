"""Whole quotients, remainders, divisors."""

from __future__ import annotations

import math
from functools import partial

from ....graph import float64
from ..control import any_lane, repeat
from ..conversions import fma
from ..function import IRFunction, Value
from .arithmetic import is_unsigned
from .floats import copysign, in_double, magnitude, select


def _differ(a: Value, b: Value) -> Value:
    """Whether the signs differ."""
    return (a < 0) ^ (b < 0)


def _quotient(fn: IRFunction, a: Value, b: Value) -> tuple[Value, Value]:
    """a / b without its fraction, and the remainder, of integers; both 0 for b = 0.

    Divisors 0 and -1 are kept from the processor: they can trap.
    """
    if is_unsigned(a):
        q = fn.binary("udiv", a, select(fn, b == 0, 1, b))
    else:
        q = fn.binary("sdiv", a, select(fn, (b == 0) | (b == -1), 1, b))
        q = fn.select(b == -1, -a, q)
    q = select(fn, b == 0, 0, q)
    return q, select(fn, b == 0, 0, a - q * b)


def _remainder(fn: IRFunction, a: Value, b: Value, *, may_overflow: bool) -> Value:
    """a - trunc(a / b) * b, exactly, in float64.

    What a rounded quotient leaves is a float: taken off repeatedly, it makes |r| 2**-52 of itself
    each time, until it is below |b|. A quotient that overflows is taken by a multiple of b.
    """
    size = magnitude(fn, b)

    def step(r: Value) -> tuple[Value, Value]:
        divisor = b
        if may_overflow:
            for _ in range(2):
                is_over = magnitude(fn, r / divisor) == math.inf
                divisor = fn.select(is_over, divisor * 2.0**600, divisor)
        q = fn.call("trunc", r / divisor)
        r = fn.select(magnitude(fn, r) >= size, fma(fn, -q, divisor, r), r)
        return r, any_lane(fn, magnitude(fn, r) >= size)

    r = repeat(fn, select(fn, size > 0, a, math.nan), step)
    was_rounded_up = (r != 0) & _differ(r, a)
    return copysign(fn, fn.select(was_rounded_up, r + copysign(fn, b, a), r), a)


def _float_remainder(fn: IRFunction, a: Value, b: Value) -> Value:
    return in_double(fn, partial(_remainder, may_overflow=a.dtype == float64), a, b)


def trunc_mod(fn: IRFunction, a: Value, b: Value) -> Value:
    """a - trunc(a / b) * b, with the sign of a; 0 for an integer b = 0."""
    if not a.is_float:
        return _quotient(fn, a, b)[1]
    return _float_remainder(fn, a, b)


def floor_mod(fn: IRFunction, a: Value, b: Value) -> Value:
    """a - floor(a / b) * b, with the sign of b; 0 for an integer b = 0."""
    if a.is_float:
        r = _float_remainder(fn, a, b)
        return fn.select(r == 0, copysign(fn, r, b), fn.select(_differ(r, b), r + b, r))
    _, r = _quotient(fn, a, b)
    return r if is_unsigned(a) else fn.select((r != 0) & _differ(r, b), r + b, r)


def floor_divide(fn: IRFunction, a: Value, b: Value) -> Value:
    """floor(a / b); 0 for an integer b = 0."""
    if not a.is_float:
        q, r = _quotient(fn, a, b)
        return q if is_unsigned(a) else fn.select((r != 0) & _differ(r, b), q - 1, q)
    quotient = a / b
    r = _float_remainder(fn, a, b)
    q = (a - r) / b
    q = fn.select((r != 0) & _differ(r, b), q - 1.0, q)
    below = fn.call("floor", q)
    whole = fn.select(q - below > 0.5, below + 1.0, below)  # q is whole but for rounding
    whole = fn.select(q == 0, copysign(fn, fn.constant(0.0, q), quotient), whole)
    return fn.select(b == 0, quotient, whole)
