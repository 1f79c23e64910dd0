"""How the threads share a product."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.compiler import host
from laminar.engine.compiler.kernels import Buffer, Matrix, Target, gemm_kernel, plan_gemm
from laminar.engine.graph import float32

from .products import Product
from .running import VECTOR_BYTES, results


@pytest.fixture(autouse=True)
def _second_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is copied depends on it: tests are of a processor with so much."""
    monkeypatch.setattr(host, "second_cache", lambda: 2048 * 1024)


@pytest.mark.parametrize(("rows", "by_rows"), [(256, True), (128, False)])
def test_many_rows_are_shared_and_few_rows_are_not(rows: int, by_rows: bool) -> None:
    columns, inner, threads = 512, 784, 2
    x, y = Matrix(Buffer(0), inner, 1), Matrix(Buffer(1), columns, 1)
    z = Matrix(Buffer(2), columns, 1)
    (launch,) = plan_gemm(x, y, z, rows, columns, inner, float32, Target(64, threads))
    words = dict(zip(gemm_kernel.WORDS, launch.words, strict=True))
    tiles, panels, height, width = (
        words[name] for name in ("num_tiles", "num_panels", "block_tiles", "block_panels")
    )
    assert isinstance(tiles, int)
    if by_rows:
        assert (height, width) == (-(-tiles // threads), panels)
    else:
        assert height == tiles
        assert isinstance(panels, int)
        assert width == panels // threads


def test_many_threads_are_given_columns_too() -> None:
    x, y = Matrix(Buffer(0), 512, 1), Matrix(Buffer(1), 512, 1)
    z = Matrix(Buffer(2), 512, 1)
    (launch,) = plan_gemm(x, y, z, 256, 512, 512, float32, Target(64, 64))
    words = dict(zip(gemm_kernel.WORDS, launch.words, strict=True))
    width, panels = words["block_panels"], words["num_panels"]
    assert isinstance(width, int)
    assert isinstance(panels, int)
    assert width < panels, "there are fewer tiles than threads"


@pytest.mark.parametrize(("rows", "columns"), [(256, 512), (259, 515), (200, 40)])
def test_shared_rows_are_right_for_any_number_of_threads(rows: int, columns: int) -> None:
    product = Product(rows, columns, 300, vector_bytes=VECTOR_BYTES[-1])
    arrays = product.arrays()
    x, y, z = (Matrix(Buffer(i), array.shape[1], 1) for i, array in enumerate(arrays))
    target = Target(product.vector_bytes, 3)
    launches = plan_gemm(x, y, z, rows, columns, 300, float32, target)
    found = results(launches, *arrays)
    np.testing.assert_allclose(found, product.expected(*arrays), rtol=0, atol=product.tolerance)
