"""What this processor sums up products of bytes with."""

from __future__ import annotations

from enum import Enum

from . import llvm
from .host import is_x86


class ByteUnit(Enum):
    """Instructions that multiply bytes, or what is made of them, and add up neighbours."""

    QUADS = "quads"  # four bytes at a time: AVX512_VNNI, AVX_VNNI
    PAIRS = "pairs"  # two numbers of 16 bits at a time: pmaddwd of SSE2, AVX2, AVX-512
    PLAIN = "plain"  # numbers of 32 bits


def byte_unit(vector_bytes: int) -> ByteUnit:
    """The unit of this processor for vectors of so many bytes."""
    if not is_x86():
        return ByteUnit.PLAIN
    usable = llvm.features(vector_bytes)
    if {64: "+avx512vnni", 32: "+avxvnni"}.get(vector_bytes, "none") in usable.split(","):
        return ByteUnit.QUADS
    needed = {64: "+avx512bw", 32: "+avx2", 16: "+sse2"}[vector_bytes]
    return ByteUnit.PAIRS if needed in usable.split(",") else ByteUnit.PLAIN
