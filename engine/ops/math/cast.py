"""Cast: change of element type."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np

from ...graph import DENSE, Array, DType, OpView, Tensor, TensorSpec, as_dtype
from ..core.op_def import Grads
from ..core.registry import define
from ..core.traits import Traits, Work

# There NumPy does what Cast says; elsewhere its loops differ from each other.
_IS_X86 = platform.machine().lower() in ("x86_64", "amd64")
_TRUNCATED = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16"})


@define("Cast", dtypes=DENSE, traits=Traits(work=Work.COPY, on_sizes=lambda n: n))
def cast_op(x: TensorSpec, *, dtype: str) -> TensorSpec:
    """Each element of `x` as `dtype`: rounded to nearest for floats, truncated to integers.

    A complex number keeps its real part; a number becomes the bool "is not zero". NaN, and a float
    that int32 (for int64: int64) cannot hold, give the least number of that type, of which smaller
    types keep the lower bits; as uint32 and uint64 they are what the processor makes of them.
    """
    return TensorSpec(x.shape, as_dtype(dtype))


@cast_op.reference
def _cast_kernel(xp: Any, x: Array, *, dtype: str) -> Array:
    wanted = as_dtype(dtype)
    if x.dtype.kind == "c" and not wanted.is_complex:
        x = x.real
    if xp is np and wanted in _TRUNCATED and as_dtype(x.dtype).is_floating and not _IS_X86:
        return truncated(x, wanted)
    return x.astype(wanted.numpy)


def truncated(x: Array, dtype: DType) -> Array:
    """Floats as integers of a type of `_TRUNCATED`, as NumPy makes them on x86 processors."""
    wide = np.int64 if dtype.size == 8 else np.int32
    least = -(2**63) if dtype.size == 8 else -(2**31)
    with np.errstate(invalid="ignore"):
        x = x.astype(np.float64 if x.dtype == np.float64 else np.float32)
        is_inside = (x >= float(least)) & (x < -float(least))
    found: Array = np.where(is_inside, x, x.dtype.type(0)).astype(wide)
    return np.where(is_inside, found, least).astype(dtype.numpy)


@cast_op.grad
def _cast_grad(op: OpView, dy: Tensor) -> Grads:
    (x,) = op.inputs
    return (cast(dy, x.dtype) if x.dtype.is_differentiable else None,)


def cast(x: Tensor, dtype: Any) -> Tensor:
    """`x` with another element type; `x` itself when it has it already."""
    wanted = as_dtype(dtype)
    return x if x.dtype == wanted else cast_op(x, dtype=wanted)
