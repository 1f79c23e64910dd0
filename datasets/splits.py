"""Examples to train and to test with, and how one set becomes both."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import InvalidArgumentError

Examples: TypeAlias = tuple[NDArray[Any], NDArray[Any]]
"""Inputs and targets, in the same order."""

Split: TypeAlias = tuple[Examples, Examples]
"""Examples to train with and examples to test with."""


def generator(seed: int) -> np.random.RandomState:
    """NumPy's legacy generator, frozen by NEP 19: orders are Keras's for the same seed."""
    return np.random.RandomState(seed)


def shuffled(rng: np.random.RandomState, x: NDArray[Any], y: NDArray[Any]) -> Examples:
    """Inputs and targets in one random order, the next of `rng`."""
    order = np.arange(len(x))
    rng.shuffle(order)
    return x[order], y[order]


def check_test_split(test_split: float) -> None:
    """Refuse a fraction outside [0, 1)."""
    if not 0 <= test_split < 1:
        raise InvalidArgumentError(
            f"load_data: test_split must be at least 0 and less than 1, got {test_split}",
            remedy="give the fraction of the examples to test with, such as 0.2",
        )


def split(x: NDArray[Any], y: NDArray[Any], test_split: float) -> Split:
    """The last `test_split` of the examples to test with, the rest to train with."""
    count = int(len(x) * (1 - test_split))
    return (x[:count], y[:count]), (x[count:], y[count:])
