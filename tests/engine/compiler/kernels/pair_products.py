"""Products of bfloat16 matrices into float32, by pairs, and what can multiply these here."""

from __future__ import annotations

import numpy as np

from laminar.engine.compiler.kernels import (
    Epilogue,
    Launch,
    PairUnit,
    plan_pair_products,
)
from laminar.engine.compiler.target import llvm
from laminar.engine.compiler.target.amx import has_amx

from .products import Product
from .running import MOST_THREADS, Array, aligned

UNITS = [
    unit
    for unit, is_there in (
        (PairUnit.MATRIX, has_amx()),
        (PairUnit.VECTORS, llvm.host_features().get("avx512bf16")),
    )
    if is_there
]


def arrays_of(product: Product) -> tuple[Array, Array, Array]:
    """bfloat16 operands, and a float32 result full of numbers."""
    a, b, c = product.arrays()
    wide = aligned(c.shape, np.dtype(np.float32))
    wide[...] = c
    return a, b, wide


def plan(product: Product, unit: PairUnit, epilogue: Epilogue | None = None) -> list[Launch]:
    """Launches for these as buffers 0, 1 and 2."""
    a, b, c = product.matrices(arrays_of(product))
    return plan_pair_products(
        a,
        b,
        c,
        product.rows,
        product.columns,
        product.inner,
        MOST_THREADS,
        unit,
        batch=product.batch,
        epilogue=epilogue,
    )
