"""How a sum is cut into parts does not depend on how many threads there are: plans alone tell."""

from __future__ import annotations

import itertools
import random
from typing import NamedTuple

import pytest

from laminar.engine.compiler.kernels import (
    Buffer,
    Matrix,
    PairUnit,
    Target,
    plan_gemm,
    plan_pair_products,
)
from laminar.engine.compiler.kernels.bf16 import pair_product_kernel as pairs
from laminar.engine.compiler.kernels.gemm import (
    gemm_kernel,
)
from laminar.engine.compiler.target import host
from laminar.engine.graph import DType, float32, float64

SIZES = [1, 10, 32, 100, 128, 300, 512, 1024, 2048]
DEPTHS = [32, 128, 400, 784, 1024, 2048, 4096]
CACHES = [256 << 10, 512 << 10, 1 << 20, 2 << 20, 4 << 20]
VECTORS = [16, 32, 64]
THREADS = [1, 2, 3, 6, 16, 64]


class Case(NamedTuple):
    rows: int
    columns: int
    inner: int
    transpose_a: bool
    transpose_b: bool
    dtype: DType
    vector_bytes: int

    def depths(self, threads: int) -> list[tuple[str, object]]:
        """The launches, and how long the sums of each are that are made in one go."""
        rows, columns, inner = self.rows, self.columns, self.inner
        a = Matrix(Buffer(0), *((1, rows) if self.transpose_a else (inner, 1)))
        b = Matrix(Buffer(1), *((1, inner) if self.transpose_b else (columns, 1)))
        target = Target(self.vector_bytes, threads)
        result = Matrix(Buffer(2), columns, 1)
        launches = plan_gemm(a, b, result, rows, columns, inner, self.dtype, target)
        product = gemm_kernel.code(self.dtype, self.vector_bytes).symbol
        place = gemm_kernel.WORDS.index("block_inner")
        return [
            (x.code.symbol, x.words[place] if x.code.symbol == product else None) for x in launches
        ]


def check(case: Case, counts: list[int]) -> None:
    expected = case.depths(1)
    for threads in counts[1:]:
        assert case.depths(threads) == expected, f"{threads} threads: {case}"


def cases(dtype: DType, vector_bytes: int) -> list[Case]:
    both = (False, True)
    found = itertools.product(SIZES, SIZES, DEPTHS, both, both)
    return [Case(*x, dtype, vector_bytes) for x in found]


@pytest.mark.slow
@pytest.mark.parametrize("vector_bytes", VECTORS)
@pytest.mark.parametrize("dtype", [float32, float64])
def test_sums_of_few_rows_are_cut_alike(dtype: DType, vector_bytes: int) -> None:
    """Threads that share few rows have panels as narrow as can be."""
    for rows, columns, inner in itertools.product([100, 128], [300, 512, 1024], [400, 1024]):
        check(Case(rows, columns, inner, False, False, dtype, vector_bytes), [1, 3, 64])


@pytest.mark.slow
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("vector_bytes", VECTORS)
@pytest.mark.parametrize("dtype", [float32, float64])
def test_sums_are_cut_alike(
    dtype: DType, vector_bytes: int, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host, "l2_cache", lambda: cache)
    for case in random.Random(vector_bytes + cache).sample(cases(dtype, vector_bytes), 20):
        check(case, [1, 2, 16])


@pytest.mark.exhaustive
@pytest.mark.parametrize("cache", CACHES)
@pytest.mark.parametrize("vector_bytes", VECTORS)
@pytest.mark.parametrize("dtype", [float32, float64])
def test_all_sums_are_cut_alike(
    dtype: DType, vector_bytes: int, cache: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes less than a minute."""
    monkeypatch.setattr(host, "l2_cache", lambda: cache)
    for case in cases(dtype, vector_bytes):
        check(case, THREADS)


@pytest.mark.parametrize("rows", [1, 33, 700])
@pytest.mark.parametrize("columns", [1, 40, 1024])
def test_sums_of_pairs_are_made_in_one_go(rows: int, columns: int) -> None:
    """Threads share blocks of the result alone."""
    a, b, c = (
        Matrix(Buffer(0), 500, 1),
        Matrix(Buffer(1), columns, 1),
        Matrix(Buffer(2), columns, 1),
    )
    found = []
    for threads in (1, 2, 16):
        *_, launch = plan_pair_products(a, b, c, rows, columns, 500, threads, PairUnit.VECTORS)
        words = dict(zip(pairs.WORDS, launch.words, strict=True))
        found.append({k: x for k, x in words.items() if k not in ("block_columns", "rest")})
    assert found[0] == found[1] == found[2]
