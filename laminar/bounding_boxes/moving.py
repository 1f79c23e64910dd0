"""What becomes of bounding boxes when their image is cropped, padded, turned."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError

from .formats import only


def clip_to_image_size(
    bounding_boxes: dict[str, Any],
    height: Any = None,
    width: Any = None,
    bounding_box_format: str = "xyxy",
) -> dict[str, Any]:
    """Boxes cut off at the borders of their image; labels of those without an area become -1.

    Args:
        bounding_boxes: has "boxes", (..., n, 4), and perhaps "labels", (..., n).
        height, width: of the image, for boxes in pixels.
        bounding_box_format: "xyxy" or "rel_xyxy".

    Raises:
        InvalidArgumentError: the size is needed.
        UnimplementedError: another format.

    Examples:
        >>> boxes = {"boxes": np.array([[-5.0, 0.0, 20.0, 99.0]]), "labels": np.array([1])}
        >>> laminar.bounding_boxes.clip_to_image_size(boxes, height=50, width=50)["boxes"]
        Tensor([[ 0.,  0., 20., 50.]], shape=(1, 4), dtype=float64)
    """
    only("clip_to_image_size", bounding_box_format, "xyxy", "rel_xyxy")
    boxes = ops.convert_to_tensor(bounding_boxes["boxes"])
    if bounding_box_format == "rel_xyxy":
        height = width = 1
    elif height is None or width is None:
        raise InvalidArgumentError(
            "clip_to_image_size: boxes in pixels take the size of the image",
            remedy="give height= and width=",
        )
    clipped = _clipped(boxes, height, width)
    found = {**bounding_boxes, "boxes": clipped}
    if bounding_boxes.get("labels") is not None:
        left, top, right, bottom = (clipped[..., i] for i in range(4))
        has_area = (right - left) * (bottom - top) > 0
        labels = ops.convert_to_tensor(bounding_boxes["labels"])
        found["labels"] = ops.where(has_area, labels, ops.cast(-1, labels.dtype))
    return found


def _clipped(boxes: Any, height: Any, width: Any) -> Any:
    ends = [ops.cast(width, boxes.dtype), ops.cast(height, boxes.dtype)] * 2
    parts = [ops.clip(boxes[..., i : i + 1], 0, end) for i, end in enumerate(ends)]
    return ops.concatenate(parts, axis=-1)


def _moved(boxes: Any, left: Any, top: Any) -> Any:
    x = ops.convert_to_tensor(boxes)
    return ops.concatenate(
        [x[..., i : i + 1] + (top if i % 2 else left) for i in range(4)], axis=-1
    )


def crop(
    boxes: Any, top: Any, left: Any, height: Any, width: Any, bounding_box_format: str = "xyxy"
) -> Any:
    """Boxes in a part of their image: moved by where it begins, and cut off at its borders.

    Args:
        boxes: (..., 4), in pixels.
        top, left: where the part begins.
        height, width: of the part.
        bounding_box_format: "xyxy".

    Raises:
        UnimplementedError: another format.

    Examples:
        >>> boxes = np.array([[[10.0, 20.0, 30.0, 40.0]]])
        >>> laminar.bounding_boxes.crop(boxes, top=5, left=5, height=30, width=20)
        Tensor([[[ 5., 15., 20., 30.]]], shape=(1, 1, 4), dtype=float64)
    """
    only("crop", bounding_box_format, "xyxy")
    return _clipped(_moved(boxes, -left, -top), height, width)


def pad(
    boxes: Any,
    top: Any,
    left: Any,
    height: Any = None,
    width: Any = None,
    bounding_box_format: str = "xyxy",
) -> Any:
    """Boxes in an image that their image is a part of.

    Args:
        boxes: (..., 4), in pixels.
        top, left: where their image begins.
        height, width: taken for Keras's sake.
        bounding_box_format: "xyxy".

    Raises:
        UnimplementedError: another format.

    Examples:
        >>> laminar.bounding_boxes.pad(np.array([[[10.0, 20.0, 30.0, 40.0]]]), top=5, left=1)
        Tensor([[[11., 25., 31., 45.]]], shape=(1, 1, 4), dtype=float64)
    """
    only("pad", bounding_box_format, "xyxy")
    return _moved(boxes, left, top)


def affine_transform(
    boxes: Any,
    angle: Any,
    translate_x: Any,
    translate_y: Any,
    scale: Any,
    shear_x: Any,
    shear_y: Any,
    height: Any,
    width: Any,
    center_x: Any = None,
    center_y: Any = None,
    bounding_box_format: str = "xyxy",
) -> Any:
    """The smallest boxes around what becomes of boxes when their image is turned, moved, sheared.

    Args:
        boxes: (batch, n, 4), in pixels.
        angle: in degrees, one for each image, as all that follows.
        translate_x, translate_y: parts of the size.
        scale: how much larger the image becomes.
        shear_x, shear_y: in degrees.
        height, width: of the images.
        center_x, center_y: what stays in its place, as parts of the size; the middle by default.
        bounding_box_format: "xyxy".

    Returns:
        (batch, n, 4).

    Raises:
        UnimplementedError: another format.

    Examples:
        >>> boxes = np.array([[[10.0, 20.0, 30.0, 40.0]]])
        >>> zero, one = [0.0], [1.0]
        >>> laminar.bounding_boxes.affine_transform(
        ...     boxes, zero, [0.1], zero, one, zero, zero, 100, 100
        ... )
        Tensor([[[19.9, 20. , 39.9, 40. ]]], shape=(1, 1, 4), dtype=float32)
    """
    only("affine_transform", bounding_box_format, "xyxy")
    turn = -ops.convert_to_tensor(angle) * (math.pi / 180)
    along, up = (-ops.convert_to_tensor(s) * (math.pi / 180) for s in (shear_x, shear_y))
    x0 = (0.5 if center_x is None else center_x) * (width - 1)
    y0 = (0.5 if center_y is None else center_y) * (height - 1)
    # Rotation and shear, whose determinant is 1, so their inverse is made of the same numbers.
    a = ops.cos(turn - up) / ops.cos(up)
    b = a * ops.tan(along) + ops.sin(turn)
    c = -ops.sin(turn - up) / ops.cos(up)
    d = ops.cos(turn) - c * ops.tan(along)
    scale, translate_x, translate_y = (
        ops.convert_to_tensor(v, a.dtype) for v in (scale, translate_x, translate_y)
    )
    xx, xy, yx, yy = d * scale, -b * scale, -c * scale, a * scale
    x1, y1 = x0 - translate_x * (width - 1), y0 - translate_y * (height - 1)
    dx, dy = x0 - xx * x1 - xy * y1, y0 - yx * x1 - yy * y1
    points = ops.cast(ops.convert_to_tensor(boxes), a.dtype)
    xx, xy, yx, yy, dx, dy = (ops.reshape(v, (-1, 1)) for v in (xx, xy, yx, yy, dx, dy))
    return around(lambda x, y: (xx * x + xy * y + dx, yx * x + yy * y + dy), points)


def sides(boxes: Any) -> tuple[Any, Any, Any, Any]:
    """Left, top, right and bottom of boxes, (..., 4): each (...)."""
    return boxes[..., 0], boxes[..., 1], boxes[..., 2], boxes[..., 3]


def around(moved: Callable[[Any, Any], tuple[Any, Any]], boxes: Any) -> Any:
    """The smallest boxes around the corners of boxes, once these have moved.

    Args:
        moved: gives the new x and y of points, from their x and y, (batch, n) each.
        boxes: (batch, n, 4): left, top, right, bottom.
    """
    left, top, right, bottom = sides(boxes)
    corners = [moved(x, y) for x in (left, right) for y in (top, bottom)]
    xs, ys = (ops.stack(values, axis=-1) for values in zip(*corners, strict=True))
    ends = [f(v, axis=-1) for f in (ops.min, ops.max) for v in (xs, ys)]
    return ops.stack(ends, axis=-1)
