"""`tf.image`: what differs from laminar's own in arguments or ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array.padding import pad
from laminar.engine.ops.array.slicing import slice_at
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn.image import resize
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .maths import reduce_mean
from .values import as_kind, static, tensor

_METHODS = {0: "bilinear", 1: "nearest", 2: "bicubic"}


class ResizeMethod:
    """How pixels between pixels are made."""

    BILINEAR, NEAREST_NEIGHBOR, BICUBIC = 0, 1, 2


def _resized(images: Any, size: Any, interpolation: str) -> Any:
    x = tensor(images)
    if interpolation != "nearest":
        x = cast(x, "float32")
    batch = x if len(x.shape) == 4 else ops.expand_dims(x, 0)
    found: Tensor = resize(batch, static(size), interpolation=interpolation)
    return found if len(x.shape) == 4 else ops.squeeze(found, 0)


@v1()
def resize_images(images: Any, size: Any, method: Any = 0, align_corners: bool = False) -> Any:
    """Images of another height and width, sampled at the centers of pixels."""
    return _resized(images, size, _METHODS.get(method, method))


@v1()
def resize_bilinear(images: Any, size: Any, align_corners: bool = False) -> Any:
    """Images of another height and width."""
    return _resized(images, size, "bilinear")


@v1()
def resize_nearest_neighbor(images: Any, size: Any, align_corners: bool = False) -> Any:
    """Images of another height and width, of the same pixels."""
    return _resized(images, size, "nearest")


@v1()
def grayscale_to_rgb(images: Any) -> Any:
    """The one channel three times."""
    x = tensor(images)
    found: Tensor = ops.concatenate([x, x, x], -1)
    return found


def _flip(axis: int) -> Callable[..., Any]:
    @v1()
    def flip(image: Any) -> Any:
        found: Tensor = ops.flip(tensor(image), axis)
        return found

    return flip


flip_left_right, flip_up_down = _flip(-2), _flip(-3)


def _random_flip(axis: int) -> Callable[..., Any]:
    @v1()
    def random_flip(image: Any, seed: Any = None) -> Any:
        x = tensor(image)
        drawn = draws.random_uniform(draw_state(seed), []) < 0.5
        found: Tensor = ops.where(drawn, ops.flip(x, axis), x)
        return found

    return random_flip


random_flip_left_right, random_flip_up_down = _random_flip(-2), _random_flip(-3)


@v1()
def transpose_image(image: Any) -> Any:
    """Rows and columns exchanged."""
    found: Tensor = ops.swapaxes(tensor(image), -2, -3)
    return found


@v1()
def per_image_standardization(image: Any) -> Any:
    """(x - mean) / max(deviation, 1 / sqrt(number of elements)), of each image."""
    x = cast(tensor(image), "float32")
    over = [-3, -2, -1]
    mean = reduce_mean(x, over, keepdims=True)
    square = reduce_mean(x * x, over, keepdims=True) - mean * mean
    sizes = lookup("Cast")(lookup("Shape")(x, dtype="int32")[-3:], dtype="float32")
    least = 1 / ops.sqrt(ops.prod(sizes))
    found: Tensor = (x - mean) / ops.maximum(ops.sqrt(ops.maximum(square, 0.0)), least)
    return found


@v1()
def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False) -> Any:
    """Pixels of another type: whole numbers up to their largest are floats up to 1."""
    x, kind = tensor(image), as_kind(dtype)
    if x.dtype == kind:
        return x
    if x.dtype.is_integer and kind.is_floating:
        return cast(x, kind) / _largest(x.dtype)
    if x.dtype.is_floating and kind.is_integer:
        scaled = x * (_largest(kind) + 0.5)
        return cast(ops.clip(scaled, 0, _largest(kind)) if saturate else scaled, kind)
    return cast(x, kind)


def _largest(dtype: Any) -> float:
    bits = dtype.size * 8 - (0 if dtype.startswith("u") else 1)
    return float(2**bits - 1)


def _in_floats(image: Any, change: Callable[[Tensor], Tensor]) -> Any:
    x = tensor(image)
    changed = change(convert_image_dtype(x, "float32"))
    found: Tensor = convert_image_dtype(changed, x.dtype, saturate=True)
    return found


@v1()
def adjust_brightness(image: Any, delta: Any) -> Any:
    """`delta` added, in floats up to 1."""
    return _in_floats(image, lambda x: x + delta)


@v1()
def adjust_contrast(images: Any, contrast_factor: Any) -> Any:
    """The distance from the mean of each channel times a factor."""

    def change(x: Tensor) -> Any:
        mean = reduce_mean(x, [-3, -2], keepdims=True)
        return (x - mean) * contrast_factor + mean

    return _in_floats(images, change)


@v1()
def random_brightness(image: Any, max_delta: float, seed: Any = None) -> Any:
    """A number from [-max_delta, max_delta) added."""
    drawn = draws.random_uniform(draw_state(seed), [], -max_delta, max_delta)
    found: Tensor = adjust_brightness(image, drawn)
    return found


@v1()
def random_contrast(image: Any, lower: float, upper: float, seed: Any = None) -> Any:
    """The contrast times a number from [lower, upper)."""
    drawn = draws.random_uniform(draw_state(seed), [], lower, upper)
    found: Tensor = adjust_contrast(image, drawn)
    return found


@v1()
def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Any:
    """The block of that size at that place."""
    x = tensor(image)
    lead = [0] * (len(x.shape) - 3)
    return slice_at(
        x,
        [*lead, offset_height, offset_width, 0],
        [*(-1 for _ in lead), target_height, target_width, -1],
    )


@v1()
def pad_to_bounding_box(
    image: Any, offset_height: int, offset_width: int, target_height: int, target_width: int
) -> Any:
    """Zeros around an image, which begins at that place."""
    x = tensor(image)
    height, width = x.shape[-3], x.shape[-2]
    around = [
        [offset_height, target_height - offset_height - int(height or 0)],
        [offset_width, target_width - offset_width - int(width or 0)],
    ]
    return pad(x, [[0, 0]] * (len(x.shape) - 3) + around + [[0, 0]])


@v1()
def central_crop(image: Any, central_fraction: float) -> Any:
    """The middle of an image, that part of each side."""
    x = tensor(image)
    height, width = int(x.shape[-3] or 0), int(x.shape[-2] or 0)
    top = int((height - height * central_fraction) / 2)
    left = int((width - width * central_fraction) / 2)
    found: Tensor = crop_to_bounding_box(x, top, left, height - 2 * top, width - 2 * left)
    return found


@v1()
def resize_image_with_crop_or_pad(image: Any, target_height: int, target_width: int) -> Any:
    """The middle of an image, with zeros around where it is too small."""
    x = tensor(image)
    for axis, target in ((-3, target_height), (-2, target_width)):
        size = int(x.shape[axis] or 0)
        place = len(x.shape) + axis
        if size > target:
            begin = [0] * len(x.shape)
            begin[place] = (size - target) // 2
            x = slice_at(x, begin, [target if a == place else -1 for a in range(len(x.shape))])
        elif size < target:
            before = (target - size) // 2
            around = [[0, 0]] * len(x.shape)
            around[place] = [before, target - size - before]
            x = pad(x, around)
    return x
