"""`tf.linalg`: what differs from laminar's own in arguments."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor

from .adapting import v1
from .values import static, tensor


@v1(keep_dims="keepdims")
def norm(
    tensor: Any,
    ord: Any = "euclidean",
    axis: Any = None,
    keepdims: bool | None = None,
) -> Tensor:
    """The norm of vectors or matrices."""
    kind = None if ord == "euclidean" and axis is None else ord
    if kind == "euclidean":
        kind = "fro" if isinstance(axis, list | tuple) and len(axis) == 2 else 2
    place = static(axis)
    found: Tensor = ops.norm(
        tensor, kind, tuple(place) if isinstance(place, list) else place, bool(keepdims)
    )
    return found


@v1()
def svd(tensor: Any, full_matrices: bool = False, compute_uv: bool = True) -> Any:
    """(singular values, left, right vectors), or the values alone."""
    if not compute_uv:
        return ops.svd(tensor, compute_uv=False)
    u, s, v_h = ops.svd(tensor, full_matrices)
    return s, u, ops.conj(ops.swapaxes(v_h, -1, -2))


@v1()
def matrix_transpose(a: Any, conjugate: bool = False) -> Tensor:
    """The last two axes exchanged."""
    x = tensor(a)
    found: Tensor = ops.swapaxes(ops.conj(x) if conjugate else x, -1, -2)
    return found
