"""bfloat16 products by pairs, on all that multiplies them, against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar.engine.compiler.kernels import Buffer, PairUnit
from laminar.engine.graph import bfloat16

from .epilogues import adding, check_own_result
from .pair_products import UNITS, arrays_of, plan
from .products import Product
from .running import Prepared, results

pytestmark = pytest.mark.skipif(not UNITS, reason="the processor multiplies no bfloat16")
EACH_UNIT = pytest.mark.parametrize("unit", UNITS)

sizes = st.integers(0, 40) | st.sampled_from([63, 64, 65, 130])


@st.composite
def products(draw: st.DrawFn) -> Product:
    return Product(
        draw(sizes),
        draw(sizes),
        draw(sizes),
        draw(st.booleans()),
        draw(st.booleans()),
        draw(st.sampled_from([(), (), (3,), (2, 3), (1, 0)])),
        draw(st.booleans()),
        draw(st.sampled_from([0, 0, 5])),
        dtype=bfloat16,
    )


def check(product: Product, unit: PairUnit) -> None:
    arrays = arrays_of(product)
    found = results(plan(product, unit), *arrays)
    expected = product.expected(*arrays)
    # The products are exact in float32, their sums are not.
    tolerance = float(np.finfo(np.float32).eps) * 8 * (product.inner + 8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(products(), st.sampled_from(UNITS or [PairUnit.MATRIX]))
def test_products_of_any_size(product: Product, unit: PairUnit) -> None:
    check(product, unit)


@EACH_UNIT
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_large_products(transpose_a: bool, transpose_b: bool, unit: PairUnit) -> None:
    product = Product(300, 530, 1100, transpose_a, transpose_b, dtype=bfloat16)
    check(product, unit)
    check(replace(product, rows=1, gap=3), unit)
    check(replace(product, columns=1, gap=3), unit)


@EACH_UNIT
@pytest.mark.parametrize(
    "product",
    [
        Product(37, 90, 20, dtype=bfloat16),
        Product(300, 600, 1100, dtype=bfloat16),
        Product(5, 33, 8, batch=(2, 3), dtype=bfloat16),
        Product(7, 9, 0, dtype=bfloat16),
    ],
)
def test_the_epilogue_sees_each_element_once_when_it_is_complete(
    product: Product, unit: PairUnit
) -> None:
    a, b, c = arrays_of(product)
    num_rows = c.size // product.columns
    of_rows = np.arange(num_rows, dtype=np.float32)
    of_columns = np.arange(product.columns, dtype=np.float32) * 0.5
    epilogue = adding(Buffer(2), c.strides[-2], Buffer(3), Buffer(4), 64)
    prepared = Prepared(plan(product, unit, epilogue), [a, b, c, of_rows, of_columns])
    expected = product.expected(a, b, c)
    prepared.run(2)
    expected = expected.reshape(num_rows, -1) + of_rows[:, None] + of_columns
    np.testing.assert_allclose(c.reshape(num_rows, -1), expected, rtol=1e-5, atol=1e-3)


@EACH_UNIT
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    "product",
    [
        Product(37, 90, 20, dtype=bfloat16),
        Product(300, 600, 1100, dtype=bfloat16),
        Product(65, 33, 8, batch=(2, 3), dtype=bfloat16),
    ],
)
def test_a_result_that_only_the_epilogue_reads_is_not_stored(
    product: Product, threads: int, unit: PairUnit
) -> None:
    a, b, c = arrays_of(product)
    wanted = product.expected(a, b, c)
    check_own_result(lambda epilogue: plan(product, unit, epilogue), [a, b], wanted, 64, threads)


@EACH_UNIT
def test_what_is_not_finite_stays_so(unit: PairUnit) -> None:
    product = Product(3, 4, 5, dtype=bfloat16)
    a, b, c = arrays_of(product)
    a[0, 0], a[1, 1] = np.inf, np.nan
    b[...] = 1
    found = results(plan(product, unit), a, b, c)
    assert np.isinf(found[0]).all()
    assert np.isnan(found[1]).all()
    np.testing.assert_allclose(found[2], a[2].astype(np.float32).sum(), rtol=1e-6)
