"""Small conversions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """One-hot rows of class numbers.

    Args:
        x: integers in [0, num_classes), any shape; a last axis of size 1 is dropped.
        num_classes: length of the rows, by default the greatest number plus one.

    Returns:
        float64 array of shape (*x.shape, num_classes).

    Raises:
        InvalidArgumentError: a number outside the range.
    """
    labels = np.asarray(x).astype("int64")
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    count = int(labels.max(initial=-1)) + 1 if num_classes is None else num_classes
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise InvalidArgumentError(
            f"to_categorical: the labels go from {labels.min()} to {labels.max()}, "
            f"expected 0 to {count - 1}",
            remedy=f"pass num_classes={labels.max() + 1}, or number the classes from 0",
        )
    return np.eye(count)[labels]


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """`x` divided by its norm of that order along an axis; zero vectors stay."""
    x = np.asarray(x)
    norm = np.linalg.norm(x, order, axis, keepdims=True)
    return x / np.where(norm == 0, 1, norm)
