"""Small datasets, and what they give as plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.datasets import Dataset
from laminar.tree import map_structure


def plain(element: Any) -> Any:
    """An element as Python numbers, texts and lists."""
    return map_structure(lambda leaf: leaf.tolist() if hasattr(leaf, "tolist") else leaf, element)


def elements(dataset: Dataset) -> list[Any]:
    with dataset.as_numpy_iterator() as walk:
        return [plain(element) for element in walk]


def numbers(count: int) -> Dataset:
    return Dataset.range(count)


def generated(count: int) -> Dataset:
    return Dataset.from_generator(lambda: iter(range(count)))


def ragged(count: int) -> Dataset:
    return numbers(count).map(lambda n: np.arange(n % 7 + 1))


def double(n: Any) -> Any:
    return n * 2
