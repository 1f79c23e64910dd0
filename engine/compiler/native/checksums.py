"""CRC-32 and CRC-32C of memory in native code: as fast as memory gives the bytes, ten times as fast
as a table.

A CRC is the rest of a polynomial over GF(2), so bytes that stand D bits further ahead may be
multiplied by x^D modulo the polynomial and added to those that follow. The kernel keeps four
vectors, and folds each into the next block by carry-less products: the lower half of 128 bits by
x^(D + 32), the upper half by x^(D - 32), in which 64 bits by 32 become less than 128. What is left
are the bytes of one block, whose sum is that of all: a loop over a table makes it.

Source: Gopal et al., "Fast CRC computation for generic polynomials using PCLMULQDQ instruction",
    Intel, 2009.
"""

from __future__ import annotations

import ctypes
import functools
import logging
import zlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import uint64
from ...io.crc import CRC32, CRC32C, power
from ...io.crc32c import Bytes, portable_crc32c
from ..codegen.control import fold
from ..codegen.function import IRFunction, Module, Value
from ..kernels.addressing import function, load, store
from ..target import host, llvm
from ..target.code import Code
from ..target.code_cache import address_of

_log = logging.getLogger(__name__)

_SYMBOL = "crc32_fold"
_ONES = 0xFFFF_FFFF
VECTORS = 4  # folded side by side, since each is a chain of products
_SHORT = 1 << 12  # bytes; a call from Python costs as much as zlib takes for them

# What multiplies pairs of 64 bits, by the bytes of a vector.
_PRODUCTS = {16: "pclmulqdq", 32: "pclmulqdq.256", 64: "pclmulqdq.512"}


def crc32(data: Bytes, start: int = 0) -> int:
    """What `zlib.crc32(data, start)` gives; by zlib itself where there is no native code for it.

    Args:
        data: contiguous bytes.
        start: the sum of what stands before them.
    """
    return _sum(data, start, CRC32, zlib.crc32)


def crc32c(data: Bytes, start: int = 0) -> int:
    """What `portable_crc32c(data, start)` gives."""
    return _sum(data, start, CRC32C, portable_crc32c)


def _sum(data: Bytes, start: int, polynomial: int, by_table: Callable[[Bytes, int], int]) -> int:
    width = vector_bytes()
    kernel = _kernel(width, polynomial) if width and len(data) >= _SHORT else None
    if kernel is None:
        return by_table(data, start)
    block = VECTORS * width
    whole = len(data) // block * block
    source = np.frombuffer(data, np.uint8)
    rest = np.empty(block, np.uint8)
    kernel(source.ctypes.data, whole, start ^ _ONES, rest.ctypes.data)
    # The kernel has taken in `start`, and what stands before every sum.
    return by_table(memoryview(data)[whole:], by_table(rest.data, _ONES))


@functools.cache
def vector_bytes() -> int:
    """The widest vectors whose halves this processor multiplies; 0 if there are none."""
    features = {} if host.why_not() else llvm.host_features()
    if not features.get("pclmul"):
        return 0
    return llvm.vector_bytes() if features.get("vpclmulqdq") else 16


@functools.cache
def _kernel(width: int, polynomial: int) -> Any | None:
    """The kernel; None where the system lets nobody make code."""
    kind = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p)
    return kernel_of(Code(_SYMBOL, width, _text, (width, polynomial)), kind)


def kernel_of(code: Code, kind: Callable[[int], Any]) -> Any | None:
    """A kernel as a function of Python; None where the system lets nobody make code."""
    try:
        return kind(address_of(code))
    except RuntimeError as error:
        _log.debug("checksums are made by tables: %s", error)
        return None


def folding(
    fn: IRFunction, width: int, polynomial: int
) -> Callable[[Sequence[Value], Sequence[Value]], list[Value]]:
    """What takes the vectors of a block into those of all before it."""
    lanes = width // uint64.size
    block = VECTORS * width
    ahead = 8 * block + 32, 8 * block - 32
    factors = [power(bits, polynomial) << 1 for bits in ahead]
    both = ", ".join(f"i64 {factors[i % 2]}" for i in range(lanes))
    kind = f"<{lanes} x i64>"
    multiplier = f"{kind} <{both}>"
    product = f"llvm.x86.{_PRODUCTS[width]}"
    fn.module.declarations[product] = f"declare {kind} @{product}({kind}, {kind}, i8 immarg)"

    def moved(x: Value) -> Value:
        halves = [
            fn.instruction(f"call {kind} @{product}({x}, {multiplier}, i8 {which})", uint64, lanes)
            for which in (0x00, 0x11)
        ]
        return halves[0] ^ halves[1]

    return lambda before, block: [moved(x) ^ y for x, y in zip(before, block, strict=True)]


def _text(width: int, polynomial: int) -> str:
    """`void crc32_fold(data, size, start, out)`: `size` bytes, whole blocks, as one block."""
    module = Module()
    fn, (data, size, start, out) = function(module, _SYMBOL, 4)
    lanes = width // uint64.size
    block = VECTORS * width
    kind = f"<{lanes} x i64>"
    take_in = folding(fn, width, polynomial)

    def vectors(at: Value) -> list[Value]:
        return [load(fn, data + at + i * width, uint64, lanes) for i in range(VECTORS)]

    def body(at: Value, carried: Sequence[Value]) -> list[Value]:
        return take_in(carried, vectors(at))

    first, *others = vectors(fn.number(0))
    first = first ^ fn.instruction(
        f"insertelement {kind} zeroinitializer, {start}, i32 0", uint64, lanes
    )
    carried = fold(fn, fn.number(block), size, block, [first, *others], body)
    for i, x in enumerate(carried):
        store(fn, x, out + i * width)
    return module.text()
