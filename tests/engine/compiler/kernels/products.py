"""Cases of matrix products: their arrays, their plan, what the result is to be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laminar.engine.compiler.ir.kernel_target import AvailableCode
from laminar.engine.compiler.kernels import (
    Buffer,
    Epilogue,
    Launch,
    Matrix,
    Target,
    plan_gemm,
)
from laminar.engine.compiler.kernels.gemm.microkernel import Tile
from laminar.engine.compiler.target.code import Code
from laminar.engine.graph import DType, float32

from .running import MOST_THREADS, Array, aligned

Allocate = Callable[[Sequence[int], Any], Array]


class Tiles:
    """The microkernels of some heights and widths, and no others, are at hand."""

    def __init__(self, *sizes: tuple[int, int]) -> None:
        self.sizes = sizes

    def has(self, code: Code) -> bool:
        """Whether a code is one of them."""
        tile = Tile(*code.parameters[1:])  # type: ignore[arg-type]  # what a tile is made of
        return (tile.rows, tile.vectors) in self.sizes

    def __len__(self) -> int:
        return len(self.sizes)


@dataclass(frozen=True)
class Product:
    """C = op(A) op(B); `gap` elements stand between the rows of each matrix.

    `available` is the only code that it may use.
    """

    rows: int
    columns: int
    inner: int
    transpose_a: bool = False
    transpose_b: bool = False
    batch: tuple[int, ...] = ()
    repeat_b: bool = False
    gap: int = 0
    accumulate: bool = False
    dtype: DType = float32
    vector_bytes: int = 32
    available: AvailableCode | None = None

    def arrays(self, allocate: Allocate = aligned) -> tuple[Array, Array, Array]:
        """Operands and a result full of numbers."""
        rng = np.random.default_rng(self.rows * 7 + self.columns)
        found = self._empty(allocate)
        for array in found:
            array[...] = rng.standard_normal(array.shape)
        return found

    def _empty(self, allocate: Allocate = aligned) -> tuple[Array, Array, Array]:
        a_shape = (self.inner, self.rows) if self.transpose_a else (self.rows, self.inner)
        b_shape = (self.columns, self.inner) if self.transpose_b else (self.inner, self.columns)
        batch_b = () if self.repeat_b else self.batch
        a, b, c = (
            allocate((*batch, shape[0], shape[1] + self.gap), self.dtype.numpy)
            for batch, shape in (
                (self.batch, a_shape),
                (batch_b, b_shape),
                (self.batch, (self.rows, self.columns)),
            )
        )
        return a, b, c

    def matrices(self, arrays: Sequence[Array]) -> list[Matrix]:
        """A, B and C as buffers 0, 1 and 2."""
        found = []
        turned = self.transpose_a, self.transpose_b, False
        for i, (array, is_turned) in enumerate(zip(arrays, turned, strict=True)):
            strides = [s // array.itemsize for s in array.strides]
            row, column = strides[-2:][::-1] if is_turned else strides[-2:]
            batch = (0,) * len(self.batch) if i == 1 and self.repeat_b else tuple(strides[:-2])
            found.append(Matrix(Buffer(i), row, column, batch))
        return found

    def plan(self, epilogue: Epilogue | None = None) -> list[Launch]:
        """Launches for the arrays as buffers 0, 1 and 2, of which B may begin anywhere."""
        a, b, c = self.matrices(self._empty())
        return plan_gemm(
            a,
            b,
            c,
            self.rows,
            self.columns,
            self.inner,
            self.dtype,
            Target(
                self.vector_bytes, MOST_THREADS, available=self.available, unaligned=frozenset({1})
            ),
            batch=self.batch,
            accumulate=self.accumulate,
            epilogue=epilogue,
        )

    def expected(self, a: Array, b: Array, c: Array) -> Array:
        """The whole of C as it is to be, in float64; what is between the rows stays."""
        a, b, found = (x.astype(np.float64) for x in (a, b, c))
        a = a[..., : a.shape[-1] - self.gap]
        b = b[..., : b.shape[-1] - self.gap]
        a = np.swapaxes(a, -1, -2) if self.transpose_a else a
        b = np.swapaxes(b, -1, -2) if self.transpose_b else b
        product = a @ b
        found[..., : self.columns] = product + (
            found[..., : self.columns] if self.accumulate else 0.0
        )
        return found

    @property
    def tolerance(self) -> float:
        """For sums of `inner` products of normal numbers."""
        return float(np.finfo(self.dtype.numpy).eps) * 8 * (self.inner + 8)


_SIZES = st.integers(0, 40) | st.sampled_from([63, 64, 65, 130])


@st.composite
def products(draw: st.DrawFn, /, **more: st.SearchStrategy[Any]) -> Product:
    """Small products of any form; `more` is what else they have."""
    return Product(
        draw(_SIZES),
        draw(_SIZES),
        draw(_SIZES),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([(), (), (3,), (2, 3), (1, 0)])),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 5])),
        **{name: draw(values) for name, values in more.items()},
    )
