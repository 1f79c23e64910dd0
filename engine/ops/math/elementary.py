"""Powers, exponentials, logarithms, trigonometric and special functions: each op a row.

Gradients follow the convention dL/d(Re z) + i dL/d(Im z) for complex z, so the factor of a
holomorphic function is conjugated. What arrives is multiplied by one factor of a slope after
another where their product can overflow, or vanish, although the gradient does not.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import InvalidArgumentError
from ...graph import FLOATING, INEXACT, EagerTensor, GraphTensor, OpView, Tensor, finfo, value_of
from ..core.basic import const_op, ones_like, zeros_like
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from ..core.traits import Traits
from .arithmetic import absolute, conjugate
from .cast import cast
from .compare import (
    equal,
    is_finite,
    is_nan,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    not_equal,
    where,
)

_LOG_2 = math.log(2.0)
_LOG_10 = math.log(10.0)

# Powers and roots

sqrt: OpDef = elementwise(
    "Sqrt",
    "y = x ** (1/2); NaN for negative x, infinite slope at 0.",
    scalar=lambda s, x: s.sqrt(x),
    grad=lambda op, dy: (dy * conjugate(0.5 / op.outputs[0]),),
    dtypes=INEXACT,
)
rsqrt: OpDef = elementwise(
    "Rsqrt",
    "y = x ** (-1/2).",
    scalar=lambda s, x: 1 / s.sqrt(x),
    grad=lambda op, dy: (dy * conjugate(-0.5 * op.outputs[0]) / conjugate(op.inputs[0]),),
    dtypes=INEXACT,
)
cbrt: OpDef = elementwise(
    "Cbrt",
    "y = x ** (1/3), with the sign of x.",
    scalar=lambda s, x: s.cbrt(x),
    grad=lambda op, dy: (dy / (3.0 * op.outputs[0] * op.outputs[0]),),
    dtypes=FLOATING,
)


def _power_grad(op: OpView, dz: Tensor) -> Grads:
    x, y = op.inputs
    (z,) = op.outputs
    zero, one = zeros_like(x), ones_like(x)
    # y * x**(y - 1) at x = y = 0 would be 0 * inf, and the slope of x**0 is 0.
    both_zero = logical_and(equal(x, zero), equal(y, zeros_like(y)))
    weighted = dz * conjugate(y)
    slope = conjugate(power(x, where(both_zero, one, y - 1)))
    dx = weighted * slope
    if x.dtype.is_floating and not _is_at_least_one(y):
        # x**(y - 1) may be too large, or too small, where x**y and the gradient are not.
        size = absolute(slope)
        least = float(finfo(size.dtype).tiny)
        is_lost = logical_or(logical_not(is_finite(size)), size < least)
        has_other = logical_and(is_lost, logical_and(not_equal(x, zero), is_finite(z)))
        dx = where(has_other, weighted * conjugate(z) / conjugate(where(has_other, x, one)), dx)
    # Of 0**y, and of x**y for negative x, which y cannot be moved from, the slope is taken as 0.
    has_no_log = equal(x, zero) if x.dtype.is_complex else less_equal(x, zero)
    z = where(has_no_log, zeros_like(z), z)
    return dx, dz * conjugate(z) * conjugate(log(where(has_no_log, one, x)))


def _is_at_least_one(exponent: Tensor) -> bool:
    """Whether an exponent is known, and such that x**(y - 1) is lost only where x**y is, too."""
    value: Any = None
    if isinstance(exponent, GraphTensor):
        if exponent.op.definition is const_op:
            value = exponent.op.attrs["value"]
    elif type(exponent) is EagerTensor:
        value = value_of(exponent)
    return value is not None and not exponent.dtype.is_complex and bool(np.all(value >= 1))


power: OpDef = elementwise(
    "Pow",
    "z = x ** y; integers cannot be raised to negative powers.",
    scalar=lambda s, x, y: x**y,
    grad=_power_grad,
)

# Exponentials and logarithms

exp: OpDef = elementwise(
    "Exp",
    "y = e ** x.",
    scalar=lambda s, x: s.exp(x),
    grad=lambda op, dy: (dy * conjugate(op.outputs[0]),),
    dtypes=INEXACT,
)
exp2: OpDef = elementwise(
    "Exp2",
    "y = 2 ** x.",
    scalar=lambda s, x: s.exp2(x),
    grad=lambda op, dy: (dy * op.outputs[0] * _LOG_2,),
    dtypes=FLOATING,
)
expm1: OpDef = elementwise(
    "Expm1",
    "y = e ** x - 1, without the cancellation near 0.",
    scalar=lambda s, x: s.expm1(x),
    grad=lambda op, dy: (dy * conjugate(exp(op.inputs[0])),),  # 1 + y cancels near -1
    dtypes=INEXACT,
)
log: OpDef = elementwise(
    "Log",
    "The natural logarithm: -inf at 0, NaN for negative x.",
    scalar=lambda s, x: s.log(x),
    grad=lambda op, dy: (dy / conjugate(op.inputs[0]),),
    dtypes=INEXACT,
)
log1p: OpDef = elementwise(
    "Log1p",
    "y = log(1 + x), without rounding 1 + x.",
    scalar=lambda s, x: s.log1p(x),
    grad=lambda op, dy: (dy / conjugate(1 + op.inputs[0]),),
    dtypes=INEXACT,
)
log2: OpDef = elementwise(
    "Log2",
    "The logarithm to base 2.",
    scalar=lambda s, x: s.log2(x),
    grad=lambda op, dy: (dy * (1 / _LOG_2) / op.inputs[0],),
    dtypes=FLOATING,
)
log10: OpDef = elementwise(
    "Log10",
    "The logarithm to base 10.",
    scalar=lambda s, x: s.log10(x),
    grad=lambda op, dy: (dy * (1 / _LOG_10) / op.inputs[0],),
    dtypes=FLOATING,
)


def _add_logs(s: Any, x: Any, y: Any, base: float) -> Any:
    """log(base**x + base**y) to that base, by the greater and what the other adds to it."""
    high, low = s.max(x, y), s.min(x, y)
    scale = math.log(base)
    added = s.log1p(s.exp((low - high) * scale)) / scale
    return s.where(high == low, high + math.log(2.0) / scale, high + added)  # also inf and inf


def _add_logs_grad(op: OpView, dz: Tensor, base: float) -> Grads:
    x, y = op.inputs
    gap = (x - y) * math.log(base)
    gap = where(is_nan(gap), zeros_like(gap), gap)  # of two equal infinities
    return dz * sigmoid(gap), dz * sigmoid(-gap)


logaddexp: OpDef = elementwise(
    "LogAddExp",
    "z = log(e**x + e**y), without overflow.",
    scalar=lambda s, x, y: _add_logs(s, x, y, math.e),
    grad=lambda op, dz: _add_logs_grad(op, dz, math.e),
    dtypes=FLOATING,
    traits=Traits(commutative=True),
)
logaddexp2: OpDef = elementwise(
    "LogAddExp2",
    "z = log2(2**x + 2**y), without overflow.",
    scalar=lambda s, x, y: _add_logs(s, x, y, 2.0),
    grad=lambda op, dz: _add_logs_grad(op, dz, 2.0),
    dtypes=FLOATING,
    traits=Traits(commutative=True),
)
xlogy: OpDef = elementwise(
    "Xlogy",
    "z = x * log(y); 0 where x is 0, unless y is NaN.",
    scalar=lambda s, x, y: s.where(s.logical_and(x == 0, y == y), 0, x * s.log(y)),
    grad=lambda op, dz: (
        dz * xlogy(_is_not_zero(op.inputs[0]), op.inputs[1]),
        xdivy(dz * op.inputs[0], op.inputs[1]),
    ),
    dtypes=FLOATING,
)
xdivy: OpDef = elementwise(
    "Xdivy",
    "z = x / y; 0 where x is 0, unless y is NaN.",
    scalar=lambda s, x, y: s.where(s.logical_and(x == 0, y == y), 0, x / y),
    grad=lambda op, dz: (
        xdivy(dz * _is_not_zero(op.inputs[0]), op.inputs[1]),
        -xdivy(dz * op.outputs[0], op.inputs[1]),
    ),
    dtypes=FLOATING,
)
divide_no_nan: OpDef = elementwise(
    "DivNoNan",
    "z = x / y; 0 where y is 0.",
    scalar=lambda s, x, y: s.where(y == 0, 0, x / y),
    grad=lambda op, dz: (
        divide_no_nan(dz, conjugate(op.inputs[1])),
        -divide_no_nan(dz * conjugate(op.outputs[0]), conjugate(op.inputs[1])),
    ),
    dtypes=INEXACT,
)
multiply_no_nan: OpDef = elementwise(
    "MulNoNan",
    "z = x * y; 0 where y is 0, whatever x is.",
    scalar=lambda s, x, y: s.where(y == 0, 0, x * y),
    grad=lambda op, dz: (
        multiply_no_nan(dz, conjugate(op.inputs[1])),
        multiply_no_nan(conjugate(op.inputs[0]), dz),
    ),
    dtypes=INEXACT,
)


def flat_at_zero(fn: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """fn(x), where fn(0) = 0 and the slope there, which is infinite, is taken as 0."""
    is_zero = equal(x, zeros_like(x))
    return where(is_zero, x, fn(where(is_zero, ones_like(x), x)))


def _is_not_zero(x: Tensor) -> Tensor:
    """1 where `x` is not 0, else 0."""
    return cast(not_equal(x, zeros_like(x)), x.dtype)


# Trigonometric and hyperbolic functions, angles in radians

sin: OpDef = elementwise(
    "Sin",
    "The sine.",
    scalar=lambda s, x: s.sin(x),
    grad=lambda op, dy: (dy * conjugate(cos(op.inputs[0])),),
    dtypes=INEXACT,
)
cos: OpDef = elementwise(
    "Cos",
    "The cosine.",
    scalar=lambda s, x: s.cos(x),
    grad=lambda op, dy: (-dy * conjugate(sin(op.inputs[0])),),
    dtypes=INEXACT,
)
tan: OpDef = elementwise(
    "Tan",
    "The tangent.",
    scalar=lambda s, x: s.tan(x),
    grad=lambda op, dy: (dy * conjugate(1 + op.outputs[0] * op.outputs[0]),),
    dtypes=INEXACT,
)
arcsin: OpDef = elementwise(
    "Asin",
    "The inverse sine, in [-pi/2, pi/2]; NaN for |x| > 1.",
    scalar=lambda s, x: s.arcsin(x),
    grad=lambda op, dy: (dy * conjugate(_slope_of_arcsin(op.inputs[0])),),
    dtypes=INEXACT,
)
arccos: OpDef = elementwise(
    "Acos",
    "The inverse cosine, in [0, pi]; NaN for |x| > 1.",
    scalar=lambda s, x: s.arccos(x),
    grad=lambda op, dy: (-dy * conjugate(_slope_of_arcsin(op.inputs[0])),),
    dtypes=INEXACT,
)
arctan: OpDef = elementwise(
    "Atan",
    "The inverse tangent, in [-pi/2, pi/2].",
    scalar=lambda s, x: s.arctan(x),
    grad=lambda op, dy: (_over_root(_over_root(dy, op.inputs[0]), op.inputs[0]),),
    dtypes=INEXACT,
)


def _slope_of_arcsin(x: Tensor) -> Tensor:
    slope: Tensor = rsqrt((1 - x) * (1 + x))  # 1 - x * x cancels near 1
    return slope


def _over_root(dy: Tensor, x: Tensor) -> Tensor:
    """dy / sqrt(1 + x**2), where for real x the square does not overflow."""
    root: Tensor = sqrt(x * x + 1) if x.dtype.is_complex else hypot(x, ones_like(x))
    quotient: Tensor = dy / conjugate(root)
    return quotient


def _arctan2_grad(op: OpView, dz: Tensor) -> Grads:
    y, x = op.inputs
    r = hypot(y, x)  # y * y + x * x could overflow
    return dz * (x / r) / r, -dz * (y / r) / r


arctan2: OpDef = elementwise(
    "Atan2",
    "The angle of the point (x, y), in [-pi, pi]: arctan(y / x) in the right quadrant.",
    scalar=lambda s, y, x: s.arctan2(y, x),
    grad=_arctan2_grad,
    dtypes=FLOATING,
)


def _root_quotient_grad(op: OpView, dy: Tensor) -> Grads:
    _, x = op.inputs
    root: Tensor = sqrt(x)
    divisor = root + op.attrs["epsilon"]
    return dy / divisor, dy * op.outputs[0] / (-2 * root * divisor)


root_quotient: OpDef = elementwise(
    "RootQuotient",
    "y = a / (sqrt(x) + epsilon): the step of optimizers that scale by a mean of squares.",
    scalar=lambda s, a, x, *, epsilon: s.root_quotient(a, x, epsilon),
    grad=_root_quotient_grad,
    dtypes=FLOATING,
)
hypot: OpDef = elementwise(
    "Hypot",
    "z = sqrt(x**2 + y**2), without overflow on the way. The slope at (0, 0) is 0.",
    scalar=lambda s, x, y: s.hypot(x, y),
    grad=lambda op, dz: tuple(dz * divide_no_nan(x, op.outputs[0]) for x in op.inputs),
    dtypes=FLOATING,
    traits=Traits(commutative=True),
)
sinh: OpDef = elementwise(
    "Sinh",
    "The hyperbolic sine.",
    scalar=lambda s, x: s.sinh(x),
    grad=lambda op, dy: (dy * conjugate(cosh(op.inputs[0])),),
    dtypes=INEXACT,
)
cosh: OpDef = elementwise(
    "Cosh",
    "The hyperbolic cosine.",
    scalar=lambda s, x: s.cosh(x),
    grad=lambda op, dy: (dy * conjugate(sinh(op.inputs[0])),),
    dtypes=INEXACT,
)
tanh: OpDef = elementwise(
    "Tanh",
    "The hyperbolic tangent.",
    scalar=lambda s, x: s.tanh(x),
    grad=lambda op, dy: (dy * conjugate(1 - op.outputs[0] * op.outputs[0]),),
    dtypes=INEXACT,
)
arcsinh: OpDef = elementwise(
    "Asinh",
    "The inverse hyperbolic sine.",
    scalar=lambda s, x: s.arcsinh(x),
    grad=lambda op, dy: (_over_root(dy, op.inputs[0]),),
    dtypes=INEXACT,
)
arccosh: OpDef = elementwise(
    "Acosh",
    "The inverse hyperbolic cosine, >= 0; NaN for x < 1.",
    scalar=lambda s, x: s.arccosh(x),
    grad=lambda op, dy: (dy * conjugate(rsqrt(op.inputs[0] - 1) * rsqrt(op.inputs[0] + 1)),),
    dtypes=INEXACT,
)
arctanh: OpDef = elementwise(
    "Atanh",
    "The inverse hyperbolic tangent; NaN for |x| > 1.",
    scalar=lambda s, x: s.arctanh(x),
    grad=lambda op, dy: (dy / conjugate((1 - op.inputs[0]) * (1 + op.inputs[0])),),
    dtypes=INEXACT,
)
sigmoid: OpDef = elementwise(
    "Sigmoid",
    "y = 1 / (1 + exp(-x)), the logistic function.",
    scalar=lambda s, x: s.sigmoid(x),
    grad=lambda op, dy: (dy * conjugate(op.outputs[0] * (1 - op.outputs[0])),),
    dtypes=INEXACT,
)

# Special functions


def _sinc(s: Any, x: Any, *, order: int = 0) -> Any:
    """The derivative of that order of f(x) = sin(pi x) / (pi x).

    Near 0 by f's power series. Elsewhere x f^(n) + n f^(n-1) = pi**(n-1) sin(pi x + n pi/2), which
    is the n-th derivative of x f(x) = sin(pi x) / pi.
    """
    square = x * x
    near: Any = 0.0
    for k in range(16 + order, (order + 1) // 2 - 1, -1):
        term = (-1) ** k * math.pi ** (2 * k) / ((2 * k + 1) * math.factorial(2 * k - order))
        near = near * square + term
    if order % 2:
        near = near * x
    divisor = s.where(x == 0, 1, x)
    whole = s.round(x)  # sin(pi x) = +-sin(pi (x - whole)), and x - whole is exact
    turned = s.abs(whole - 2 * s.round(whole / 2))
    angle = math.pi * (x - whole)
    sine, cosine = (1 - 2 * turned) * s.sin(angle), (1 - 2 * turned) * s.cos(angle)
    far = sine / (math.pi * divisor)
    for n in range(1, order + 1):
        wave = (sine, cosine, -sine, -cosine)[n % 4]
        far = (math.pi ** (n - 1) * wave - n * far) / divisor
    return s.where(s.abs(x) < 1, near, far)


sinc: OpDef = elementwise(
    "Sinc",
    "y = sin(pi x) / (pi x), 1 at 0; or its derivative of some `order`.",
    scalar=_sinc,
    grad=lambda op, dy: (dy * sinc(op.inputs[0], order=op.attrs["order"] + 1),),
    dtypes=FLOATING,
)
erf: OpDef = elementwise(
    "Erf",
    "The error function: 2 / sqrt(pi) * integral of exp(-t**2) from 0 to x.",
    scalar=lambda s, x: s.erf(x),
    grad=lambda op, dy: (dy * (2 / math.sqrt(math.pi)) * exp(-op.inputs[0] * op.inputs[0]),),
    dtypes=FLOATING,
)
erfc: OpDef = elementwise(
    "Erfc",
    "y = 1 - erf(x), exact where it is small.",
    scalar=lambda s, x: s.erfc(x),
    grad=lambda op, dy: (dy * (-2 / math.sqrt(math.pi)) * exp(-op.inputs[0] * op.inputs[0]),),
    dtypes=FLOATING,
)
erfinv: OpDef = elementwise(
    "Erfinv",
    "The y for which erf(y) = x; infinite at -1 and 1, NaN beyond.",
    scalar=lambda s, x: s.erfinv(x),
    grad=lambda op, dy: (dy * (math.sqrt(math.pi) / 2) * exp(op.outputs[0] * op.outputs[0]),),
    dtypes=FLOATING,
)
lgamma: OpDef = elementwise(
    "Lgamma",
    "y = log |gamma(x)|; infinite at 0, -1, -2, ...",
    scalar=lambda s, x: s.lgamma(x),
    grad=lambda op, dy: (dy * digamma(op.inputs[0]),),
    dtypes=FLOATING,
)
digamma: OpDef = elementwise(
    "Digamma",
    "The derivative of lgamma.",
    scalar=lambda s, x: s.digamma(x),
    grad=lambda op, dy: (dy * _polygamma(op.inputs[0], n=1),),
    dtypes=FLOATING,
)


def _polygamma_scalar(s: Any, x: Any, *, n: int) -> Any:
    return s.polygamma(n, x)


_polygamma: OpDef = elementwise(
    "Polygamma",
    "The n-th derivative of digamma, n >= 1.",
    scalar=_polygamma_scalar,
    grad=lambda op, dy: (dy * _polygamma(op.inputs[0], n=op.attrs["n"] + 1),),
    dtypes=FLOATING,
)


def polygamma(n: int, x: Tensor) -> Tensor:
    """The n-th derivative of digamma, for n >= 0.

    Raises:
        InvalidArgumentError: n is negative.
    """
    if n < 0:
        raise InvalidArgumentError(f"polygamma: n must be at least 0, got {n}")
    return _polygamma(x, n=n) if n else digamma(x)


def _bessel_scalar(s: Any, x: Any, *, order: int) -> Any:
    return s.bessel_i(order, x)


def _bessel_grad(op: OpView, dy: Tensor) -> Grads:
    # Abramowitz and Stegun 9.6.26 and 9.6.27
    (x,), order = op.inputs, op.attrs["order"]
    above = _bessel(x, order=order + 1)
    return (dy * (above if order == 0 else 0.5 * (_bessel(x, order=order - 1) + above)),)


_bessel: OpDef = elementwise(
    "BesselI",
    "The modified Bessel function of the first kind, of a whole order >= 0.",
    scalar=_bessel_scalar,
    grad=_bessel_grad,
    dtypes=FLOATING,
)


def i0(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return _bessel(x, order=0)


def i1(x: Tensor) -> Tensor:
    """The modified Bessel function of the first kind of order 1."""
    return _bessel(x, order=1)
