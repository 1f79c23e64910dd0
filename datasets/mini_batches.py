"""Data sets that give their next batch, for loops that feed a session."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import InvalidArgumentError, ShapeError

from .splits import Examples

_SOURCES = ("digits", "mnist", "fashion_mnist")
_CLASSES = 10


class MiniBatches:
    """Examples in memory, and where the next batch begins.

    Args:
        images: one row an example.
        labels: as many rows.
        seed: of the orders; the same seed gives the same batches.

    Raises:
        ShapeError: there are no examples, or not as many images as labels.

    Attributes:
        images: as they are given.
        labels: the same.
        epochs_completed: how often all examples have been given.

    Examples:
        >>> batches = laminar.datasets.MiniBatches(np.zeros((10, 4)), np.zeros((10, 3)))
        >>> images, labels = batches.next_batch(5)
        >>> images.shape, labels.shape
        ((5, 4), (5, 3))
    """

    def __init__(self, images: Any, labels: Any, seed: int = 0) -> None:
        self.images, self.labels = np.asarray(images), np.asarray(labels)
        shapes = (self.images.shape, self.labels.shape)
        if not all(shapes) or shapes[0][0] != shapes[1][0] or not shapes[0][0]:
            raise ShapeError(f"MiniBatches: expected as many images as labels, got {shapes}")
        self.epochs_completed = 0
        self._rng = np.random.default_rng(seed)
        self._order: NDArray[np.int64] | None = None
        self._at = 0

    @property
    def num_examples(self) -> int:
        """How many there are."""
        return len(self.images)

    def next_batch(self, batch_size: int, shuffle: bool = True) -> Examples:
        """The next images and labels.

        An epoch gives each example once, in a new order if `shuffle`. A batch at the end of an
        epoch is filled up with examples of the next one.

        Raises:
            InvalidArgumentError: `batch_size` is not from 1 to the number of examples.
        """
        if not 1 <= batch_size <= self.num_examples:
            raise InvalidArgumentError(
                f"next_batch: batch_size must be from 1 to {self.num_examples}, got {batch_size}"
            )
        order = self._order if self._order is not None else self._new_order(shuffle)
        taken = order[self._at : self._at + batch_size]
        self._at += len(taken)
        if len(taken) < batch_size:
            self.epochs_completed += 1
            self._at = batch_size - len(taken)
            taken = np.concatenate([taken, self._new_order(shuffle)[: self._at]])
        return self.images[taken], self.labels[taken]

    def _new_order(self, shuffle: bool) -> NDArray[np.int64]:
        count = self.num_examples
        self._order = self._rng.permutation(count) if shuffle else np.arange(count)
        return self._order


class DataSets(NamedTuple):
    """What `read_data_sets` gives.

    Examples:
        >>> data = laminar.datasets.read_data_sets("digits", one_hot=True)
        >>> data.train.images.shape, data.test.labels.shape
        ((1437, 64), (360, 10))
    """

    train: MiniBatches
    validation: MiniBatches | None
    test: MiniBatches


def read_data_sets(
    source: str = "digits",
    *,
    one_hot: bool = True,
    reshape: bool = True,
    validation_size: int = 0,
    seed: int = 0,
) -> DataSets:
    """Pictures of ten classes as floats from 0 to 1, in sets that give batches.

    Args:
        source: "digits" (8x8, ships with laminar), "mnist" or "fashion_mnist" (28x28, downloaded
            on first use).
        one_hot: whether labels are rows with a 1 at their class, float32 (examples, 10), instead
            of class numbers.
        reshape: whether an image is a row of pixels, instead of (height, width, 1).
        validation_size: how many of the examples for training, the first ones, are set aside.
        seed: of the order of the batches.

    Raises:
        InvalidArgumentError: another source, or a validation size that leaves no examples.
        UnavailableError, DataLossError: of the download.

    Examples:
        >>> data = laminar.datasets.read_data_sets("digits")
        >>> images, labels = data.train.next_batch(100)
        >>> images.shape, labels.shape
        ((100, 64), (100, 10))
    """
    if source not in _SOURCES:
        raise InvalidArgumentError(
            f"read_data_sets: source must be one of {', '.join(_SOURCES)}, got {source!r}"
        )
    train, test = import_module(f".{source}", __package__).load_data()
    if not 0 <= validation_size < len(train[0]):
        raise InvalidArgumentError(
            f"read_data_sets: validation_size must be from 0 to {len(train[0]) - 1}, "
            f"got {validation_size}"
        )
    top = 16 if source == "digits" else 255

    def made(examples: Examples, rows: slice) -> MiniBatches:
        images, labels = (part[rows] for part in examples)
        shape = (len(images), -1) if reshape else (*images.shape, 1)
        pixels = images.reshape(shape).astype("float32") / top
        return MiniBatches(
            pixels, np.eye(_CLASSES, dtype="float32")[labels] if one_hot else labels, seed
        )

    aside = made(train, slice(0, validation_size)) if validation_size else None
    return DataSets(made(train, slice(validation_size, None)), aside, made(test, slice(None)))
