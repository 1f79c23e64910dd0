"""Cast: change of element type."""

from __future__ import annotations

from typing import Any

from ..graph import DENSE, Array, OpView, Tensor, TensorSpec, as_dtype
from .registry import Grads, define


@define("Cast", dtypes=DENSE)
def _cast(x: TensorSpec, *, dtype: str) -> TensorSpec:
    """Each element of `x` as `dtype`: rounded to nearest for floats, truncated to integers.

    A complex number keeps its real part; a number becomes the bool "is not zero".
    """
    return TensorSpec(x.shape, as_dtype(dtype))


@_cast.reference
def _cast_kernel(xp: Any, x: Array, *, dtype: str) -> Array:
    wanted = as_dtype(dtype)
    if x.dtype.kind == "c" and not wanted.is_complex:
        x = x.real
    return x.astype(wanted.numpy)


@_cast.grad
def _cast_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    return (cast(dy, x.dtype) if x.dtype.is_differentiable else None,)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """`x` with another element type; `x` itself when it has it already."""
    wanted = as_dtype(dtype)
    return x if x.dtype == wanted else _cast(x, dtype=wanted)
