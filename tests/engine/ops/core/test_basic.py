"""Constants of a shape."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import ShapeError


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        ([1, 2, 3, 4], (2, 2), [[1, 2], [3, 4]]),
        ([[1, 2, 3], [4, 5, 6]], (3, 2), [[1, 2], [3, 4], [5, 6]]),
        ([1, 2], (2, 1), [[1], [2]]),
        ([1, 2], (3, 2), [[1, 2]] * 3),
        (7, (2, 0), np.zeros((2, 0))),
        ([], (0, 3), np.zeros((0, 3))),
    ],
)
def test_a_constant_is_put_into_its_shape(value: Any, shape: Any, expected: Any) -> None:
    found = engine.constant(value, shape=shape)
    assert found.shape == shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("value", "shape"), [([1, 2], (3,)), ([1, 2, 3], (2, 2))])
def test_a_constant_that_does_not_fit_its_shape(value: Any, shape: Any) -> None:
    with pytest.raises(ShapeError, match="constant: "):
        engine.constant(value, shape=shape)


def test_a_constant_has_a_whole_shape() -> None:
    np.testing.assert_array_equal(engine.constant(7, shape=2), [7, 7])
    wrong: Any
    for wrong in ("a", (2, None), (1.5,)):
        with pytest.raises(ShapeError):
            engine.constant(7, shape=wrong)
