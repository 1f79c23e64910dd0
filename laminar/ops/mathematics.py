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
    """e**x.

    Examples:
        >>> ops.exp([0.0, 1.0])
        Tensor([1.    , 2.7183], shape=(2,), dtype=float32)
    """
    return engine.exp(floating(x))


@public
def exp2(x: TensorLike) -> Tensor:
    """2**x.

    Examples:
        >>> ops.exp2([3.0, -1.0])
        Tensor([8. , 0.5], shape=(2,), dtype=float32)
    """
    return engine.exp2(floating(x))


@public
def expm1(x: TensorLike) -> Tensor:
    """e**x - 1, without the cancellation near 0.

    Examples:
        >>> ops.expm1([0.0, 1e-4])
        Tensor([0.    , 0.0001], shape=(2,), dtype=float32)
    """
    return engine.expm1(floating(x))


@public
def log(x: TensorLike) -> Tensor:
    """The natural logarithm.

    Examples:
        >>> ops.log([1.0, np.e])
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """
    return engine.log(floating(x))


@public
def log1p(x: TensorLike) -> Tensor:
    """log(1 + x), without rounding 1 + x.

    Examples:
        >>> ops.log1p([0.0, 1.0])
        Tensor([0.    , 0.6931], shape=(2,), dtype=float32)
    """
    return engine.log1p(floating(x))


@public
def log2(x: TensorLike) -> Tensor:
    """The logarithm to base 2.

    Examples:
        >>> ops.log2([1.0, 8.0])
        Tensor([0., 3.], shape=(2,), dtype=float32)
    """
    return engine.log2(floating(x))


@public
def log10(x: TensorLike) -> Tensor:
    """The logarithm to base 10.

    Examples:
        >>> ops.log10([1.0, 1000.0])
        Tensor([0., 3.], shape=(2,), dtype=float32)
    """
    return engine.log10(floating(x))


@public
def logaddexp(x1: TensorLike, x2: TensorLike) -> Tensor:
    """log(e**x1 + e**x2), without overflow.

    Examples:
        >>> ops.logaddexp([0.0], [0.0])
        Tensor([0.6931], shape=(1,), dtype=float32)
    """
    return engine.logaddexp(*floating_pair(x1, x2))


@public
def logaddexp2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """log2(2**x1 + 2**x2), without overflow.

    Examples:
        >>> ops.logaddexp2([3.0], [3.0])
        Tensor([4.], shape=(1,), dtype=float32)
    """
    return engine.logaddexp2(*floating_pair(x1, x2))


@public
def sqrt(x: TensorLike) -> Tensor:
    """The square root.

    Examples:
        >>> ops.sqrt([4.0, 2.0])
        Tensor([2.    , 1.4142], shape=(2,), dtype=float32)
    """
    return engine.sqrt(floating(x))


@public
def cbrt(x: TensorLike) -> Tensor:
    """The cube root, with the sign of x.

    Examples:
        >>> ops.cbrt([8.0, -27.0])
        Tensor([ 2., -3.], shape=(2,), dtype=float32)
    """
    return engine.cbrt(floating(x))


@public
def sin(x: TensorLike) -> Tensor:
    """The sine of an angle in radians.

    Examples:
        >>> ops.sin([0.0, np.pi / 2])
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """
    return engine.sin(floating(x))


@public
def cos(x: TensorLike) -> Tensor:
    """The cosine of an angle in radians.

    Examples:
        >>> ops.cos([0.0, np.pi])
        Tensor([ 1., -1.], shape=(2,), dtype=float32)
    """
    return engine.cos(floating(x))


@public
def tan(x: TensorLike) -> Tensor:
    """The tangent of an angle in radians.

    Examples:
        >>> ops.tan([0.0, np.pi / 4])
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """
    return engine.tan(floating(x))


@public
def arcsin(x: TensorLike) -> Tensor:
    """The inverse sine, in [-pi/2, pi/2].

    Examples:
        >>> ops.arcsin([0.0, 1.0])
        Tensor([0.    , 1.5708], shape=(2,), dtype=float32)
    """
    return engine.arcsin(floating(x))


@public
def arccos(x: TensorLike) -> Tensor:
    """The inverse cosine, in [0, pi].

    Examples:
        >>> ops.arccos([1.0, 0.0, -1.0])
        Tensor([0.    , 1.5708, 3.1416], shape=(3,), dtype=float32)
    """
    return engine.arccos(floating(x))


@public
def arctan(x: TensorLike) -> Tensor:
    """The inverse tangent, in [-pi/2, pi/2].

    Examples:
        >>> ops.arctan([0.0, 1.0])
        Tensor([0.    , 0.7854], shape=(2,), dtype=float32)
    """
    return engine.arctan(floating(x))


