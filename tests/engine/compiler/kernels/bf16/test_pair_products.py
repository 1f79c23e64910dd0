"""bfloat16 products by pairs, on all that multiplies them, against float64."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from laminar.engine.compiler.kernels import PairUnit
from laminar.engine.graph import bfloat16

from .....sampling import examples
from ..epilogues import check_epilogue, check_epilogue_scratch
from ..pair_products import UNITS, arrays_of, plan
from ..products import Product, products
from ..running import results

pytestmark = pytest.mark.skipif(not UNITS, reason="the processor multiplies no bfloat16")
EACH_UNIT = pytest.mark.parametrize("unit", UNITS)


def check(product: Product, unit: PairUnit) -> None:
    arrays = arrays_of(product)
    found = results(plan(product, unit), *arrays)
    expected = product.expected(*arrays)
    # The products are exact in float32, their sums are not.
    tolerance = float(np.finfo(np.float32).eps) * 8 * (product.inner + 8)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@settings(examples(60), derandomize=True)
@given(products(dtype=st.just(bfloat16)), st.sampled_from(UNITS or [PairUnit.MATRIX]))
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
    wanted = product.expected(a, b, c)
    check_epilogue(lambda epilogue: plan(product, unit, epilogue), [a, b], wanted, 64, 2)


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
    check_epilogue_scratch(
        lambda epilogue: plan(product, unit, epilogue), [a, b], wanted, 64, threads
    )


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
