"""`tf.image`: what differs from laminar's own in arguments or ranges."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .maths import reduce_mean
from .orders import saturate_cast
from .values import as_kind, tensor


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
    given = tensor(image)
    x = cast(given, "float32")
    over = [-3, -2, -1]
    mean = reduce_mean(x, over, keepdims=True)
    square = reduce_mean(x * x, over, keepdims=True) - mean * mean
    sizes = lookup("Cast")(lookup("Shape")(x, dtype="int32")[-3:], dtype="float32")
    least = 1 / ops.sqrt(ops.prod(sizes))
    found = (x - mean) / ops.maximum(ops.sqrt(ops.maximum(square, 0.0)), least)
    return convert_image_dtype(found, given.dtype, saturate=True)


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
    change = saturate_cast if saturate else cast
    if not kind.is_integer:
        return change(x, kind)
    more = (_largest(kind) + 1) / (_largest(x.dtype) + 1)
    if more < 1:
        return change(lookup("FloorDiv")(x, tensor(int(1 / more), x.dtype)), kind)
    return change(x, kind) * tensor(int(more), kind)


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
