"""What takes a few instructions: limits, signs, rounding, tests, logic, shifts."""

from __future__ import annotations

import math

from ....graph import bool_
from ..function import IRFunction, Value
from .floats import magnitude, select


def maximum(fn: IRFunction, a: Value, b: Value) -> Value:
    """The greater of two; NaN if either is, and `b` of equal ones, as in NumPy."""
    return _chosen(fn, "gt", a, b)


def minimum(fn: IRFunction, a: Value, b: Value) -> Value:
    """The smaller of two; NaN if either is, and `b` of equal ones, as in NumPy."""
    return _chosen(fn, "lt", a, b)


def _chosen(fn: IRFunction, relation: str, a: Value, b: Value) -> Value:
    if not a.is_float:
        return fn.select(fn.compare(relation, a, b), a, b)
    if b.is_constant and not a.is_constant and not _is_among(fn, b, math.nan):
        # Which of equal ones is taken matters for zeros alone: else it is one instruction.
        if _is_among(fn, b, 0.0, -0.0):
            return fn.select(fn.compare("le" if relation == "gt" else "ge", a, b), b, a)
        return fn.select(fn.compare(relation, b, a), b, a)
    y = fn.select(fn.compare(relation, a, b), a, b)  # `b` also when it is NaN
    return fn.select(is_nan(fn, a), a, y)


def _is_among(fn: IRFunction, x: Value, *numbers: float) -> bool:
    """Whether a constant is one of the numbers."""
    return x.name in (fn.constant(n, x).name for n in numbers)


def absolute(fn: IRFunction, x: Value) -> Value:
    """|x|; the least integer stays what it is."""
    if x.is_float:
        return magnitude(fn, x)
    return x if is_unsigned(x) else fn.select(x < 0, -x, x)


def is_unsigned(x: Value) -> bool:
    """Whether it has no sign: unsigned integers and booleans."""
    return x.dtype == bool_ or x.dtype.startswith("u")


def sign(fn: IRFunction, x: Value) -> Value:
    """-1, 0 or 1; NaN of NaN."""
    positive = fn.constant(1, x)
    if is_unsigned(x):
        return select(fn, x > 0, positive, 0)
    at_zero = select(fn, x == 0, 0, x)
    return fn.select(x > 0, positive, select(fn, x < 0, -1, at_zero))


def _rounded(intrinsic: str, fn: IRFunction, x: Value) -> Value:
    return fn.call(intrinsic, x) if x.is_float else x


def floor(fn: IRFunction, x: Value) -> Value:
    """The greatest integer <= x."""
    return _rounded("floor", fn, x)


def ceil(fn: IRFunction, x: Value) -> Value:
    """The least integer >= x."""
    return _rounded("ceil", fn, x)


def rint(fn: IRFunction, x: Value) -> Value:
    """The nearest integer, halves to even."""
    return _rounded("roundeven", fn, x)


def trunc(fn: IRFunction, x: Value) -> Value:
    """The integer part."""
    return _rounded("trunc", fn, x)


def real_part(fn: IRFunction, x: Value) -> Value:
    """`x` itself: no complex value exists here."""
    return x


def is_nan(fn: IRFunction, x: Value) -> Value:
    """Whether x is NaN."""
    return x != x


def is_inf(fn: IRFunction, x: Value) -> Value:
    """Whether x is infinite."""
    return magnitude(fn, x) == math.inf


def is_finite(fn: IRFunction, x: Value) -> Value:
    """Whether x is neither infinite nor NaN."""
    return magnitude(fn, x) < math.inf


def _truth(x: Value) -> Value:
    return x if x.dtype == bool_ else x != 0


def logical_and(fn: IRFunction, a: Value, b: Value) -> Value:
    """a and b."""
    return _truth(a) & _truth(b)


def logical_or(fn: IRFunction, a: Value, b: Value) -> Value:
    """a or b."""
    return _truth(a) | _truth(b)


def logical_xor(fn: IRFunction, a: Value, b: Value) -> Value:
    """a or b, not both."""
    return _truth(a) ^ _truth(b)


def logical_not(fn: IRFunction, a: Value) -> Value:
    """not a."""
    return ~_truth(a)


def shift_left(fn: IRFunction, a: Value, b: Value) -> Value:
    """a * 2**b; 0 when all bits leave, or b is negative, as in NumPy."""
    if _is_known_within(fn, b):
        return fn.binary("shl", a, b)
    return select(fn, _is_within(fn, b), fn.binary("shl", a, b), 0)


def shift_right(fn: IRFunction, a: Value, b: Value) -> Value:
    """floor(a / 2**b); the sign alone when all bits leave, or b is negative, as in NumPy."""
    if _is_known_within(fn, b):
        return fn.binary("lshr" if is_unsigned(a) else "ashr", a, b)
    if is_unsigned(a):
        return select(fn, _is_within(fn, b), fn.binary("lshr", a, b), 0)
    most = fn.constant(8 * a.dtype.size - 1, b)
    return fn.binary("ashr", a, fn.select(_is_within(fn, b), b, most))


def _is_known_within(fn: IRFunction, count: Value) -> bool:
    """Whether a shift surely moves fewer bits than there are."""
    return count.is_constant and _is_among(fn, count, *range(8 * count.dtype.size))


def _is_within(fn: IRFunction, count: Value) -> Value:
    """Whether a shift moves fewer bits than there are."""
    bits = 8 * count.dtype.size
    return fn.instruction(f"icmp ult {count}, {fn.constant(bits, count).name}", bool_, count.lanes)
