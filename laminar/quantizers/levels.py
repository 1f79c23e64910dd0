"""Whole numbers from 0 on with a scale and a zero for each group: x is about (q - zero) * scale.

A matrix has outputs along its first axis here, and inputs, of which each group has its own scale
and zero, along the second.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine.errors import ShapeError


class Levels(NamedTuple):
    """The scales and zeros of groups.

    Attributes:
        scale: (outputs, groups), above 0.
        zero: (outputs, groups), whole numbers.
        most: the largest number; the smallest is 0.
    """

    scale: Any
    zero: Any
    most: int

    def numbers(self, x: Any, groups: Any) -> Any:
        """Floats (outputs, inputs) as numbers; `groups` has the group of each input."""
        scale, zero = self.scale[:, groups], self.zero[:, groups].astype(x.dtype)
        return np.clip(np.round(x / scale + zero), 0, self.most)

    def floats(self, numbers: Any, groups: Any) -> Any:
        """What numbers stand for."""
        scale, zero = self.scale[:, groups], self.zero[:, groups].astype(self.scale.dtype)
        return (numbers - zero) * scale


def find_levels(
    x: Any,
    bits: int,
    *,
    symmetric: bool = False,
    per_channel: bool = True,
    group_size: int = -1,
) -> Levels:
    """The levels from the smallest to the largest number of each group.

    scale = (max - min) / (2 ** bits - 1), zero = round(-min / scale); 0 is in each range.

    Args:
        x: floats, (outputs, inputs).
        bits: of a number.
        symmetric: whether the range is as wide on both sides of 0, which is in its middle.
        per_channel: whether outputs differ; otherwise all have one scale.
        group_size: so many inputs have a scale, of the outputs that differ; -1 for all.

    Raises:
        ShapeError: `x` is no matrix, or empty.
    """
    x = np.asarray(x)
    if x.ndim != 2 or not x.size:
        raise ShapeError(f"find_levels: expected a matrix with elements, got shape {x.shape}")
    outputs, inputs = x.shape
    size = group_size if per_channel and 0 < group_size < inputs else inputs
    grouped = np.pad(x, [(0, 0), (0, -inputs % size)]).reshape(outputs, -1, size)
    axes = 2 if per_channel else (0, 2)
    least = np.minimum(grouped.min(axes, keepdims=True), 0)
    most = np.maximum(grouped.max(axes, keepdims=True), 0)
    if symmetric:
        most = np.maximum(-least, most)
        least = -most
    is_flat = least == most
    least, most = np.where(is_flat, least - 1, least), np.where(is_flat, most + 1, most)
    largest = 2**bits - 1
    scale = (most - least) / x.dtype.type(largest)
    zero = np.full_like(scale, (largest + 1) // 2) if symmetric else np.round(-least / scale)
    shape = (outputs, grouped.shape[1])
    scale, zero = (np.broadcast_to(each[:, :, 0], shape) for each in (scale, zero))
    return Levels(scale.astype(x.dtype), zero.astype(np.uint8), largest)
