"""Discrete Fourier transforms over the last axes.

Y[k] = sum over j of x[j] exp(-2 pi i j k / n); the inverse has the other sign and a factor 1 / n.
Source: Cooley and Tukey, "An algorithm for the machine calculation of complex Fourier series",
    1965, equation 1. The gradient is the adjoint: the transform of the other direction, unscaled.
"""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import COMPLEX, Array, Dim, OpView, Tensor, TensorSpec, float32, float64, int32
from ..array.creation import arange
from ..array.shape import dim_of
from ..core.convert import convert_to_tensor
from ..core.op_def import Grads
from ..core.registry import define
from .arithmetic import add, conjugate, divide, multiply
from .cast import cast
from .compare import equal, logical_or, where
from .complex_numbers import part_dtype, whole_dtype


@define("Fft", dtypes=COMPLEX)
def _fft(x: TensorSpec, *, axes: int, inverse: bool) -> TensorSpec:
    """The transform, or its inverse, over the last `axes` axes."""
    if x.shape.rank is not None and len(x.shape) < axes:
        raise ShapeError(f"Fft: expected at least {axes} axes, got {x}")
    return x


@_fft.reference
def _fft_kernel(xp: Any, x: Array, *, axes: int, inverse: bool) -> Array:
    transform = xp.fft.ifftn if inverse else xp.fft.fftn
    return transform(x, axes=tuple(range(-axes, 0))).astype(x.dtype, copy=False)


@_fft.grad
def _fft_grad(op: OpView, dy: Tensor) -> Grads:
    # The matrix F is symmetric, so its adjoint is its conjugate: conj(F conj(dy)).
    return (conjugate(_fft(conjugate(dy), **op.attrs)),)


def fft(x: Tensor, axes: int = 1) -> Tensor:
    """The discrete Fourier transform of complex `x` over its last `axes` axes."""
    return _fft(x, axes=axes, inverse=False)


def ifft(x: Tensor, axes: int = 1) -> Tensor:
    """The inverse of `fft`."""
    return _fft(x, axes=axes, inverse=True)


@define("Rfft", dtypes={"x": {float32, float64}})
def rfft(x: TensorSpec) -> TensorSpec:
    """Y[k] for k = 0 to n // 2 of the real x along the last axis; the others are conjugate."""
    if x.shape.rank is None:
        return TensorSpec(None, whole_dtype(x.dtype))
    if not x.shape:
        raise ShapeError(f"Rfft: expected at least one axis, got {x}")
    n = x.shape[-1]
    if n == 0:
        raise ShapeError(f"Rfft: the last axis of {x} is empty")
    size: Dim = None if n is None else n // 2 + 1
    return TensorSpec([*x.shape[:-1], size], whole_dtype(x.dtype))


@rfft.reference
def _rfft_kernel(xp: Any, x: Array) -> Array:
    return xp.fft.rfft(x).astype(whole_dtype_of(x), copy=False)


def whole_dtype_of(x: Array) -> str:
    """The complex dtype with parts of the type of the array `x`."""
    return "complex64" if x.dtype == "float32" else "complex128"


@rfft.grad
def _rfft_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    n = _size(x)
    halved = divide(dy, cast(_weights(dy, n), dy.dtype))
    return (multiply(_irfft_to(halved, x), cast(n, x.dtype)),)


def _size(x: Tensor) -> Tensor:
    known = None if x.shape.rank is None else x.shape[-1]
    return dim_of(x, axis=-1) if known is None else convert_to_tensor(known, int32)


def _weights(bins: Tensor, n: Tensor) -> Tensor:
    """How often each bin stands in the full transform of n numbers: 2, but 1 at 0 and n / 2."""
    k = arange(_count(bins), dtype=int32)
    zero, one, two = (convert_to_tensor(v, int32) for v in (0, 1, 2))
    alone = logical_or(equal(k, zero), equal(add(k, k), n))
    return where(alone, one, two)


def _count(bins: Tensor) -> Any:
    known = None if bins.shape.rank is None else bins.shape[-1]
    return dim_of(bins, axis=-1) if known is None else known


def _irfft_to(bins: Tensor, like: Tensor) -> Tensor:
    """The inverse of `rfft`, as many numbers as `like` has."""
    known = None if like.shape.rank is None else like.shape[-1]
    if known is not None:
        return _irfft(bins, n=known)
    return _irfft(bins, dim_of(like, axis=-1), n=None)


@define("Irfft", dtypes={"x": COMPLEX})
def _irfft(x: TensorSpec, *size: TensorSpec, n: int | None) -> TensorSpec:
    """The n real numbers whose Rfft is x; n of None is given at run time by `size`."""
    if x.shape.rank is None:
        return TensorSpec(None, part_dtype(x.dtype))
    bins = x.shape[-1] if x.shape else 0
    if bins == 0 or (n is not None and bins is not None and bins != n // 2 + 1):
        raise ShapeError(
            f"Irfft: {n} numbers have {'?' if n is None else n // 2 + 1} bins, got {x}",
            remedy="cut the bins, or pad them with zeros",
        )
    return TensorSpec([*x.shape[:-1], n], part_dtype(x.dtype))


@_irfft.reference
def _irfft_kernel(xp: Any, x: Array, *size: Array, n: int | None) -> Array:
    count = int(size[0]) if n is None else n
    return xp.fft.irfft(x, n=count).astype(x.real.dtype, copy=False)


@_irfft.grad
def _irfft_grad(op: OpView, dy: Tensor) -> Grads:
    x, *rest = op.inputs
    n = _size(dy)
    dx = multiply(rfft(dy), cast(_weights(x, n), x.dtype))
    return (divide(dx, cast(n, x.dtype)), *(None for _ in rest))


def irfft(x: Tensor, n: int | None = None) -> Tensor:
    """The real numbers whose transform begins with the bins `x`.

    Args:
        x: (..., n // 2 + 1), complex.
        n: how many numbers, by default 2 * (bins - 1).

    Raises:
        InvalidArgumentError: n is not positive.
        ShapeError: the number of bins does not fit n.
    """
    if n is not None:
        if n < 1:
            raise InvalidArgumentError(f"irfft: n must be positive, got {n}")
        return _irfft(x, n=n)
    bins = _count(x)
    if isinstance(bins, int):
        return _irfft(x, n=2 * (bins - 1))
    one, two = convert_to_tensor(1, int32), convert_to_tensor(2, int32)
    return _irfft(x, multiply(two, add(bins, -one)), n=None)
