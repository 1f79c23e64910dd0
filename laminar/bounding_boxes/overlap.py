"""How far bounding boxes overlap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.settings import epsilon

from .formats import convert_format, format_of, size_of


def compute_iou(
    boxes1: Any,
    boxes2: Any,
    bounding_box_format: str,
    use_masking: bool = False,
    mask_val: float = -1,
    image_shape: Sequence[Any] | None = None,
) -> Any:
    """The area that two boxes share, as a part of the area that both cover, for all pairs.

    Args:
        boxes1: (n, 4) or (batch, n, 4).
        boxes2: (m, 4) or (batch, m, 4).
        bounding_box_format: of both; see `convert_format`.
        use_masking: whether pairs of boxes with negative numbers alone get `mask_val`.
        mask_val: the value of such pairs.
        image_shape: (height, width, channels), for relative formats.

    Returns:
        (n, m) or (batch, n, m).

    Raises:
        ShapeError: the boxes have other axes.
        InvalidArgumentError: the size of the image is needed.

    Examples:
        >>> a, b = np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[1.0, 0.0, 3.0, 2.0]])
        >>> laminar.bounding_boxes.compute_iou(a, b, "xyxy")
        Tensor([[0.3333]], shape=(1, 1), dtype=float32)
    """
    for boxes in (boxes1, boxes2):
        rank = len(ops.shape(boxes))
        if rank not in (2, 3):
            raise ShapeError(f"compute_iou: boxes have 2 or 3 axes, got {rank}")
    height, width = size_of("compute_iou", image_shape, bounding_box_format)
    first, second = (
        convert_format(b, bounding_box_format, "xyxy", height, width) for b in (boxes1, boxes2)
    )
    first, second = first[..., :, None, :], second[..., None, :, :]
    shared = _shared(first, second)
    areas = [(b[..., 2] - b[..., 0]) * (b[..., 3] - b[..., 1]) for b in (first, second)]
    found = shared / (areas[0] + areas[1] - shared + epsilon())
    if not use_masking:
        return found
    is_none = ops.logical_or(ops.max(first, axis=-1) < 0, ops.max(second, axis=-1) < 0)
    return ops.where(is_none, ops.cast(mask_val, found.dtype), found)


def _shared(a: Any, b: Any) -> Any:
    """The area that boxes share."""
    width = ops.minimum(a[..., 2], b[..., 2]) - ops.maximum(a[..., 0], b[..., 0])
    height = ops.minimum(a[..., 3], b[..., 3]) - ops.maximum(a[..., 1], b[..., 1])
    return ops.maximum(width, 0) * ops.maximum(height, 0)


def compute_ciou(
    boxes1: Any, boxes2: Any, bounding_box_format: str, image_shape: Sequence[Any] | None = None
) -> Any:
    """How far boxes overlap, less how far their centers and their proportions differ.

    iou - d^2 / c^2 - alpha v, where d is the distance of the centers, c the diagonal of the box
    around both, v = 4 / pi^2 (atan(w2 / h2) - atan(w1 / h1))^2 and alpha = v / (1 - iou + v).

    Args:
        boxes1: (..., 4).
        boxes2: (..., 4).
        bounding_box_format: of both, in pixels; see `convert_format`.
        image_shape: taken for Keras's sake.

    Returns:
        (...).

    Raises:
        InvalidArgumentError: a relative format: proportions are those of pixels.

    Source: Zheng et al., "Distance-IoU loss: faster and better learning for bounding box
        regression", 2020, arXiv:1911.08287, equations 8 to 11.

    Examples:
        >>> a, b = np.array([[0.0, 0.0, 2.0, 2.0]]), np.array([[0.0, 0.0, 2.0, 2.0]])
        >>> laminar.bounding_boxes.compute_ciou(a, b, "xyxy")
        Tensor([1.], shape=(1,), dtype=float32)
    """
    if format_of(bounding_box_format).is_relative:
        raise InvalidArgumentError(
            f"compute_ciou: it takes boxes in pixels, got {bounding_box_format!r}",
            remedy="convert them by convert_format first",
        )
    a, b = (convert_format(boxes, bounding_box_format, "xyxy") for boxes in (boxes1, boxes2))
    tiny = epsilon()
    (w1, h1), (w2, h2) = ((x[..., 2] - x[..., 0], x[..., 3] - x[..., 1] + tiny) for x in (a, b))
    shared = _shared(a, b)
    iou = shared / (w1 * h1 + w2 * h2 - shared + 2 * tiny)
    width = ops.maximum(a[..., 2], b[..., 2]) - ops.minimum(a[..., 0], b[..., 0])
    height = ops.maximum(a[..., 3], b[..., 3]) - ops.minimum(a[..., 1], b[..., 1])
    centers = [(x[..., :2] + x[..., 2:]) / 2 for x in (a, b)]
    distance = ops.sum(ops.square(centers[0] - centers[1]), axis=-1)
    v = 4 / math.pi**2 * ops.square(ops.arctan(w2 / h2) - ops.arctan(w1 / h1))
    alpha = v / (v - iou + (1 + tiny))
    return iou - (distance / (width**2 + height**2 + tiny) + v * alpha)
