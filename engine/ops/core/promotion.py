"""Tensors of a common dtype, by the rules of lattice.py."""

from __future__ import annotations

from typing import Any

from ...graph import INEXACT, NUMERIC, DType, EagerTensor, Tensor, float32
from ..math.cast import cast
from .convert import convert_to_tensor
from .lattice import result_type, to_floating


def promote(*values: Any, floating: bool = False) -> tuple[Tensor, ...]:
    """The values as tensors of their common dtype; with `floating`, of one that has fractions."""
    if len(values) == 2:
        x, y = values
        if type(x) is not EagerTensor and hasattr(x, "__laminar_tensor__"):
            x = convert_to_tensor(x)
        if type(y) is not EagerTensor and hasattr(y, "__laminar_tensor__"):
            y = convert_to_tensor(y)
        dtype = _plain_type(x, y) or _plain_type(y, x)
        if dtype is not None and (not floating or dtype.is_differentiable):
            return (
                x if type(x) is EagerTensor else convert_to_tensor(x, dtype),
                y if type(y) is EagerTensor else convert_to_tensor(y, dtype),
            )
        values = x, y
    known = [
        v if isinstance(v, bool | int | float | complex) else convert_to_tensor(v) for v in values
    ]
    dtypes = {v.dtype if isinstance(v, Tensor) else None for v in known}
    dtype = (dtypes.pop() if len(dtypes) == 1 else None) or result_type(*known)
    if floating:
        dtype = to_floating(dtype)
    return tuple(
        cast(v, dtype) if isinstance(v, Tensor) else convert_to_tensor(v, dtype) for v in known
    )


def _plain_type(x: Any, y: Any) -> DType | None:
    """The common type of an eager tensor and of what needs no lattice: its like, or a number."""
    if type(x) is not EagerTensor:
        return None
    dtype, kind = x.dtype, type(y)
    if kind is EagerTensor:
        return dtype if y.dtype is dtype else None
    if kind is float:
        return dtype if dtype is float32 or dtype in INEXACT else None
    return dtype if kind is int and dtype in NUMERIC else None
