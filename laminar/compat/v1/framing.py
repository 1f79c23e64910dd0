"""`tf.image`: parts of images, and images in a frame of zeros."""

from __future__ import annotations

from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.slicing import slice_at
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .arrays import pad
from .resizing import resize_images
from .values import dims_of, static, symbol


def _image(who: str, image: Any) -> Tensor:
    x = symbol(image)
    if x.shape.rank not in (3, 4):
        raise ShapeError(f"{who}: images have 3 or 4 axes, got {x.spec}")
    if 0 in x.shape[-3:]:
        raise ShapeError(f"{who}: the image has no pixels, it is {x.spec}")
    return x


def _check(who: str, holds: Any, what: str) -> None:
    if isinstance(holds, bool) and not holds:
        raise InvalidArgumentError(f"{who}: {what}")


def _known(*numbers: Any) -> bool:
    return all(isinstance(n, int) for n in numbers)


@v1()
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """The block of that size at that place."""
    who = "crop_to_bounding_box"
    x = _image(who, image)
    begin, size = [0] * (len(x.shape) - 3), [-1] * (len(x.shape) - 3)
    for axis, offset, target in (
        (-3, offset_height, target_height),
        (-2, offset_width, target_width),
    ):
        first, count, whole = static(offset), static(target), x.shape[axis]
        _check(who, not _known(first) or first >= 0, f"an offset is 0 or more, got {first}")
        _check(who, not _known(count) or count > 0, f"a size is above 0, got {count}")
        if _known(first, count, whole):
            _check(who, first + count <= whole, f"{count} from {first} on do not lie in {whole}")
        begin.append(first)
        size.append(count)
    return slice_at(x, [*begin, 0], [*size, -1])


@v1()
def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """Zeros around an image, which begins at that place."""
    who = "pad_to_bounding_box"
    x = _image(who, image)
    own = dims_of(x)
    around: list[list[Any]] = [[0, 0]] * (len(x.shape) - 3)
    wanted: list[Any] = list(x.shape[: len(x.shape) - 3])
    for axis, offset, target in (
        (-3, offset_height, target_height),
        (-2, offset_width, target_width),
    ):
        before, count = static(offset), static(target)
        _check(who, not _known(before) or before >= 0, f"an offset is 0 or more, got {before}")
        behind = count - before - own[axis]
        _check(who, not _known(behind) or behind >= 0, f"{own[axis]} do not fit into {count}")
        around.append([before, behind])
        wanted.append(count if _known(count) else None)
    found = _padded(x, [*around, [0, 0]])
    if hasattr(found, "set_shape"):
        found.set_shape([*wanted, x.shape[-1]])
    return found


def _padded(x: Tensor, around: list[list[Any]]) -> Any:
    if all(_known(*pair) for pair in around):
        return pad(x, around)
    return pad(x, ops.stack([ops.stack([cast(symbol(n), "int32") for n in p]) for p in around]))


@v1()
def central_crop(image: Any, central_fraction: float) -> Any:
    """The middle of an image, that part of each side."""
    if not 0 < central_fraction <= 1:
        raise ValueError(f"central_crop: central_fraction is in (0, 1], got {central_fraction}")
    x = _image("central_crop", image)
    if central_fraction == 1.0:
        return x
    height, width = dims_of(x)[-3:-1]

    def first(size: Any) -> Any:
        if _known(size):
            return int((size - size * central_fraction) / 2)
        floats = cast(size, "float64")
        return cast((floats - floats * central_fraction) / 2.0, "int32")

    top, left = first(height), first(width)
    return crop_to_bounding_box(x, top, left, height - 2 * top, width - 2 * left)


@v1()
def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Any:
    """The middle of an image, with zeros around where it is too small."""
    who = "resize_image_with_crop_or_pad"
    x = _image(who, image)
    height, width = static(target_height), static(target_width)
    for target in (height, width):
        _check(who, not _known(target) or target > 0, f"a size is above 0, got {target}")
    own = dims_of(x)[-3:-1]

    def least(a: Any, b: Any) -> Any:
        return min(a, b) if _known(a, b) else ops.minimum(symbol(a), symbol(b))

    def half(a: Any, b: Any) -> Any:
        """How much more a is than b, on one side; 0 where it is less."""
        if _known(a, b):
            return max(a - b, 0) // 2
        return ops.maximum(symbol(a) - symbol(b), 0) // 2

    kept = [least(o, t) for o, t in zip(own, (height, width), strict=True)]
    cut = [half(o, t) for o, t in zip(own, (height, width), strict=True)]
    middle = crop_to_bounding_box(x, *cut, *kept)
    around = [half(t, o) for o, t in zip(own, (height, width), strict=True)]
    return pad_to_bounding_box(middle, *around, height, width)


@v1()
def resize_image_with_pad(
    image: Any, target_height: int, target_width: int, method: Any = 0, align_corners: bool = False
) -> Any:
    """As large as fits with its aspect ratio, in the middle of zeros."""
    fitting = resize_images(image, [target_height, target_width], method, align_corners, True)
    return resize_image_with_crop_or_pad(fitting, target_height, target_width)
