"""How the threads share a product."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from laminar.engine.compiler.kernels import Buffer, Matrix, Target, plan_gemm
from laminar.engine.compiler.kernels.gemm import gemm_kernel
from laminar.engine.compiler.target import host
from laminar.engine.graph import float32

from .products import Product
from .running import VECTOR_BYTES, Array, Prepared, results


@pytest.fixture(autouse=True)
def _l2_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied depends on it: tests are of a processor with so much."""
    monkeypatch.setattr(host, "l2_cache", lambda: 2048 * 1024)


class Shared(Prepared):
    """Launches whose shares can be run one by one."""

    def run_share(self, tid: int, nth: int) -> None:
        for kernel, words in self._calls:
            kernel(words, tid, nth)


def words_of(product: Product, target: Target) -> dict[str, int]:
    """The words of a product that is one launch, those that are numbers."""
    a, b, c = (Matrix(Buffer(i), *strides) for i, strides in enumerate(product_strides(product)))
    (launch,) = plan_gemm(a, b, c, product.rows, product.columns, product.inner, float32, target)
    words = zip(gemm_kernel.WORDS, launch.words, strict=True)
    return {name: word for name, word in words if isinstance(word, int)}


def product_strides(product: Product) -> list[tuple[int, int]]:
    a = (1, product.rows) if product.transpose_a else (product.inner, 1)
    b = (1, product.inner) if product.transpose_b else (product.columns, 1)
    return [a, b, (product.columns, 1)]


def written(product: Product, threads: int) -> tuple[list[Array], int]:
    """Which elements of the result each thread writes, and how many a tile of a block has."""
    arrays = product.arrays()
    launches = product.plan()
    shared = Shared(launches, arrays)
    found = []
    for tid in range(threads):
        arrays[2].fill(np.nan)
        shared.run_share(tid, threads)
        found.append(~np.isnan(arrays[2]))
    words = dict(zip(gemm_kernel.WORDS, launches[-1].words, strict=True))
    sizes = [words[name] for name in ("tile_rows", "block_panels", "panel_columns")]
    return found, math.prod(size for size in sizes if isinstance(size, int))


@pytest.mark.parametrize(("rows", "by_rows"), [(256, True), (128, False)])
def test_many_rows_are_shared_and_few_rows_are_not(rows: int, by_rows: bool) -> None:
    words = words_of(Product(rows, 512, 784), Target(64, 2))
    width, panels = words["block_panels"], words["num_panels"]
    assert width == (panels if by_rows else panels // 2)


def test_many_threads_are_given_columns_too() -> None:
    words = words_of(Product(256, 512, 512), Target(64, 64))
    assert words["block_panels"] < words["num_panels"], "there are fewer tiles than threads"


def test_threads_that_share_rows_copy_a_b_of_few_panels_once_each() -> None:
    words = words_of(Product(2048, 128, 128, transpose_b=True), Target(64, 3))
    assert words["block_panels"] == words["num_panels"]


def test_few_panels_are_copied_next_to_an_a_that_stays_in_the_l2_cache() -> None:
    near, far = (
        words_of(Product(rows, 512, 512, transpose_b=True), Target(64, 1)) for rows in (512, 1024)
    )
    assert near["packed_b_bytes"] < 300 * 1024 < far["packed_b_bytes"] < 700 * 1024


@pytest.mark.parametrize(
    "product",
    [
        pytest.param(Product(512, 512, 40), id="b-in-place"),
        pytest.param(Product(2048, 128, 64, transpose_b=True), id="many-rows"),
        pytest.param(Product(300, 1100, 600, transpose_b=True), id="some-panels-at-a-time"),
        pytest.param(Product(1024, 1040, 520), id="a-narrow-last-panel"),
        pytest.param(Product(700, 520, 300, True, True), id="both-across"),
        pytest.param(Product(96, 96, 40, batch=(37,)), id="batch"),
    ],
)
@pytest.mark.parametrize("threads", [2, 3])
def test_all_threads_have_as_much_of_a_result(product: Product, threads: int) -> None:
    found, tile = written(replace(product, vector_bytes=VECTOR_BYTES[-1]), threads)
    assert (np.sum(found, axis=0) == 1).all(), "each element is made once"
    sizes = [int(mask.sum()) for mask in found]
    # A thread begins and ends at a tile of a block.
    assert max(sizes) - min(sizes) <= 2 * tile


@pytest.mark.parametrize(("rows", "columns"), [(256, 512), (259, 515), (200, 40)])
def test_shared_rows_are_right_for_any_number_of_threads(rows: int, columns: int) -> None:
    product = Product(rows, columns, 300, vector_bytes=VECTOR_BYTES[-1])
    arrays = product.arrays()
    x, y, z = (Matrix(Buffer(i), array.shape[1], 1) for i, array in enumerate(arrays))
    target = Target(product.vector_bytes, 3)
    launches = plan_gemm(x, y, z, rows, columns, 300, float32, target)
    found = results(launches, *arrays)
    np.testing.assert_allclose(found, product.expected(*arrays), rtol=0, atol=product.tolerance)
