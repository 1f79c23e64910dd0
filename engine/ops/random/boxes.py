"""SampleDistortedBox: a random part of an image that holds enough of the objects in it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Array, TensorSpec, float32, int32
from ..core.registry import define, no_gradient
from .distributions import uniform
from .random_state import STATE, check_state, stream

_WORDS = 4  # random numbers of one try


@define(
    "SampleDistortedBox",
    dtypes={**STATE, "size": {int32}, "boxes": {float32}},
    same_dtype=False,
)
def sample_distorted_box(
    state: TensorSpec,
    size: TensorSpec,
    boxes: TensorSpec,
    *,
    min_object_covered: float,
    aspect_ratio_range: tuple[float, float],
    area_range: tuple[float, float],
    max_attempts: int,
) -> TensorSpec:
    """(top, left, height, width), int32, of a part of an image of `size` (height, width, ...).

    Its area is a part of the image's and its width over its height a ratio, both from their ranges;
    it holds at least the part `min_object_covered` of one of `boxes` (n, 4), which are parts of the
    sides. After `max_attempts` tries without such a part, it is the whole image.
    """
    check_state("SampleDistortedBox", state)
    if boxes.shape.rank not in (2, None) or size.shape.rank not in (1, None):
        raise ShapeError(
            f"SampleDistortedBox: expected a size and boxes (n, 4), got {size}, {boxes}"
        )
    for what, (low, high) in (
        ("aspect_ratio_range", aspect_ratio_range),
        ("area_range", area_range),
    ):
        if not 0 < low <= high:
            raise InvalidArgumentError(
                f"SampleDistortedBox: {what} is from above 0 to no less, got {low} to {high}"
            )
    if area_range[1] > 1 or not 0 <= min_object_covered <= 1 or max_attempts < 1:
        raise InvalidArgumentError(
            "SampleDistortedBox: expected areas and min_object_covered of at most 1, and at least "
            f"one attempt; got {area_range}, {min_object_covered} and {max_attempts}"
        )
    return TensorSpec([4], int32)


@sample_distorted_box.kernel("cpu")
def _kernel(
    state: Array,
    size: Array,
    boxes: Array,
    *,
    min_object_covered: float,
    aspect_ratio_range: tuple[float, float],
    area_range: tuple[float, float],
    max_attempts: int,
) -> Array:
    key, counter = stream(state).values()
    height, width = (int(n) for n in size[:2])
    if height < 1 or width < 1:
        raise InvalidArgumentError(f"SampleDistortedBox: an image of {height} x {width} is empty")
    if boxes.size and not ((boxes >= 0) & (boxes <= 1)).all():
        raise InvalidArgumentError("SampleDistortedBox: boxes are parts of the sides, from 0 to 1")
    numbers = uniform(np, key, _WORDS * max_attempts, "float64", counter=counter)
    objects = boxes.astype(np.float64) * [height, width, height, width]
    for u in numbers.reshape(max_attempts, _WORDS):
        found = _try(u, height, width, aspect_ratio_range, area_range)
        if found is not None and _covers(found, objects, min_object_covered):
            return np.array(found, np.int32)
    return np.array([0, 0, height, width], np.int32)


def _try(
    u: Any, height: int, width: int, ratios: tuple[float, float], areas: tuple[float, float]
) -> tuple[int, int, int, int] | None:
    """One part of the image, or None where it does not fit."""
    ratio = ratios[0] + u[0] * (ratios[1] - ratios[0])
    least, most = (part * height * width for part in areas)
    low = round(np.sqrt(least / ratio))
    high = min(round(np.sqrt(most / ratio)), int((width + 0.5 - 1e-7) / ratio), height)
    rows = min(low, high) + int(u[1] * (max(high, low) - min(low, high) + 1))
    columns = round(rows * ratio)
    if not (1 <= rows <= height and 1 <= columns <= width):
        return None
    if not least * 0.999 - 1 <= rows * columns <= most * 1.001 + 1:
        return None
    top, left = int(u[2] * (height - rows + 1)), int(u[3] * (width - columns + 1))
    return top, left, rows, columns


def _covers(part: tuple[int, int, int, int], objects: Any, share: float) -> bool:
    """Whether it holds enough of one of the objects, (top, left, bottom, right) in pixels."""
    if not len(objects):
        return True
    top, left, rows, columns = part
    down = np.minimum(objects[:, 2], top + rows) - np.maximum(objects[:, 0], top)
    right = np.minimum(objects[:, 3], left + columns) - np.maximum(objects[:, 1], left)
    inside = np.maximum(down, 0) * np.maximum(right, 0)
    whole = (objects[:, 2] - objects[:, 0]) * (objects[:, 3] - objects[:, 1])
    return bool(((inside >= share * whole) & (whole > 0)).any())


sample_distorted_box.grad(no_gradient)
