"""Products of bfloat16 matrices into float32, by pairs, and what can multiply these here."""

from __future__ import annotations

import numpy as np

from laminar.engine.compiler import llvm
from laminar.engine.compiler.amx import has_amx
from laminar.engine.compiler.kernels import (
    Buffer,
    Epilogue,
    Launch,
    Matrix,
    PairUnit,
    plan_pair_products,
)

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
    matrices: list[Matrix] = []
    turned = (product.transpose_a, product.transpose_b, False)
    for i, (array, is_turned) in enumerate(zip(arrays_of(product), turned, strict=True)):
        strides = [s // array.itemsize for s in array.strides]
        row, column = strides[-2:][::-1] if is_turned else strides[-2:]
        shared = i == 1 and product.repeat_b
        batch = (0,) * len(product.batch) if shared else tuple(strides[:-2])
        matrices.append(Matrix(Buffer(i), row, column, batch))
    a, b, c = matrices
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
