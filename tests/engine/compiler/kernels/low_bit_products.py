"""Products with numbers of few bits: operands, plans, and what comes out."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from laminar.engine.compiler.kernels import Buffer, Launch, Target
from laminar.engine.compiler.kernels.low_bits.byte_products import plan_byte_product, plan_byte_sums
from laminar.engine.compiler.kernels.low_bits.weight_products import plan_weight_product
from laminar.engine.compiler.target.byte_unit import ByteUnit, byte_unit
from laminar.engine.compiler.target.host import is_x86

from .running import MOST_THREADS, VECTOR_BYTES, Array, aligned

# What multiplies bytes here, for each size of vectors.
UNITS = [
    (unit, size)
    for size in VECTOR_BYTES
    for unit in dict.fromkeys(
        [byte_unit(size), ByteUnit.PLAIN, *([ByteUnit.PAIRS] if is_x86() else [])]
    )
]
SIZES = [
    *((1, 1, 1), (1, 64, 64), (1, 300, 70), (2, 17, 5), (3, 65, 63), (4, 128, 260)),
    *((5, 33, 129), (7, 130, 2050), (33, 257, 64), (64, 16, 31)),
]


class ByteProduct(NamedTuple):
    """C = A B of bytes."""

    rows: int
    columns: int
    inner: int

    def arrays(self) -> tuple[Array, Array, Array, Array]:
        """A with zeros behind, its sums, B and a result full of numbers."""
        rng = np.random.default_rng(0)
        a = aligned((self.rows, -(-self.inner // 4) * 4), np.dtype(np.int8))
        b = aligned((self.inner, self.columns), np.dtype(np.int8))
        a[...] = 0
        a[:, : self.inner] = rng.integers(-128, 128, (self.rows, self.inner))
        b[...] = rng.integers(-128, 128, b.shape)
        c = aligned((self.rows, self.columns), np.dtype(np.int32))
        c[...] = 77
        return a, a.sum(axis=1, dtype=np.int32), b, c

    def plan(self, unit: ByteUnit, vector_bytes: int) -> list[Launch]:
        """Launches for these as buffers 0 to 3."""
        target = Target(vector_bytes, MOST_THREADS)
        a, totals, b, c = map(Buffer, range(4))
        return plan_byte_product(a, totals, b, c, *self, target, unit)

    def plan_sums(self, unit: ByteUnit, vector_bytes: int) -> list[Launch]:
        """The same for B transposed."""
        a, totals, b, c = map(Buffer, range(4))
        return plan_byte_sums(a, totals, b, c, *self, Target(vector_bytes, MOST_THREADS), unit)

    def expected(self) -> Array:
        a, _, b, _ = (x.astype(np.int64) for x in self.arrays())
        found: Array = a[:, : self.inner] @ b
        return found


class WeightProduct(NamedTuple):
    """C = A B of floats and numbers of few bits, in groups of rows or in none."""

    rows: int
    columns: int
    inner: int
    bits: int
    group_size: int | None

    @property
    def _size(self) -> int:
        return min(self.group_size or self.inner, self.inner)

    def _numbers(self) -> Array:
        least = -(2 ** (self.bits - 1))
        return np.random.default_rng(1).integers(least, -least, (self.inner, self.columns))

    def arrays(self) -> list[Array]:
        """A, its sums in each group, B, scales and zeros if there are groups, and a result."""
        rng = np.random.default_rng(0)
        a = aligned((self.rows, self.inner), np.dtype(np.float32))
        a[...] = rng.normal(size=a.shape)
        size = self._size
        whole = np.pad(a, [(0, 0), (0, -self.inner % size)])
        totals = whole.reshape(self.rows, -1, size).sum(axis=2)
        numbers = self._numbers()
        b = numbers.astype(np.int8)
        if self.bits == 4:
            even = np.pad(numbers & 15, [(0, 0), (0, self.columns % 2)])
            b = (even[:, 0::2] | even[:, 1::2] << 4).astype(np.uint8).view(np.int8)
        groups: list[Array] = []
        if self.group_size is not None:
            shape = (totals.shape[1], self.columns)
            scale = rng.uniform(0.5, 2, shape).astype(np.float32)
            groups = [scale, rng.integers(-8, 8, shape).astype(np.int8)]
        c = aligned((self.rows, self.columns), np.dtype(np.float32))
        c[...] = 77
        return [a, totals, np.ascontiguousarray(b), *groups, c]

    def plan(self, vector_bytes: int) -> list[Launch]:
        """Launches for these as buffers in this order."""
        grouped = self.group_size is not None
        groups = (Buffer(3), Buffer(4)) if grouped else None
        return plan_weight_product(
            *(Buffer(0), Buffer(2), Buffer(5 if grouped else 3), Buffer(1), groups),
            *(self.rows, self.columns, self.inner, self.bits, self._size),
            Target(vector_bytes, MOST_THREADS),
        )

    def matrix(self) -> Array:
        """B as floats."""
        found: Array = self._numbers().astype(np.float64)
        if self.group_size is not None:
            *_, scale, zero, _ = self.arrays()
            group = np.arange(self.inner) // self.group_size
            found = (found - zero[group]) * scale[group].astype(np.float64)
        return found


WEIGHTS = [
    WeightProduct(*sizes, bits, group_size)
    for sizes in SIZES
    for bits, group_size in ((4, None), (8, None), (4, 3), (4, 128), (8, 32))
]
