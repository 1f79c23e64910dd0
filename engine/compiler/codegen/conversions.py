"""Element types made of others, and the fused product and sum where a processor has none."""

from __future__ import annotations

from typing import Any

from ...graph import DType, bool_, float16, float32, float64, int32, int64, uint32, uint64
from ..ir.element_types import HALVES
from ..ir.not_lowered import NotLoweredError
from ..target.llvm import has_fma
from .function import IRFunction
from .half_precision import rounded, to_odd
from .values import Value, conversion, scalar_type, vector_type


def convert(fn: IRFunction, x: Value, dtype: DType) -> Value:
    """`x` as another element type, as Cast defines it."""
    if x.dtype == dtype:
        return x
    if x.dtype in HALVES:
        return convert(fn, Value(fn, x.name, float32, x.lanes), dtype)
    if (x.dtype, dtype) == (float64, float16):
        x = to_odd(fn, x)  # the reference rounds once, but for bfloat16
    if dtype in HALVES:
        return rounded(fn, convert(fn, x, float32), dtype)
    target = vector_type(scalar_type(dtype), x.lanes)
    if dtype == bool_:
        return x != fn.constant(0, x)
    if x.is_float and dtype.is_integer:
        return _truncated(fn, x, dtype)
    return fn.instruction(f"{conversion(x.dtype, dtype)} {x} to {target}", dtype, x.lanes)


def _truncated(fn: IRFunction, x: Value, dtype: DType) -> Value:
    """A float as an integer of 32 or 64 bits, of which a smaller type keeps the lower ones.

    NaN and what is out of range of these give their least number, as on x86 processors.
    """
    if dtype in (uint32, uint64):
        raise NotLoweredError(f"a float as {dtype}: out of range, the reference's loops differ")
    wide = int64 if dtype == int64 else int32
    limit = 2.0 ** (8 * wide.size - 1)
    inside = (x >= -limit) & (x < limit)
    safe = fn.select(inside, x, fn.constant(0.0, x))
    target = vector_type(scalar_type(wide), x.lanes)
    whole = fn.instruction(f"fptosi {safe} to {target}", wide, x.lanes)
    least = fn.constant(-(1 << 8 * wide.size - 1), whole)
    return convert(fn, fn.select(inside, whole, least), dtype)


def fma(fn: IRFunction, a: Value, b: Any, c: Any) -> Value:
    """a * b + c, rounded once.

    Processors without such an instruction have float32 products and sums in float64, where the
    product is exact. The sum is rounded there too, which is half a unit of float64, and seen only
    where it makes a tie of float32. A call for each element would take ten times as long.
    """
    b, c = fn.constant(b, a), fn.constant(c, a)
    if a.dtype == float32 and not has_fma(fn.module.vector_bytes):
        x, y, z = (convert(fn, v, float64) for v in (a, b, c))
        return convert(fn, x * y + z, float32)
    return fn.call("fma", a, b, c)
