"""Small conversions of arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import ops
from laminar.config import floatx
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor


def to_categorical(x: Any, num_classes: int | None = None) -> Any:
    """One-hot rows of class numbers.

    Args:
        x: integers in [0, num_classes), any shape; a last axis of size 1 is dropped.
        num_classes: length of the rows, by default the greatest number plus one.

    Returns:
        float64 array of shape (*x.shape, num_classes); of a tensor, a tensor of the default float.

    Raises:
        InvalidArgumentError: a number outside the range, or no numbers and no `num_classes`.

    Examples:
        >>> laminar.utils.to_categorical([0, 2], num_classes=3)
        array([[1., 0., 0.],
               [0., 0., 1.]])
    """
    given = np.asarray(x)
    if given.dtype.kind not in "biuf":
        raise InvalidArgumentError(
            f"to_categorical: the labels must be numbers, got {given.dtype}",
            remedy="number the classes first, as with StringLookup",
        )
    labels = given.astype("int64")
    if labels.ndim > 1 and labels.shape[-1] == 1:
        labels = labels[..., 0]
    if not labels.size and not num_classes:
        raise InvalidArgumentError(
            "to_categorical: there are no labels to tell the number of classes from",
            remedy="pass num_classes",
        )
    count = num_classes or int(labels.max()) + 1
    if labels.size and (labels.min() < 0 or labels.max() >= count):
        raise InvalidArgumentError(
            f"to_categorical: the labels go from {labels.min()} to {labels.max()}, "
            f"expected 0 to {count - 1}",
            remedy=f"pass num_classes={labels.max() + 1}"
            if labels.min() >= 0
            else "number the classes from 0",
        )
    rows = np.zeros((labels.size, count))
    rows[np.arange(labels.size), labels.ravel()] = 1
    found = rows.reshape(*labels.shape, count)
    return ops.convert_to_tensor(found, dtype=floatx()) if isinstance(x, Tensor) else found


def normalize(x: Any, axis: int = -1, order: int = 2) -> Any:
    """`x` divided by its norm along an axis; where the norm is 0, `x` stays.

    Args:
        x: array, or tensor.
        axis: along which the norm is taken.
        order: of the norm: (sum |x|**order) ** (1 / order).

    Returns:
        An array, or a tensor for a tensor, of the shape of `x`.

    Examples:
        >>> laminar.utils.normalize(np.array([[3.0, 4.0]]))
        array([[0.6, 0.8]])
    """
    if isinstance(x, Tensor):
        return ops.normalize(x, axis=axis, order=order)
    x = np.asarray(x)
    norm = np.linalg.norm(x, order, axis, keepdims=True)
    return x / np.where(norm == 0, 1, norm)
