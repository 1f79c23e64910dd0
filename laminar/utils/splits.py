"""split_dataset: arrays, or a Dataset, in two parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from laminar.datasets.dataset import Dataset
from laminar.datasets.epochs import INFINITE, UNKNOWN
from laminar.engine.errors import InvalidArgumentError
from laminar.random import make_default_seed
from laminar.tree import flatten, map_structure


def split_dataset(
    dataset: Any,
    left_size: float | None = None,
    right_size: float | None = None,
    shuffle: bool = False,
    seed: int | None = None,
    preferred_backend: str | None = None,
) -> tuple[Dataset, Dataset]:
    """Examples in two Datasets, such as one to train with and one to test with.

    Args:
        dataset: an array, or a tuple, list or dict of arrays with one row for each example; a
            Dataset, whose elements are counted by walking through it if their number is unknown;
            or the data set of another framework, which is read at once: something with numbered
            elements, or that is iterated over.
        left_size: size of the first part: a number of examples, or a fraction between 0 and 1;
            None for all that is not in the second.
        right_size: the same for the second part.
        shuffle: whether the examples are taken in a random order.
        seed: of that order.
        preferred_backend: kept for Keras scripts; what comes out are Datasets of laminar.

    Returns:
        The two parts; their elements are single examples in the structure of `dataset`. With
        `shuffle` the order is the same in each walk, so that the parts stay what they are.

    Raises:
        InvalidArgumentError: no size, a size out of range, a part without examples, arrays of
            different lengths, or a Dataset without end.

    Examples:
        >>> left, right = laminar.utils.split_dataset(np.arange(10), left_size=0.8)
        >>> len(list(left)), len(list(right))
        (8, 2)
    """
    if isinstance(dataset, Dataset):
        return _split(dataset, left_size, right_size, shuffle, seed)
    arrays = map_structure(np.asarray, _in_memory(dataset))
    total = _count_examples(flatten(arrays))
    left, right = _sizes(left_size, right_size, total)
    if shuffle:
        key = make_default_seed() if seed is None else seed
        order = np.random.Generator(np.random.Philox(key=[key, 0])).permutation(total)
        arrays = map_structure(lambda a: a[order], arrays)
    parts = slice(None, left), slice(total - right, None)
    first, second = (
        Dataset.from_tensor_slices(map_structure(lambda a: a[part], arrays))  # noqa: B023  # at once
        for part in parts
    )
    return first, second


def _in_memory(dataset: Any) -> Any:
    """Arrays as they are, lists as tuples; the elements of anything else one above the other."""
    if isinstance(dataset, list):
        return tuple(dataset)
    if isinstance(dataset, tuple | Mapping) or hasattr(dataset, "__array__"):
        return dataset
    if hasattr(dataset, "__getitem__") and hasattr(dataset, "__len__"):
        rows = [dataset[i] for i in range(len(dataset))]
    elif isinstance(dataset, Iterable):
        rows = list(dataset)
    else:
        raise InvalidArgumentError(
            f"split_dataset: expected arrays or a Dataset, got {dataset!r}",
            remedy="pass NumPy arrays: one, or several as (x, y)",
        )
    return map_structure(lambda *parts: np.stack([np.asarray(p) for p in parts]), *rows)


def _split(
    dataset: Dataset, left: float | None, right: float | None, shuffle: bool, seed: int | None
) -> tuple[Dataset, Dataset]:
    total = dataset.cardinality()
    if total == INFINITE:
        raise InvalidArgumentError(
            "split_dataset: the Dataset has no end", remedy="split it before repeat()"
        )
    if total == UNKNOWN:
        with dataset.as_numpy_iterator() as walk:
            total = sum(1 for _ in walk)
    first, second = _sizes(left, right, total)
    if shuffle:
        dataset = dataset.shuffle(total, seed, reshuffle_each_iteration=False)
    return dataset.take(first), dataset.skip(total - second)


def _count_examples(arrays: list[Any]) -> int:
    shapes = [a.shape for a in arrays]
    if not shapes or () in shapes or len({shape[0] for shape in shapes}) > 1:
        raise InvalidArgumentError(
            f"split_dataset: expected arrays with the same number of rows, got the shapes {shapes}",
            remedy="pass NumPy arrays: one, or several as (x, y)",
        )
    return int(shapes[0][0])


def _sizes(left: float | None, right: float | None, total: int) -> tuple[int, int]:
    if left is None and right is None:
        raise InvalidArgumentError(
            "split_dataset: neither left_size nor right_size is given", remedy="left_size=0.8"
        )
    counts = [_count(n, s, total) for n, s in (("left_size", left), ("right_size", right))]
    first = counts[0] if counts[0] is not None else total - (counts[1] or 0)
    second = counts[1] if counts[1] is not None else total - first
    if first + second > total:
        raise InvalidArgumentError(
            f"split_dataset: left_size={left!r} and right_size={right!r} are {first + second} "
            f"examples, there are {total}",
            remedy="leave one of them out",
        )
    if not first or not second:
        raise InvalidArgumentError(
            f"split_dataset: with left_size={left!r} and right_size={right!r} of {total} examples "
            f"the {'second' if first else 'first'} part is empty",
            remedy="give a size of at least one example",
        )
    return first, second


def _count(name: str, size: float | None, total: int) -> int | None:
    """A size as a number of examples."""
    if size is None:
        return None
    if isinstance(size, int | np.integer) and not isinstance(size, bool) and 0 < size < total:
        return int(size)
    if isinstance(size, float) and 0 < size < 1:
        return round(size * total)
    raise InvalidArgumentError(
        f"split_dataset: {name} must be a fraction between 0 and 1 or a number of examples below "
        f"{total}, got {size!r}"
    )
