"""float16 and bfloat16: two bytes in memory, in registers a float32 of the same value.

Arithmetic is that of float32, and rounds to the half once for each op, as the reference kernels do.
`IRFunction.halves` holds (name, dtype) for the registers that are known to have the value of a
half: these need no rounding. Processors without instructions that convert float16 (x86 before AVX2)
do it by whole numbers.
"""

from __future__ import annotations

from ...graph import DType, bool_, float16, float32, float64, uint32
from ..ir.element_types import HALVES
from ..target.llvm import converts_halves
from .function import IRFunction
from .values import Value, vector_type


def rounded(fn: IRFunction, x: Value, dtype: DType) -> Value:
    """A float32 as the nearest half, of which the last bit is even where two are as near."""
    if (x.name, dtype) in fn.halves:
        return Value(fn, x.name, dtype, x.lanes)
    if dtype == float16 and not converts_halves(fn.module.vector_bytes):
        return _known(fn, _wide(fn, _narrow(fn, x)).name, dtype, x.lanes)
    if dtype == float16:
        half = vector_type("half", x.lanes)
        narrow = fn.named(f"fptrunc {x} to {half}")
        return _known(fn, fn.named(f"fpext {half} {narrow} to {x.type}"), dtype, x.lanes)
    bits = fn.bits(x, uint32)
    odd = fn.binary("lshr", bits, 16) & 1
    near = (bits + odd + 0x7FFF) & 0xFFFF0000
    quiet = (bits | 0x400000) & 0xFFFF0000
    found = fn.bits(fn.select(x != x, quiet, near), float32)  # only NaN differs from itself
    return _known(fn, found.name, dtype, x.lanes)


def to_odd(fn: IRFunction, x: Value) -> Value:
    """A float64 as a float32 that becomes the same float16 when it is rounded again.

    It is `x` without the bits that have no room, of which the last one left says whether any was
    set (Boldo and Melquiond, Emulation of FMA and Correctly Rounded Sums, 2008: rounding to odd).
    """
    near = fn.instruction(f"fptrunc {x} to {vector_type('float', x.lanes)}", float32, x.lanes)
    wide = vector_type("double", x.lanes)
    back = fn.instruction(f"fpext {near} to {wide}", float64, x.lanes)
    bits = fn.bits(near, uint32)
    less = fn.select(fn.call("fabs", back) > fn.call("fabs", x), bits - 1, bits)
    return fn.bits(fn.select(back != x, less | 1, bits), float32)


def _known(fn: IRFunction, name: str, dtype: DType, lanes: int) -> Value:
    fn.halves.add((name, dtype))
    return Value(fn, name, dtype, lanes)


def widened(fn: IRFunction, bits: str, dtype: DType, lanes: int) -> Value:
    """Halves of which `bits`, as i16, have been read."""
    narrow, wide = vector_type("i16", lanes), vector_type("float", lanes)
    is_converted = dtype == float16 and converts_halves(fn.module.vector_bytes)
    if is_converted:
        half = vector_type("half", lanes)
        name = fn.named(f"bitcast {narrow} {bits} to {half}")
        return _known(fn, fn.named(f"fpext {half} {name} to {wide}"), dtype, lanes)
    number = vector_type("i32", lanes)
    full = Value(fn, fn.named(f"zext {narrow} {bits} to {number}"), uint32, lanes)
    if dtype == float16:
        return _known(fn, _wide(fn, full).name, dtype, lanes)
    shifted = fn.binary("shl", full, 16)
    return _known(fn, fn.bits(shifted, float32).name, dtype, lanes)


def in_memory(fn: IRFunction, x: Value) -> tuple[str, str]:
    """The element type of a value in memory, and the name of the value as that."""
    if x.dtype == bool_:
        return "i8", fn.named(f"zext {x} to {vector_type('i8', x.lanes)}")
    if x.dtype not in HALVES:
        return x.element, x.name
    narrow = vector_type("i16", x.lanes)
    if x.dtype == float16 and not converts_halves(fn.module.vector_bytes):
        found = _narrow(fn, Value(fn, x.name, float32, x.lanes))
        return "i16", fn.named(f"trunc {found} to {narrow}")
    if x.dtype == float16:
        half = vector_type("half", x.lanes)
        name = fn.named(f"fptrunc {x} to {half}")
        return "i16", fn.named(f"bitcast {half} {name} to {narrow}")
    bits = fn.bits(Value(fn, x.name, float32, x.lanes), uint32)
    upper = fn.binary("lshr", bits, 16)
    return "i16", fn.named(f"trunc {upper} to {narrow}")


# Bits of float32: of its infinity, of the least normal float16, and of what rounds to its infinity.
_INFINITY, _LEAST, _TOO_LARGE = 0x7F800000, 0x38800000, 0x477FF000
_MORE_BITS = 13  # of the mantissa
_BIAS = 112  # what the exponent of float32 is greater by


def _wide(fn: IRFunction, half: Value) -> Value:
    """The float32 of the bits of a float16, which are in a uint32."""
    size = fn.binary("shl", half & 0x7FFF, _MORE_BITS)
    normal = size + (_BIAS << 23)
    # Subnormal ones are put behind a leading 1, which is taken off: the bits alone would be a
    # subnormal float32, which counts as 0 (see subnormals.py).
    small = fn.bits(fn.bits(normal + (1 << 23), float32) - 2.0 ** (1 - 15), uint32)
    x = fn.select(size < 1 << 23, small, normal)
    x = fn.select(size < 0x7C00 << _MORE_BITS, x, size | _INFINITY)
    return fn.bits(x | fn.binary("shl", half & 0x8000, 16), float32)


def _narrow(fn: IRFunction, x: Value) -> Value:
    """The bits of the float16 nearest to a float32, in a uint32."""
    bits = fn.bits(x, uint32)
    size = bits & 0x7FFFFFFF
    odd = fn.binary("lshr", size, _MORE_BITS) & 1
    rest = (1 << _MORE_BITS - 1) - 1
    normal = fn.binary("lshr", size + odd + (rest - (_BIAS << 23)), _MORE_BITS)
    # The last bit of 0.5 is the least float16, so the addition rounds.
    small = fn.bits(fn.bits(size, float32) + 0.5, uint32) - 0x3F000000
    found = fn.select(size < _LEAST, small, normal)
    found = fn.select(size < _TOO_LARGE, found, fn.constant(0x7C00, found))
    found = fn.select(size > _INFINITY, fn.constant(0x7E00, found), found)
    return found | (fn.binary("lshr", bits, 16) & 0x8000)
