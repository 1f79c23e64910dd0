"""Updates of one row combined without an order of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.ops.array.positions import write
from laminar.engine.ops.array.runs import combined_by_row
from tests.engine.cuda.strict_cupy import StrictCupy

rng = np.random.default_rng(0)


@pytest.mark.parametrize("n", [0, 1, 2, 33, 100])
@pytest.mark.parametrize("is_sorted", [False, True])
def test_sums_by_row(n: int, is_sorted: bool) -> None:
    rows, updates = rng.integers(0, 7, n), rng.normal(size=(n, 3))
    rows = np.sort(rows) if is_sorted else rows
    found, named = combined_by_row(np, updates, rows, 9, np.add, is_sorted=is_sorted)
    expected = np.zeros((9, 3))
    np.add.at(expected, rows, updates)
    np.testing.assert_array_equal(named, np.isin(np.arange(9), rows))
    np.testing.assert_allclose(np.where(named[:, None], found, 0), expected, atol=1e-12)


def test_numbers_out_of_range_name_no_row() -> None:
    rows = np.array([-1, 2, 5, 2, -1])
    found, named = combined_by_row(np, np.arange(5.0), rows, 3, np.add)
    assert named.tolist() == [False, False, True]
    assert found[2] == 4


@pytest.mark.parametrize("mode", ["update", "add", "mul", "div", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8"])
def test_a_device_writes_what_the_host_writes(mode: str, dtype: str) -> None:
    if mode == "div" and dtype == "int8":
        pytest.skip("NumPy divides no whole numbers in place")
    rows = rng.integers(0, 5, 12)
    into, updates = rng.normal(size=(6, 2)) * 3, rng.normal(size=(12, 2)) * 3
    into, updates = into.astype(dtype), updates.astype(dtype)
    xp = StrictCupy()
    found: Any = write(xp, xp.asarray(into), xp.asarray(rows), xp.asarray(updates), mode)
    assert not xp.waits
    assert not xp.unordered
    expected = write(np, into.copy(), rows, updates, mode)
    tolerance = {"float16": 2e-2, "float32": 1e-5}.get(dtype, 1e-12)
    np.testing.assert_allclose(found.get(), expected, rtol=tolerance, atol=tolerance)
