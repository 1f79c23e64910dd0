"""Powers, roots, the length of a vector, and numbers scaled or moved by bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

from ....graph import float32, float64, int64, uint64
from ...ir.not_lowered import NotLoweredError
from ..conversions import convert, fma
from ..function import IRFunction, Value
from .arithmetic import is_inf
from .exponentials import exp
from .floats import FORMATS, bits_of, copysign, format_of, in_double, magnitude, select
from .logarithms import log
from .long_power import long_power


def sqrt(fn: IRFunction, x: Value) -> Value:
    """The square root."""
    format_of(x)
    return fn.call("sqrt", x)


# Divisors between 1 / this and this have an inverse that is a normal number.
_USUAL = 2.0**100


def root_quotient(fn: IRFunction, a: Value, v: Value, epsilon: float) -> Value:
    """a / (sqrt(v) + epsilon).

    A processor makes roots and quotients one after the other, and slowly. Those with AVX2 or
    AVX-512 estimate the inverse of the divisor meanwhile, and better it by 1 / (1 - error) as a
    polynomial, to 1.5 units in the last place of the quotient.
    """
    format_of(a)
    divisor = sqrt(fn, v) + epsilon
    estimate = None
    if 1 / _USUAL <= epsilon <= _USUAL and a.dtype == float32:
        estimate = _inverse_estimate(fn, divisor)
    if estimate is None:
        return a / divisor
    error = fma(fn, -divisor, estimate, 1.0)
    if fn.module.vector_bytes < 64:  # 12 digits of the estimate are too few for one step
        error = fma(fn, error, error, error)
    inverse = fma(fn, estimate, error, estimate)
    return a * fn.select(divisor < math.inf, inverse, estimate)


def _inverse_estimate(fn: IRFunction, x: Value) -> Value | None:
    """1 / x in 12 binary digits or more, if there is an instruction for a vector of such."""
    lanes = fn.module.vector_bytes // x.dtype.size
    if x.lanes != lanes or lanes < 8:
        return None
    kind = x.type
    if lanes == 16:
        name, more = "llvm.x86.avx512.rcp14.ps.512", f", {kind} zeroinitializer, i16 -1"
        fn.module.declarations[name] = f"declare {kind} @{name}({kind}, {kind}, i16)"
    else:
        name, more = "llvm.x86.avx.rcp.ps.256", ""
        fn.module.declarations[name] = f"declare {kind} @{name}({kind})"
    return fn.instruction(f"call {kind} @{name}({x}{more})", x.dtype, x.lanes)


def _double_cbrt(fn: IRFunction, x: Value) -> Value:
    t = magnitude(fn, x)
    y = exp(fn, log(fn, t) * (1 / 3))
    # A step of Newton's method; 0 and infinity stay.
    better = y - (y - t / (y * y)) * (1 / 3)
    return copysign(fn, fn.select(magnitude(fn, better) < math.inf, better, y), x)


def cbrt(fn: IRFunction, x: Value) -> Value:
    """The cube root, with the sign of x."""
    return in_double(fn, _double_cbrt, x)


def power(fn: IRFunction, x: Value, y: Value) -> Value:
    """x ** y as exp(y * log |x|), with more digits between the two than the type has.

    Raises:
        NotLoweredError: the values are neither float32 nor float64.
    """
    if y.is_constant and x.is_float and y.name == fn.constant(2.0, y).name:
        return x * x
    if y.is_constant and x.is_float and y.name == fn.constant(3.0, y).name:
        return x * x * x
    if x.dtype not in FORMATS:
        raise NotLoweredError(f"a power of {x.dtype}")
    if x.dtype == float64:
        return _signed_power(fn, x, y, long_power)
    return in_double(fn, partial(_signed_power, power_of=_double_power), x, y)


def _double_power(fn: IRFunction, x: Value, y: Value) -> Value:
    """As float32 takes it."""
    return exp(fn, y * log(fn, x))


def _signed_power(
    fn: IRFunction, x: Value, y: Value, power_of: Callable[[IRFunction, Value, Value], Value]
) -> Value:
    """x ** y for any x, by `power_of`, which is that of positive ones, 0 and infinity."""
    size = magnitude(fn, x)
    z = power_of(fn, size, y)
    # (-1)**y for a negative x, -0 included; NaN between whole numbers, unless |x| is 0 or infinite.
    is_negative = copysign(fn, fn.constant(1.0, x), x) < 0
    half = y * 0.5
    is_whole = fn.call("roundeven", y) == y
    is_odd = is_whole & (fn.call("roundeven", half) != half)
    z = fn.select(is_negative & is_odd, -z, z)
    z = select(fn, (x < 0) & (size < math.inf) & ~is_whole & (y == y), math.nan, z)
    # log |x| = 0 times infinity, and what is 1 even for NaN.
    is_one = (y == 0) | (x == 1.0) | ((x == -1.0) & is_inf(fn, y))
    return select(fn, is_one, 1.0, z)


def hypot(fn: IRFunction, x: Value, y: Value) -> Value:
    """sqrt(x**2 + y**2); infinite if either is, even beside NaN."""
    layout = format_of(x)
    x, y = magnitude(fn, x), magnitude(fn, y)
    # Scaled by a power of two with which the greater one is near 1, the squares stay in range.
    unit = 1 << layout.mantissa_bits
    power = bits_of(fn, fn.select(x > y, x, y)) & layout.exponent_mask
    power = select(fn, power < unit, unit, power)
    scale = fn.bits(fn.constant((2 * layout.bias + 1) * unit, power) - power, x.dtype)
    a, b = x * scale, y * scale
    z = sqrt(fn, fma(fn, a, a, b * b)) / scale
    return select(fn, (x == math.inf) | (y == math.inf), math.inf, z)


def next_after(fn: IRFunction, x: Value, y: Value) -> Value:
    """The number next to x on the way to y."""
    bits = bits_of(fn, x)
    # The bits, without that of the sign, count up with the magnitude.
    step = select(fn, (y > x) == (x > 0), 1, fn.constant(-1, bits))
    least = fn.bits(fn.constant(1, bits), x.dtype)
    z = fn.select(x == 0, copysign(fn, least, y), fn.bits(bits + step, x.dtype))
    z = fn.select(x == y, y, z)
    return fn.select((x != x) | (y != y), x + y, z)


def ldexp(fn: IRFunction, x: Value, n: Value) -> Value:
    """x * 2**n for integers n, rounded once.

    Raises:
        NotLoweredError: x is not float32: it takes a wider type to round once.
    """
    if x.dtype != float32:
        raise NotLoweredError(f"ldexp of {x.dtype}")
    layout = FORMATS[float64]
    most = 2 * FORMATS[float32].bias + 2 * FORMATS[float32].mantissa_bits  # beyond it, 0 or inf
    if n.dtype == uint64:
        n = select(fn, n > most, most, n)
    n = convert(fn, n, int64)
    n = select(fn, n > most, most, n)
    n = select(fn, n < -most, -most, n)
    power = fn.binary("shl", n + layout.bias, layout.mantissa_bits)
    return convert(fn, convert(fn, x, float64) * fn.bits(power, float64), float32)
