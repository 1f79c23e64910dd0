"""FewBitsMatMul: floats times a matrix that is kept in few bits."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import ShapeError
from ...graph import FLOATING, Array, TensorSpec, int8
from ..core.registry import define, no_gradient


@define(
    "FewBitsMatMul",
    dtypes={"x": FLOATING, "w": {int8}, "groups": FLOATING | {int8}},
    same_dtype=False,
)
def few_bits_matmul(
    x: TensorSpec,
    w: TensorSpec,
    *groups: TensorSpec,
    bits: int,
    columns: int,
    group_size: int | None = None,
) -> TensorSpec:
    """y[..., m, n] = sum over k of x[..., m, k] * (w[k, n] - zero[g, n]) * scale[g, n].

    `w` has whole numbers of 8 bits, or of 4, two of a row in each byte, the first in the lower
    half. g = k // group_size; without groups, scale is 1 and zero is 0. `groups` are scale and
    zero. There is no gradient: who keeps a matrix so writes his own.
    """
    if x.shape.rank is None:
        return TensorSpec(None, x.dtype)
    if not x.shape.rank or len(w.shape) != 2:
        raise ShapeError(f"FewBitsMatMul: expected rows and a matrix, got x {x} and w {w}")
    k, (k_w, num_bytes) = x.shape[-1], w.shape
    if None not in (k, k_w) and k != k_w:
        raise ShapeError(f"FewBitsMatMul: the inner dimensions differ: x is {x}, w is {w}")
    if num_bytes not in (None, -(-columns * bits // 8)):
        raise ShapeError(f"FewBitsMatMul: {columns} columns of {bits} bits in rows of {w}")
    return TensorSpec([*x.shape[:-1], columns], x.dtype)


few_bits_matmul.grad(no_gradient)


def whole_numbers(w: Array, columns: int, xp: Any = np) -> Array:
    """The numbers of a matrix that has two of 4 bits in each byte, a byte for each."""
    unsigned = w.view(xp.uint8) ^ 0x88
    pairs = xp.stack([unsigned & 15, unsigned >> 4], axis=-1)
    return pairs.reshape(w.shape[0], -1)[:, :columns].astype(xp.int8) - xp.int8(8)


@few_bits_matmul.reference
def _few_bits_kernel(
    xp: Any,
    x: Array,
    w: Array,
    *groups: Array,
    bits: int,
    columns: int,
    group_size: int | None,
) -> Array:
    wide = xp.float32 if x.dtype.itemsize < 4 else x.dtype
    numbers = whole_numbers(w, columns, xp) if bits == 4 else w
    matrix = numbers.astype(wide)
    if groups:
        scale, zero = groups
        number = xp.arange(w.shape[0]) // group_size
        matrix = (matrix - zero.astype(wide)[number]) * scale.astype(wide)[number]
    return xp.matmul(x.astype(wide, copy=False), matrix).astype(x.dtype, copy=False)
