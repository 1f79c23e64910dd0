"""Complex numbers: their parts, size and angle, and their view as pairs.

The gradient for a complex z is dL/d(Re z) + i dL/d(Im z).
"""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import (
    COMPLEX,
    FLOATING,
    Array,
    DType,
    OpView,
    Tensor,
    TensorSpec,
    complex64,
    complex128,
    float32,
    float64,
)
from ..core.basic import zeros_like
from ..core.elementwise import elementwise
from ..core.op_def import Grads, OpDef
from ..core.registry import define
from ..core.scalars import array_scalars
from .arithmetic import absolute, conjugate
from .cast import cast
from .elementary import divide_no_nan

_PART = {complex64: float32, complex128: float64}
_WHOLE = {float32: complex64, float64: complex128}


def part_dtype(dtype: DType) -> DType:
    """The dtype of the real part."""
    return _PART.get(dtype, dtype)


def whole_dtype(dtype: DType) -> DType:
    """The complex dtype whose parts are of `dtype`, float32 or float64."""
    return _WHOLE[dtype]


def _real_grad(op: OpView, dy: Tensor) -> Grads:
    return (complex_of(dy, zeros_like(dy)),)


def _imag_grad(op: OpView, dy: Tensor) -> Grads:
    return (complex_of(zeros_like(dy), dy),)


_real: OpDef = elementwise(
    "Real",
    "a of z = a + i b.",
    scalar=lambda s, z: s.real(z),
    grad=_real_grad,
    dtypes=COMPLEX,
    result=part_dtype,
)
_imag: OpDef = elementwise(
    "Imag",
    "b of z = a + i b.",
    scalar=lambda s, z: s.imag(z),
    grad=_imag_grad,
    dtypes=COMPLEX,
    result=part_dtype,
)
complex_of: OpDef = elementwise(
    "Complex",
    "z = a + i b.",
    scalar=lambda s, a, b: s.complex(a, b),
    grad=lambda op, dz: (_real(dz), _imag(dz)),
    dtypes={float32, float64},
    result=whole_dtype,
)
_complex_abs: OpDef = elementwise(
    "ComplexAbs",
    "|z| = sqrt(a**2 + b**2) of z = a + i b. The slope at 0 is 0.",
    scalar=lambda s, z: s.abs(z),
    grad=lambda op, dy: (
        cast(dy, op.inputs[0].dtype)
        * divide_no_nan(op.inputs[0], cast(op.outputs[0], op.inputs[0].dtype)),
    ),
    dtypes=COMPLEX,
    result=part_dtype,
)


def _angle_grad(op: OpView, dy: Tensor) -> Grads:
    (z,) = op.inputs
    if not z.dtype.is_complex:
        return (zeros_like(z),)
    return (complex_of(zeros_like(dy), dy) / conjugate(z),)


angle: OpDef = elementwise(
    "Angle",
    "The angle of a + i b from the positive real axis, in [-pi, pi]; 0 or pi for a real number.",
    scalar=lambda s, z: s.angle(z),
    grad=_angle_grad,
    dtypes=FLOATING | COMPLEX,
    result=part_dtype,
)


def real(x: Tensor) -> Tensor:
    """The real part; `x` itself when it is real."""
    return _real(x) if x.dtype.is_complex else x


def imag(x: Tensor) -> Tensor:
    """The imaginary part; zeros when `x` is real."""
    return _imag(x) if x.dtype.is_complex else zeros_like(x)


def magnitude(x: Tensor) -> Tensor:
    """|x| of real and of complex numbers."""
    return _complex_abs(x) if x.dtype.is_complex else absolute(x)


@define("ViewAsReal", dtypes=COMPLEX)
def view_as_real(x: TensorSpec) -> TensorSpec:
    """y[..., 0] and y[..., 1] are the real and the imaginary part of x[...]."""
    dims = None if x.shape.rank is None else [*x.shape, 2]
    return TensorSpec(dims, part_dtype(x.dtype))


@view_as_real.reference
def _view_as_real_kernel(xp: Any, x: Array) -> Array:
    return xp.stack([x.real, x.imag], -1)


@view_as_real.grad
def _view_as_real_grad(op: OpView, dy: Tensor) -> Grads:
    return (view_as_complex(dy),)


@define("ViewAsComplex", dtypes={"x": {float32, float64}})
def view_as_complex(x: TensorSpec) -> TensorSpec:
    """y[...] = x[..., 0] + i x[..., 1]."""
    if x.shape.rank is None:
        return TensorSpec(None, whole_dtype(x.dtype))
    if not x.shape or x.shape[-1] not in (2, None):
        raise ShapeError(
            f"ViewAsComplex: the last axis holds the two parts, so its size is 2, got {x}",
            remedy="stack the two parts along a new last axis",
        )
    return TensorSpec(x.shape[:-1], whole_dtype(x.dtype))


@view_as_complex.reference
def _view_as_complex_kernel(xp: Any, x: Array) -> Array:
    return array_scalars(xp).complex(x[..., 0], x[..., 1])


@view_as_complex.grad
def _view_as_complex_grad(op: OpView, dy: Tensor) -> Grads:
    return (view_as_real(dy),)
