"""CRC-32 of memory in native code: as fast as memory gives the bytes, ten times as fast as a table.

A CRC is the rest of a polynomial over GF(2), so bytes that stand D bits further ahead may be
multiplied by x^D modulo the polynomial and added to those that follow. The kernel keeps four
vectors, and folds each into the next block by carry-less products: the lower half of 128 bits by
x^(D + 32), the upper half by x^(D - 32), in which 64 bits by 32 become less than 128. What is left
are the bytes of one block, whose sum is that of all: zlib's loop makes it.

Source: Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ instruction",
    Intel, 2009.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.compiler.codegen.control import fold
from laminar.engine.compiler.codegen.function import Module, Value
from laminar.engine.compiler.kernels.addressing import function, load, store
from laminar.engine.compiler.target import host, llvm
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.code_cache import address_of
from laminar.engine.graph import uint64

_log = logging.getLogger(__name__)

_SYMBOL = "crc32_fold"
_POLYNOMIAL = 0xEDB88320  # of CRC-32 (ISO 3309), the lowest power in the highest bit
_ONES = 0xFFFF_FFFF
_VECTORS = 4  # folded side by side, since each is a chain of products
_SHORT = 1 << 12  # bytes; a call from Python costs as much as zlib takes for them

# What multiplies pairs of 64 bits, by the bytes of a vector.
_PRODUCTS = {16: "pclmulqdq", 32: "pclmulqdq.256", 64: "pclmulqdq.512"}


def crc32(data: memoryview, start: int = 0) -> int:
    """What `zlib.crc32(data, start)` gives; by zlib itself where there is no native code for it.

    Args:
        data: contiguous bytes.
        start: the sum of what stands before them.
    """
    width = _vector_bytes()
    kernel = _kernel(width) if width and len(data) >= _SHORT else None
    if kernel is None:
        return zlib.crc32(data, start)
    block = _VECTORS * width
    whole = len(data) // block * block
    source = np.frombuffer(data, np.uint8)
    rest = np.empty(block, np.uint8)
    kernel(source.ctypes.data, whole, start ^ _ONES, rest.ctypes.data)
    # The kernel has taken in `start`, and what zlib puts before every sum.
    return zlib.crc32(data[whole:], zlib.crc32(rest.data, _ONES))


@functools.cache
def _vector_bytes() -> int:
    """The widest vectors whose halves this processor multiplies; 0 if there are none."""
    features = {} if host.why_not() else llvm.host_features()
    if not features.get("pclmul"):
        return 0
    return llvm.vector_bytes() if features.get("vpclmulqdq") else 16


@functools.cache
def _kernel(width: int) -> Any | None:
    """The kernel; None where the system lets nobody make code."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    try:
        return kind(address_of(Code(_SYMBOL, width, _text, (width,))))
    except RuntimeError as error:
        _log.debug("checksums are made by zlib: %s", error)
        return None


def _text(width: int) -> str:
    """`void crc32_fold(data, size, start, out)`: `size` bytes, whole blocks, as one block."""
    module = Module()
    fn, (data, size, start, out) = function(module, _SYMBOL, 4)
    lanes = width // uint64.size
    block = _VECTORS * width
    factors = (_power(8 * block + 32) << 1, _power(8 * block - 32) << 1)
    both = ", ".join(f"i64 {factors[i % 2]}" for i in range(lanes))
    multiplier = f"<{lanes} x i64> <{both}>"
    product = f"llvm.x86.{_PRODUCTS[width]}"
    kind = f"<{lanes} x i64>"
    module.declarations[product] = f"declare {kind} @{product}({kind}, {kind}, i8 immarg)"

    def vectors(at: Value) -> list[Value]:
        return [load(fn, data + at + i * width, uint64, lanes) for i in range(_VECTORS)]

    def moved(x: Value) -> Value:
        halves = [
            fn.instruction(f"call {kind} @{product}({x}, {multiplier}, i8 {which})", uint64, lanes)
            for which in (0x00, 0x11)
        ]
        return halves[0] ^ halves[1]

    def body(at: Value, carried: Sequence[Value]) -> list[Value]:
        return [moved(x) ^ y for x, y in zip(carried, vectors(at), strict=True)]

    first, *others = vectors(fn.number(0))
    first = first ^ fn.instruction(
        f"insertelement {kind} zeroinitializer, {start}, i32 0", uint64, lanes
    )
    carried = fold(fn, fn.number(block), size, block, [first, *others], body)
    for i, x in enumerate(carried):
        store(fn, x, out + i * width)
    return module.text()


def _power(exponent: int) -> int:
    """x ** exponent modulo the polynomial."""
    rest = 1 << 31  # the polynomial 1
    for _ in range(exponent):
        rest = rest >> 1 ^ (_POLYNOMIAL if rest & 1 else 0)
    return rest
