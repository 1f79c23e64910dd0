"""Products with numbers of few bits, for all vectors and units that this host has."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.compiler.target.byte_unit import ByteUnit

from ..low_bit_products import SIZES, UNITS, WEIGHTS, ByteProduct, WeightProduct
from ..running import VECTOR_BYTES, Array, aligned, results


@pytest.mark.parametrize(("unit", "vector_bytes"), UNITS)
def test_products_of_bytes_are_exact(unit: ByteUnit, vector_bytes: int) -> None:
    for sizes in SIZES:
        product = ByteProduct(*sizes)
        found = results(product.plan(unit, vector_bytes), *product.arrays())
        np.testing.assert_array_equal(found, product.expected(), f"{product}")
        a, totals, b, c = product.arrays()
        found = results(product.plan_sums(unit, vector_bytes), a, totals, b.T.copy(), c)
        np.testing.assert_array_equal(found, product.expected(), f"{product}, transposed")


@pytest.mark.parametrize("vector_bytes", VECTOR_BYTES)
@pytest.mark.parametrize("product", WEIGHTS, ids=str)
def test_products_with_weights(product: WeightProduct, vector_bytes: int) -> None:
    arrays = product.arrays()
    found = results(product.plan(vector_bytes), *arrays)
    matrix = product.matrix()
    expected = arrays[0].astype(np.float64) @ matrix
    scale = (np.abs(arrays[0]) @ np.abs(matrix)).max()
    np.testing.assert_allclose(found, expected, atol=2e-6 * scale + 1e-6)


def test_large_sums_are_exact() -> None:
    """Numbers of the greatest size, of one sign, as many as a float32 could not count."""
    product = ByteProduct(2, 40, 9000)
    a, totals, b, c = product.arrays()
    a[...], b[...] = -128, -128
    totals[...] = a.sum(axis=1)
    for unit, vector_bytes in UNITS:
        found = results(product.plan(unit, vector_bytes), a, totals, b, c)
        assert (found == 128 * 128 * 9000).all()


@pytest.mark.parametrize("offset", [1, 16, 40])
def test_matrices_beside_a_line_of_the_cache(offset: int) -> None:
    """The first strip is shorter then, so that others begin at a line."""

    def moved(x: Array) -> Array:
        memory = aligned((x.size + 64,), np.dtype(np.int8))
        found: Array = memory[offset : offset + x.size].reshape(x.shape)
        found[...] = x
        return found

    for rows in (1, 5):
        product = ByteProduct(rows, 192, 30)
        for unit, vector_bytes in UNITS:
            a, totals, b, c = product.arrays()
            found = results(product.plan(unit, vector_bytes), a, totals, moved(b), c)
            np.testing.assert_array_equal(found, product.expected())
        weights = WeightProduct(rows, 256, 30, 4, 8)
        for vector_bytes in VECTOR_BYTES:
            x, sums, w, scale, zero, c = weights.arrays()
            found = results(weights.plan(vector_bytes), x, sums, moved(w), scale, zero, c)
            np.testing.assert_allclose(found, x @ weights.matrix(), atol=1e-3)
