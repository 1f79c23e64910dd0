"""Where numbers come for the first time, as it is defined; on the reference kernel and natively."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError
from laminar.engine.functions import function
from laminar.engine.ops.array.first_occurrence import first_occurrence, sum_repeats
from laminar.engine.ops.core.basic import constant

rng = np.random.default_rng(0)
WIDE = 2**62
GIVEN = [
    pytest.param([5], "int32", id="one"),
    pytest.param([3, 3, 3], "int64", id="equal"),
    pytest.param(range(17), "int16", id="different"),
    pytest.param(rng.integers(-9, 9, 300), "int32", id="many"),
    pytest.param(rng.integers(-3, 3, 300) * (WIDE // 3) * 2, "int64", id="far-apart"),
    pytest.param(rng.integers(0, 50, 200) * 1024, "uint32", id="multiples"),
]


def by_definition(numbers: Any) -> list[int]:
    return [list(numbers).index(x) for x in numbers]


@pytest.mark.parametrize(("numbers", "dtype"), GIVEN)
@pytest.mark.parametrize("jit_compile", [False, True])
def test_first_occurrence(numbers: Any, dtype: str, jit_compile: bool) -> None:
    traced = function(jit_compile=jit_compile)(lambda x: first_occurrence(x) + 1 - 1 + 0)
    x = constant(np.array(numbers, dtype))
    expected = by_definition(numbers)
    np.testing.assert_array_equal(first_occurrence(x), expected)
    np.testing.assert_array_equal(traced(x), expected)


def test_none_and_a_matrix() -> None:
    assert first_occurrence(constant(np.zeros(0, "int32"))).shape == (0,)
    with pytest.raises(ShapeError, match="FirstOccurrence: expected a vector"):
        first_occurrence(constant([[1]]))


def test_sums_stand_where_a_number_comes_first() -> None:
    rows = rng.normal(size=(4, 3)).astype("float32")
    first = first_occurrence(constant([7, 2, 7, 7]))
    zeros = np.zeros(3)
    expected: Any = [rows[0] + rows[2] + rows[3], rows[1], zeros, zeros]
    np.testing.assert_allclose(sum_repeats(constant(rows), first).numpy(), expected, rtol=1e-6)
