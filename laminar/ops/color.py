"""Colours: grey, and hue, saturation and value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import join
from laminar.engine.ops.core.basic import ones_like, zeros_like
from laminar.engine.ops.math.arithmetic import absolute, maximum, minimum, mod
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import equal, greater, less, where
from laminar.engine.ops.math.elementary import divide_no_nan
from laminar.engine.ops.nn import image

from ..typing import DataFormat, TensorLike
from .arguments import floating, tensor
from .layout import on_batch
from .recording import public

__all__ = ["hsv_to_rgb", "rgb_to_grayscale", "rgb_to_hsv"]


@public
def rgb_to_grayscale(images: TensorLike, data_format: DataFormat | None = None) -> Tensor:
    """The brightness of each pixel: 0.2989 red + 0.5870 green + 0.1140 blue.

    Args:
        images: with 3 channels; images with one channel stay as they are.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Images with one channel, in the type of `images`.

    Examples:
        >>> ops.image.rgb_to_grayscale(np.array([[[1.0, 0.0, 0.0]]], "float32"))
        Tensor([[[0.2989]]], shape=(1, 1, 1), dtype=float32)
    """

    def compute(x: Tensor) -> Tensor:
        if x.shape[-1] == 1:
            return x
        return cast(image.rgb_to_grayscale(floating(x)), x.dtype)

    return on_batch("rgb_to_grayscale", images, data_format, compute)


def _planes(
    who: str,
    images: TensorLike,
    data_format: DataFormat | None,
    compute: Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor, Tensor]],
) -> Tensor:
    """`compute` of the three channels of floating images, put together again."""
    x = tensor(images)
    if not x.dtype.is_floating:
        raise DTypeError(
            f"{who}: expected floating images, got {x.spec}", remedy="cast them, and divide by 255"
        )

    def on_channels(x: Tensor) -> Tensor:
        if x.shape[-1] not in (3, None):
            raise ShapeError(f"{who}: expected 3 channels, got {x.spec}")
        first, second, third = join.unstack(x, 3, -1)
        return join.stack(compute(first, second, third), -1)

    return on_batch(who, x, data_format, on_channels)


@public
def rgb_to_hsv(images: TensorLike, data_format: DataFormat | None = None) -> Tensor:
    """Hue, saturation and value of each pixel, all from 0 to 1.

    With v the greatest and m the least of red, green and blue: value v, saturation (v - m) / v, hue
    a sixth of (g - b) / (v - m), 2 + (b - r) / (v - m) or 4 + (r - g) / (v - m), as red, green or
    blue is greatest, modulo 1.

    Args:
        images: floating, with 3 channels from 0 to 1.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Shape and type of `images`.

    Raises:
        DTypeError: `images` are not floating.
        ShapeError: neither an image nor a batch, or not 3 channels.

    Source: Smith, "Color gamut transform pairs", SIGGRAPH 1978.

    Examples:
        >>> ops.image.rgb_to_hsv(np.array([[[0.5, 0.0, 0.0]]], "float32"))
        Tensor([[[0. , 1. , 0.5]]], shape=(1, 1, 3), dtype=float32)
    """

    def compute(r: Tensor, g: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        value = maximum(maximum(r, g), b)
        spread: Any = value - minimum(minimum(r, g), b)
        sixth = tensor(1 / 6, value.dtype)
        of_red = divide_no_nan(g - b, spread) * sixth
        of_green = divide_no_nan(b - r, spread) * sixth + 2 * sixth
        of_blue = divide_no_nan(r - g, spread) * sixth + 4 * sixth
        hue = where(equal(value, r), of_red, where(equal(value, g), of_green, of_blue))
        hue = where(greater(spread, zeros_like(spread)), hue, zeros_like(hue))
        hue = where(less(hue, zeros_like(hue)), hue + 1, hue)
        return hue, divide_no_nan(spread, value), value

    return _planes("rgb_to_hsv", images, data_format, compute)


@public
def hsv_to_rgb(images: TensorLike, data_format: DataFormat | None = None) -> Tensor:
    """Red, green and blue of each pixel, given its hue, saturation and value.

    Args:
        images: floating, with 3 channels from 0 to 1.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Shape and type of `images`.

    Raises:
        DTypeError: `images` are not floating.
        ShapeError: neither an image nor a batch, or not 3 channels.

    Source: Smith, "Color gamut transform pairs", SIGGRAPH 1978.

    Examples:
        >>> ops.image.hsv_to_rgb(np.array([[[0.0, 1.0, 0.5]]], "float32"))
        Tensor([[[0.5, 0. , 0. ]]], shape=(1, 1, 3), dtype=float32)
    """

    def compute(h: Tensor, s: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        one = ones_like(h)
        turn: Any = mod(h, one) * 6

        def channel(strength: Any) -> Tensor:
            # Each colour is full over a third of the circle, and rises and falls over sixths.
            full = minimum(maximum(strength, zeros_like(h)), one)
            found: Tensor = v * (one - s + s * full)
            return found

        return (
            channel(absolute(turn - 3) - 1),
            channel(2 - absolute(turn - 2)),
            channel(2 - absolute(turn - 4)),
        )

    return _planes("hsv_to_rgb", images, data_format, compute)
