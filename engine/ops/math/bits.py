"""Bitcast: the bytes of a tensor read as another element type."""

from __future__ import annotations

from typing import Any

from ...errors import DTypeError, ShapeError
from ...graph import DENSE, Array, TensorSpec, as_dtype
from ..core.registry import define, no_gradient


@define("Bitcast", dtypes=DENSE)
def bitcast(x: TensorSpec, *, dtype: str) -> TensorSpec:
    """The bytes of `x` as another type; of another size, the last axis grows or shrinks to fit."""
    wanted = as_dtype(dtype)
    if wanted not in DENSE:
        raise DTypeError(f"Bitcast: a {wanted} has no number of bytes of its own")
    before, after = x.dtype.size, wanted.size
    if before == after or x.shape.rank is None:
        return TensorSpec(x.shape, wanted)
    if not x.shape:
        raise ShapeError(
            f"Bitcast: the scalar {x} has {before} bytes, an element of {wanted} has {after}",
            remedy="choose a type of the same size, or give the tensor an axis",
        )
    last = x.shape[-1]
    if last is not None and last * before % after:
        raise ShapeError(
            f"Bitcast: the last axis of {x} has {last * before} bytes, which is no whole number "
            f"of {wanted} with {after} bytes each"
        )
    size = None if last is None else last * before // after
    return TensorSpec([*x.shape[:-1], size], wanted)


@bitcast.reference
def _bitcast_kernel(xp: Any, x: Array, *, dtype: str) -> Array:
    return xp.ascontiguousarray(x).reshape(x.shape).view(as_dtype(dtype).numpy)


bitcast.grad(no_gradient)
