"""Boxes and masks on images.

This module owns Pillow's text, which is optional and loaded when a label is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from laminar import config
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError, UnimplementedError
from laminar.utils import bounding_boxes as boxes_of

Array = np.ndarray[Any, Any]
Color = Sequence[int]


def draw_bounding_boxes(
    images: Any,
    bounding_boxes: Mapping[str, Any],
    bounding_box_format: str,
    class_mapping: Mapping[int, str] | None = None,
    color: Color = (128, 128, 128),
    line_thickness: int = 2,
    text_thickness: int | None = 1,
    font_scale: float = 1.0,
    data_format: str | None = None,
) -> Array:
    """Draw boxes, and their labels, on images.

    Args:
        images: (batch, height, width, 3); floats of at most 1 are taken for parts of 255.
        bounding_boxes: "boxes", (batch, boxes, 4), "labels", (batch, boxes), -1 for no box, and
            perhaps "confidences" like the labels.
        bounding_box_format: see `utils.bounding_boxes.convert_format`.
        class_mapping: the texts of the labels; labels without one have no text.
        color: red, green and blue, 0 to 255.
        line_thickness: of the boxes, in pixels.
        text_thickness: of the letters, in pixels; None for that of the lines.
        font_scale: the size of the letters, 1 for 16 pixels.
        data_format: where the channels are.

    Returns:
        uint8 images, (batch, height, width, 3).

    Raises:
        ShapeError: the images are no batch.
        InvalidArgumentError: there are no boxes and labels.
        UnimplementedError: there are texts, and Pillow is not installed.

    Examples:
        >>> boxes = {"boxes": np.array([[[2.0, 2.0, 8.0, 8.0]]]), "labels": np.array([[1]])}
        >>> images = np.zeros((1, 16, 16, 3), "uint8")
        >>> drawn = laminar.visualization.draw_bounding_boxes(images, boxes, "xyxy")
        >>> drawn.shape, bool(drawn.any())
        ((1, 16, 16, 3), True)
    """
    drawn = _as_bytes(_batch(images, data_format, "draw_bounding_boxes"))
    if not isinstance(bounding_boxes, Mapping) or not {"boxes", "labels"} <= bounding_boxes.keys():
        raise InvalidArgumentError(
            "draw_bounding_boxes: bounding_boxes must be a dict with 'boxes' and 'labels', "
            f"got {bounding_boxes!r}"
        )
    height, width = drawn.shape[1:3]
    corners = np.asarray(
        boxes_of.convert_format(
            bounding_boxes["boxes"], bounding_box_format, "xyxy", height=height, width=width
        )
    )
    labels = np.asarray(bounding_boxes["labels"]).astype(int)
    confidences = bounding_boxes.get("confidences")
    for image, places, kinds, number in zip(
        drawn, corners.astype(int), labels, range(len(drawn)), strict=True
    ):
        for i, (box, kind) in enumerate(zip(places, kinds, strict=True)):
            if kind == -1:
                continue
            _rectangle(image, box, color, line_thickness)
            if class_mapping and kind in class_mapping:
                text = str(class_mapping[kind])
                if confidences is not None:
                    text += f" | {float(np.asarray(confidences)[number, i]):.2f}"
                _write(image, text, box, color, font_scale, text_thickness or line_thickness)
    return drawn


def _rectangle(image: Array, box: Array, color: Color, thickness: int) -> None:
    """A frame whose lines go to both sides of the edges, as far as they are in the image."""
    x1, y1, x2, y2 = (int(v) for v in box)
    out, inside = thickness // 2, thickness - thickness // 2
    for rows, columns in (
        ((y1 - out, y1 + inside), (x1 - out, x2 + inside)),
        ((y2 - out, y2 + inside), (x1 - out, x2 + inside)),
        ((y1 - out, y2 + inside), (x1 - out, x1 + inside)),
        ((y1 - out, y2 + inside), (x2 - out, x2 + inside)),
    ):
        (top, bottom), (left, right) = rows, columns
        image[max(top, 0) : max(bottom, 0), max(left, 0) : max(right, 0)] = color


def _write(image: Array, text: str, box: Array, color: Color, scale: float, thickness: int) -> None:
    """Text above a box, or inside where there is no room."""
    try:
        from PIL import Image, ImageDraw, ImageFont
    except ImportError as cause:
        raise UnimplementedError(
            "draw_bounding_boxes: texts need Pillow, which is not installed",
            remedy="pip install pillow, or leave class_mapping out",
        ) from cause
    size = max(round(16 * scale), 6)
    x, y = int(box[0]), int(box[1])
    place = (x, y - size - 4) if y > size + 4 else (x + 3, y + 3)
    page = Image.fromarray(image)
    ImageDraw.Draw(page).text(
        place,
        text,
        fill=tuple(color),
        font=ImageFont.load_default(size),
        stroke_width=max(thickness - 1, 0),
    )
    image[:] = np.asarray(page)


def draw_segmentation_masks(
    images: Any,
    segmentation_masks: Any,
    num_classes: int | None = None,
    color_mapping: Mapping[int, Color] | None = None,
    alpha: float = 0.8,
    blend: bool = True,
    ignore_index: int = -1,
    data_format: str | None = None,
) -> Array:
    """Lay the colors of classes over images.

    Args:
        images: (batch, height, width, 3), 0 to 255.
        segmentation_masks: the class of each pixel: whole numbers, (batch, height, width) or
            (batch, height, width, 1).
        num_classes: how many classes have colors, from 0 on; by default those below the greatest.
        color_mapping: red, green and blue of each class; by default a palette.
        alpha: how much of a pixel is the color, 0 to 1.
        blend: whether `alpha` counts; otherwise it is 1.
        ignore_index: a class that leaves the image as it is.
        data_format: where the channels are.

    Returns:
        uint8 images, (batch, height, width, 3).

    Raises:
        ShapeError: the images are no batch, or the masks are of other sizes.
        DTypeError: the masks are no whole numbers.

    Examples:
        >>> images = np.zeros((1, 8, 8, 3), "uint8")
        >>> masks = np.ones((1, 8, 8, 1), "int32")
        >>> laminar.visualization.draw_segmentation_masks(images, masks, num_classes=2).shape
        (1, 8, 8, 3)
    """
    given = _batch(images, data_format, "draw_segmentation_masks").astype("float32")
    masks = np.asarray(segmentation_masks)
    if masks.dtype.kind not in "iu":
        raise DTypeError(
            f"draw_segmentation_masks: the masks must be whole numbers, got {masks.dtype}"
        )
    if masks.ndim == 4:
        masks = masks[:, 0] if _first(data_format) else masks[..., 0]
    if masks.shape != given.shape[:3]:
        raise ShapeError(
            f"draw_segmentation_masks: the masks are {masks.shape}, the images {given.shape}"
        )
    count = int(masks.max()) if num_classes is None else num_classes
    colors = [_palette(i) if color_mapping is None else color_mapping[i] for i in range(count)]
    covered = given.copy()
    for i, color in enumerate(colors):
        covered[masks == i] = color
    part = alpha if blend else 1.0
    mixed = given * (1 - part) + covered * part
    mixed[masks == ignore_index] = given[masks == ignore_index]
    return mixed.astype("uint8")


def _palette(i: int) -> Color:
    """Colors far from each other, black for class 0."""
    return [(i * step) % 255 for step in (2**25 - 1, 2**15 - 1, 2**21 - 1)]


def _first(data_format: str | None) -> bool:
    return (data_format or config.image_data_format()) == "channels_first"


def _batch(images: Any, data_format: str | None, who: str) -> Array:
    """A batch of images as an array with the channels last."""
    array = np.asarray(images)
    if array.ndim != 4:
        raise ShapeError(
            f"{who}: images must be a batch, (batch, height, width, channels), "
            f"got the shape {array.shape}",
            remedy="images[None] makes a batch of one image",
        )
    return array.transpose(0, 2, 3, 1) if _first(data_format) else array


def _as_bytes(images: Array) -> Array:
    if images.dtype.kind == "f":
        scale = 255 if images.size and images.max() <= 1 else 1
        images = np.clip(images * scale, 0, 255)
    return np.array(images, "uint8")