@public
def arctan2(x1: TensorLike, x2: TensorLike) -> Tensor:
    """The angle of the point (x2, x1), in [-pi, pi].

    Examples:
        >>> ops.arctan2([1.0, -1.0], [1.0, -1.0])
        Tensor([ 0.7854, -2.3562], shape=(2,), dtype=float32)
    """
    return engine.arctan2(*floating_pair(x1, x2))


@public
def sinh(x: TensorLike) -> Tensor:
    """The hyperbolic sine.

    Examples:
        >>> ops.sinh([0.0, 1.0])
        Tensor([0.    , 1.1752], shape=(2,), dtype=float32)
    """
    return engine.sinh(floating(x))


@public
def cosh(x: TensorLike) -> Tensor:
    """The hyperbolic cosine.

    Examples:
        >>> ops.cosh([0.0, 1.0])
        Tensor([1.    , 1.5431], shape=(2,), dtype=float32)
    """
    return engine.cosh(floating(x))


@public
def tanh(x: TensorLike) -> Tensor:
    """The hyperbolic tangent.

    Examples:
        >>> ops.tanh([0.0, 1.0])
        Tensor([0.    , 0.7616], shape=(2,), dtype=float32)
    """
    return engine.tanh(floating(x))


@public
def arcsinh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic sine.

    Examples:
        >>> ops.arcsinh([0.0, 1.0])
        Tensor([0.    , 0.8814], shape=(2,), dtype=float32)
    """
    return engine.arcsinh(floating(x))


@public
def arccosh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic cosine.

    Examples:
        >>> ops.arccosh([1.0, 2.0])
        Tensor([0.   , 1.317], shape=(2,), dtype=float32)
    """
    return engine.arccosh(floating(x))


@public
def arctanh(x: TensorLike) -> Tensor:
    """The inverse hyperbolic tangent.

    Examples:
        >>> ops.arctanh([0.0, 0.5])
        Tensor([0.    , 0.5493], shape=(2,), dtype=float32)
    """
    return engine.arctanh(floating(x))


@public
def sinc(x: TensorLike) -> Tensor:
    """sin(pi x) / (pi x), 1 at 0.

    Examples:
        >>> ops.sinc([0.0, 0.5])
        Tensor([1.    , 0.6366], shape=(2,), dtype=float32)
    """
    return engine.sinc(floating(x))


@public
def i0(x: TensorLike) -> Tensor:
    """The modified Bessel function of the first kind of order 0.

    Examples:
        >>> ops.i0([0.0, 1.0])
        Tensor([1.    , 1.2661], shape=(2,), dtype=float32)
    """
    return engine.i0(floating(x))


@public
def deg2rad(x: TensorLike) -> Tensor:
    """An angle in degrees as one in radians.

    Examples:
        >>> ops.deg2rad([0.0, 180.0])
        Tensor([0.    , 3.1416], shape=(2,), dtype=float32)
    """
    x = floating(x)
    return arithmetic.multiply(x, tensor(math.pi / 180, x.dtype))


@public
def rad2deg(x: TensorLike) -> Tensor:
    """An angle in radians as one in degrees.

    Examples:
        >>> ops.rad2deg([np.pi])
        Tensor([180.], shape=(1,), dtype=float32)
    """
    x = floating(x)
    return arithmetic.multiply(x, tensor(180 / math.pi, x.dtype))


@public
def real(x: TensorLike) -> Tensor:
    """The real part; a real tensor itself.

    Examples:
        >>> ops.real([1 + 2j])
        Tensor([1.], shape=(1,), dtype=float32)
    """
    return complex_numbers.real(tensor(x))


@public
def imag(x: TensorLike) -> Tensor:
    """The imaginary part; 0 for real tensors.

    Examples:
        >>> ops.imag([1 + 2j])
        Tensor([2.], shape=(1,), dtype=float32)
    """
    return complex_numbers.imag(tensor(x))


@public
def conj(x: TensorLike) -> Tensor:
    """The complex conjugate; a real tensor itself.

    Examples:
        >>> ops.conj([1 + 2j])
        Tensor([1.-2.j], shape=(1,), dtype=complex64)
    """
    return arithmetic.conjugate(tensor(x))


@public
def conjugate(x: TensorLike) -> Tensor:
    """The complex conjugate; a real tensor itself.

    Examples:
        >>> ops.conjugate([1 + 2j])
        Tensor([1.-2.j], shape=(1,), dtype=complex64)
    """
    return arithmetic.conjugate(tensor(x))


@public
def angle(x: TensorLike) -> Tensor:
    """The angle of a complex number, in [-pi, pi]: 0 or pi for real numbers.

    Examples:
        >>> ops.angle([1 + 1j, -1.0])
        Tensor([0.7854, 3.1416], shape=(2,), dtype=float32)
    """
    return complex_numbers.angle(floating(x))
