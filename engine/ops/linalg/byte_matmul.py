"""ByteMatMul: the product of matrices of bytes, which is exact."""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import Array, TensorSpec, int8, int32
from ..core.registry import define, no_gradient

# A float32 holds all sums of so many products of two numbers from -128 to 127.
_EXACT_TERMS = 1024


@define("ByteMatMul", dtypes={int8}, same_dtype=False)
def byte_matmul(a: TensorSpec, b: TensorSpec) -> TensorSpec:
    """c[..., m, n] = sum over k of a[..., m, k] * b[k, n], in int32; it has no gradient."""
    if a.shape.rank is None or b.shape.rank is None:
        return TensorSpec(None, int32)
    if len(a.shape) < 1 or len(b.shape) != 2:
        raise ShapeError(f"ByteMatMul: expected rows and a matrix, got a {a} and b {b}")
    k, (k_b, n) = a.shape[-1], b.shape
    if None not in (k, k_b) and k != k_b:
        raise ShapeError(
            f"ByteMatMul: the inner dimensions differ: a is {a}, b is {b} ({k} != {k_b})",
            remedy=f"transpose b, or give it {k} rows",
        )
    return TensorSpec([*a.shape[:-1], n], int32)


byte_matmul.grad(no_gradient)


@byte_matmul.reference
def _byte_matmul_kernel(xp: Any, a: Array, b: Array) -> Array:
    rows = a.reshape(-1, a.shape[-1])
    total = xp.zeros((rows.shape[0], b.shape[1]), xp.int32)
    for begin in range(0, b.shape[0], _EXACT_TERMS):
        part = slice(begin, begin + _EXACT_TERMS)
        left, right = rows[:, part].astype(xp.float32), b[part].astype(xp.float32)
        total += xp.matmul(left, right).astype(xp.int32)
    return total.reshape(*a.shape[:-1], b.shape[1])
