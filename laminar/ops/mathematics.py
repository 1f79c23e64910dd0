"""Exponentials, logarithms, roots, trigonometric functions; the parts of complex numbers.

Integers become the default float first.
"""

from __future__ import annotations

import math

from laminar.engine.graph import Tensor
from laminar.engine.ops.math import arithmetic, complex_numbers
from laminar.engine.ops.math import elementary as engine

from ..typing import TensorLike
from .arguments import floating, floating_pair, tensor
from .recording import public

__all__ = [
    "angle",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "cbrt",
    "conj",
    "conjugate",
    "cos",
    "cosh",
    "deg2rad",
    "exp",
    "exp2",
    "expm1",
    "i0",
    "imag",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "rad2deg",
    "real",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


@public
def exp(x: TensorLike) -> Tensor:
    """e**x."""
    return engine.exp(floating(x))


@public
def exp2(x: TensorLike) -> Tensor:
    """2**x."""
    return engine.exp2(floating(x))


@public
def expm1(x: TensorLike) -> Tensor:
    """e**x - 1, without the cancellation near 0."""
    return engine.expm1(floating(x))


@public
def log(x: TensorLike) -> Tensor:
    """The natural logarithm."""
    return engine.log(floating(x))


@public
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), without rounding 1 + x."""
    return engine.log1p(floating(x))


@public
def log2(x: TensorLike) -> Tensor:
    """The logarithm to base 2."""
    return engine.log2(floating(x))


@public
def log10(x: TensorLike) -> Tensor:
    """The logarithm to base 10."""
    return engine.log10(floating(x))


@public
def logaddexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """log(e**x1 + e**x2), without overflow."""
    return engine.logaddexp(*floating_pair(x1, x2))


@public
def logaddexp2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """log2(2**x1 + 2**x2), without overflow."""
    return engine.logaddexp2(*floating_pair(x1, x2))


@public
def sqrt(x: TensorLike) -> Tensor:
    """The square root."""
    return engine.sqrt(floating(x))


@public
def cbrt(x: TensorLike) -> Tensor:
    """The cube root, with the sign of x."""
    return engine.cbrt(floating(x))


@public
def sin(x: TensorLike) -> Tensor:
    """The sine of an angle in radians."""
    return engine.sin(floating(x))


@public
def cos(x: TensorLike) -> Tensor:
    """The cosine of an angle in radians."""
    return engine.cos(floating(x))


@public
def tan(x: TensorLike) -> Tensor:
    """The tangent of an angle in radians."""
    return engine.tan(floating(x))


@public
def arcsin(x: TensorLike) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2]."""
    return engine.arcsin(floating(x))


@public
def arccos(x: TensorLike) -> Tensor:
    """The inverse cosine, in [0, pi]."""
    return engine.arccos(floating(x))


@public
def arctan(x: TensorLike) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2]."""
    return engine.arctan(floating(x))


@public
def arctan2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The angle of the point (x2, x1), in [-pi, pi]."""
    return engine.arctan2(*floating_pair(x1, x2))


@public
def sinh(x: TensorLike) -> Tensor:
    """The hyperbolic sine."""
    return engine.sinh(floating(x))


@public
def cosh(x: TensorLike) -> Tensor:
    """The hyperbolic cosine."""
    return engine.cosh(floating(x))


@public
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent."""
    return engine.tanh(floating(x))


@public
def arcsinh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic sine."""
    return engine.arcsinh(floating(x))


@public
def arccosh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine."""
    return engine.arccosh(floating(x))


@public
def arctanh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent."""
    return engine.arctanh(floating(x))


@public
def sinc(x: TensorLike) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0."""
    return engine.sinc(floating(x))


@public
def i0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0."""
    return engine.i0(floating(x))


@public
def deg2rad(x: TensorLike) -> Tensor:
    """An angle in degrees as one in radians."""
    x = floating(x)
    return arithmetic.multiply(x, tensor(math.pi / 180, x.dtype))


@public
def rad2deg(x: TensorLike) -> Tensor:
    """An angle in radians as one in degrees."""
    x = floating(x)
    return arithmetic.multiply(x, tensor(180 / math.pi, x.dtype))


@public
def real(x: TensorLike) -> Tensor:
    """The real part; a real tensor itself."""
    return complex_numbers.real(tensor(x))


@public
def imag(x: TensorLike) -> Tensor:
    """The imaginary part; 0 for real tensors."""
    return complex_numbers.imag(tensor(x))


@public
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate; a real tensor itself."""
    return arithmetic.conjugate(tensor(x))


@public
def conjugate(x: TensorLike) -> Tensor:
    """The complex conjugate; a real tensor itself."""
    return arithmetic.conjugate(tensor(x))


@public
def angle(x: TensorLike) -> Tensor:
    """The angle of a complex number, in [-pi, pi]: 0 or pi for real numbers."""
    return complex_numbers.angle(floating(x))
