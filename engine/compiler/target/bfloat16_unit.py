"""What this processor multiplies bfloat16 with, if that is faster than float32."""

from __future__ import annotations

from enum import Enum

from . import llvm
from .amx import has_amx


class PairUnit(Enum):
    """What multiplies pairs of bfloat16."""

    MATRIX = "matrix"
    VECTORS = "vectors"


def pair_unit() -> PairUnit | None:
    """The unit for products of bfloat16; None where they are made in float32.

    Intel's vectors multiply pairs at half the rate of float32, AMD's (Zen 4 and later) at the same.
    """
    if has_amx():
        return PairUnit.MATRIX
    features = llvm.host_features()
    is_fast = features.get("avx512bf16") and llvm.processor().startswith("znver")
    return PairUnit.VECTORS if is_fast else None
