"""Formats of bounding boxes: corners, or a corner or the center with a size; x or y first."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError, UnimplementedError


class Format(NamedTuple):
    """What the four numbers of a box are.

    Attributes:
        kind: "corners"; or "corner" or "center", and a size.
        is_yx: whether y comes first.
        is_relative: whether they are parts of the size of the image.
    """

    kind: str
    is_yx: bool = False
    is_relative: bool = False


_PLAIN = {
    "xyxy": Format("corners"),
    "yxyx": Format("corners", is_yx=True),
    "xywh": Format("corner"),
    "center_xywh": Format("center"),
    "center_yxhw": Format("center", is_yx=True),
}
FORMATS = _PLAIN | {
    f"rel_{name}": _PLAIN[name]._replace(is_relative=True)
    for name in ("xyxy", "yxyx", "xywh", "center_xywh")
}


def format_of(name: str) -> Format:
    """The format of a name.

    Raises:
        InvalidArgumentError: there is none of that name.
    """
    found = FORMATS.get(name.lower())
    if found is None:
        raise InvalidArgumentError(
            f"bounding boxes have one of the formats {', '.join(FORMATS)}; got {name!r}"
        )
    return found


def convert_format(
    boxes: Any,
    source: str,
    target: str,
    height: Any = None,
    width: Any = None,
    dtype: str = "float32",
) -> Any:
    """Boxes in another format.

    The formats are "xyxy" (left, top, right, bottom), "yxyx", "xywh" (left, top, width, height),
    "center_xywh", "center_yxhw", and with "rel_" before them (but for the last) as parts of the
    size of the image.

    Args:
        boxes: (..., 4), or a dict with such "boxes".
        source: the format that they have.
        target: the one that they are to have.
        height, width: of the image, where one of the two is relative.
        dtype: of the result.

    Raises:
        InvalidArgumentError: there is no such format, or the size is needed.
        ShapeError: there are not four numbers for each box.

    Examples:
        >>> laminar.bounding_boxes.convert_format(
        ...     np.array([[10.0, 20.0, 30.0, 60.0]]), "xyxy", "xywh"
        ... )
        Tensor([[10., 20., 20., 40.]], shape=(1, 4), dtype=float32)
    """
    if isinstance(boxes, dict):
        made = convert_format(boxes["boxes"], source, target, height, width, dtype)
        return {**boxes, "boxes": made}
    x = ops.cast(ops.convert_to_tensor(boxes), dtype)
    if not len(x.shape) or x.shape[-1] != 4:
        raise ShapeError(f"a bounding box has four numbers, got the shape {tuple(x.shape)}")
    given, wanted = format_of(source), format_of(target)
    if (given.is_relative or wanted.is_relative) and (height is None or width is None):
        raise InvalidArgumentError(
            f"convert_format: from {source!r} to {target!r} it takes the size of the image",
            remedy="give height= and width=",
        )
    if given == wanted:
        return x
    corners = _corners(_split(x), given)
    if given.is_relative != wanted.is_relative:
        size = [ops.cast(width, dtype), ops.cast(height, dtype)] * 2
        scaled = ops.multiply if given.is_relative else ops.divide
        corners = [scaled(c, s) for c, s in zip(corners, size, strict=True)]
    return ops.concatenate(_of_corners(corners, wanted), axis=-1)


def _split(x: Any) -> list[Any]:
    return [x[..., i : i + 1] for i in range(4)]


def _swapped(values: Sequence[Any]) -> list[Any]:
    a, b, c, d = values
    return [b, a, d, c]


def _corners(values: list[Any], given: Format) -> list[Any]:
    """Left, top, right, bottom."""
    x, y, a, b = _swapped(values) if given.is_yx else values
    if given.kind == "corners":
        return [x, y, a, b]
    if given.kind == "center":
        x, y = x - a / 2, y - b / 2
    return [x, y, x + a, y + b]


def _of_corners(corners: list[Any], wanted: Format) -> list[Any]:
    left, top, right, bottom = corners
    if wanted.kind == "corners":
        found = corners
    else:
        a, b = right - left, bottom - top
        is_center = wanted.kind == "center"
        found = [left + a / 2 if is_center else left, top + b / 2 if is_center else top, a, b]
    return _swapped(found) if wanted.is_yx else found


def only(who: str, name: str, *allowed: str) -> None:
    """UnimplementedError for a format that is not among those."""
    if name not in allowed:
        raise UnimplementedError(
            f"{who}: it takes boxes in the format {' or '.join(map(repr, allowed))}, got {name!r}",
            remedy="convert them by convert_format first",
        )


def size_of(who: str, image_shape: Sequence[Any] | None, *formats: str) -> tuple[Any, Any]:
    """Height and width of an image; InvalidArgumentError where a format needs them."""
    if image_shape is None:
        if any(format_of(name).is_relative for name in formats):
            raise InvalidArgumentError(
                f"{who}: relative boxes take the size of the image",
                remedy="give image_shape=(height, width, channels)",
            )
        return None, None
    height, width, *_ = image_shape
    return height, width
