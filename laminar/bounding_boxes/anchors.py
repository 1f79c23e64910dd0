"""Bounding boxes as what differs from anchors, which is what detectors learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.settings import epsilon

from .formats import convert_format, size_of

_ENCODINGS = ("center_xywh", "center_yxhw")


def _checked(who: str, encoding: str, variance: Any) -> Any:
    """The variance as a tensor, None where there is none."""
    if encoding not in _ENCODINGS:
        raise InvalidArgumentError(
            f"{who}: deltas are of {' or '.join(map(repr, _ENCODINGS))}, got {encoding!r}"
        )
    if variance is None:
        return None
    found = ops.convert_to_tensor(variance, "float32")
    if found.shape[-1] != 4:
        raise InvalidArgumentError(f"{who}: variance has four numbers, got {variance!r}")
    return found


def encode_box_to_deltas(
    anchors: Any,
    boxes: Any,
    anchor_format: str,
    box_format: str,
    encoding_format: str = "center_yxhw",
    variance: Any = None,
    image_shape: Sequence[Any] | None = None,
) -> Any:
    """What boxes differ by from anchors: (center - anchor) / size, log(size of box / of anchor).

    Args:
        anchors: (n, 4).
        boxes: (n, 4) or (batch, n, 4).
        anchor_format: of the anchors; see `convert_format`.
        box_format: of the boxes.
        encoding_format: "center_yxhw" or "center_xywh": the order of the deltas.
        variance: four numbers, which the deltas are divided by.
        image_shape: (height, width, channels), for relative formats.

    Raises:
        InvalidArgumentError: another encoding, other than four numbers, or no size.

    Source: Ren et al., "Faster R-CNN", 2015, arXiv:1506.01497, equation 2.

    Examples:
        >>> anchors = np.array([[0.0, 0.0, 10.0, 10.0]])
        >>> laminar.bounding_boxes.encode_box_to_deltas(anchors, anchors, "xyxy", "xyxy")
        Tensor([[0., 0., 0., 0.]], shape=(1, 4), dtype=float32)
    """
    divisor = _checked("encode_box_to_deltas", encoding_format, variance)
    size = size_of("encode_box_to_deltas", image_shape, anchor_format, box_format)
    anchor = convert_format(anchors, anchor_format, encoding_format, *size)
    box = convert_format(boxes, box_format, encoding_format, *size)
    anchor_size, box_size = (ops.maximum(x[..., 2:], epsilon()) for x in (anchor, box))
    moved = (box[..., :2] - anchor[..., :2]) / anchor_size
    found = ops.concatenate([moved, ops.log(box_size / anchor_size)], axis=-1)
    return found if divisor is None else found / divisor


def decode_deltas_to_boxes(
    anchors: Any,
    boxes_delta: Any,
    anchor_format: str,
    box_format: str,
    encoded_format: str = "center_yxhw",
    variance: Any = None,
    image_shape: Sequence[Any] | None = None,
) -> Any:
    """The boxes that differ from anchors by deltas; see `encode_box_to_deltas`.

    Args:
        anchors: (n, 4), or a dict of such by level.
        boxes_delta: (n, 4) or (batch, n, 4), or a dict of such.
        anchor_format: of the anchors; see `convert_format`.
        box_format: that the boxes are to have.
        encoded_format: the order of the deltas.
        variance: four numbers, which the deltas are multiplied by.
        image_shape: (height, width, channels), for relative formats.

    Raises:
        InvalidArgumentError: another encoding, other than four numbers, or no size.

    Examples:
        >>> anchors = np.array([[0.0, 0.0, 10.0, 10.0]])
        >>> deltas = np.zeros((1, 1, 4))
        >>> laminar.bounding_boxes.decode_deltas_to_boxes(anchors, deltas, "xyxy", "xyxy")
        Tensor([[[ 0.,  0., 10., 10.]]], shape=(1, 1, 4), dtype=float32)
    """
    factor = _checked("decode_deltas_to_boxes", encoded_format, variance)
    size = size_of("decode_deltas_to_boxes", image_shape, anchor_format, box_format)

    def decoded(anchors: Any, deltas: Any) -> Any:
        anchor = convert_format(anchors, anchor_format, encoded_format, *size)
        delta = ops.convert_to_tensor(deltas)
        delta = delta if factor is None else delta * factor
        center = delta[..., :2] * anchor[..., 2:] + anchor[..., :2]
        box = ops.concatenate([center, ops.exp(delta[..., 2:]) * anchor[..., 2:]], axis=-1)
        return convert_format(box, encoded_format, box_format, *size)

    if isinstance(anchors, dict) and isinstance(boxes_delta, dict):
        return {level: decoded(anchor, boxes_delta[level]) for level, anchor in anchors.items()}
    return decoded(anchors, boxes_delta)
