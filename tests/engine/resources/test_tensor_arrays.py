"""Arrays of tensors whose cells are written again, and the gradients of what was there."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.resources.tensor_arrays import TensorArray

FLOAT = np.dtype("float32")


def value(x: float) -> np.ndarray[Any, Any]:
    return np.array([x], FLOAT)


def test_cells_are_written_once_where_nothing_else_is_said() -> None:
    array = TensorArray("a", 1, FLOAT, clears=False)
    array.write(0, value(1))
    with pytest.raises(InvalidArgumentError, match="index 0 has been written already"):
        array.write(0, value(2))


def test_cells_that_are_written_again() -> None:
    array = TensorArray("a", 0, FLOAT, grows=True, clears=False, overwrites=True)
    for x in (1, 2):
        array.write(0, value(x))
        assert array.read(0) == [x]
    array.write(1, value(3))
    assert array.gather([1, 0]).tolist() == [[3], [2]]


def test_gradients_of_what_was_there_before() -> None:
    """Backwards: what the last value got is taken, then what the one before gets adds up anew."""
    array = TensorArray("a", 2, FLOAT, clears=False, overwrites=True)
    for x in (1, 2):
        array.write(0, value(x))
    gradient = array.gradient("pass")
    gradient.write(0, value(5))
    gradient.write(0, value(6))
    assert gradient.read(0) == [11]
    gradient.write(0, value(7))
    assert gradient.read(0) == [7]
    assert gradient.read(0) == [0]
