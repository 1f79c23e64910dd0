"""`tf.image`: colours, turns and measures of images."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import engine, ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.checks import assert_op
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.linalg.products import tensordot
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.random import draws
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .flow import switch_case
from .maths import reduce_mean, reduce_sum
from .pictures import convert_image_dtype
from .values import static, symbol, tensor

# Rows: red, green, blue. Source: the NTSC definition of YIQ, and BT.601 of YUV.
_TO_YIQ = (
    (0.299, 0.59590059, 0.2115),
    (0.587, -0.27455667, -0.52273617),
    (0.114, -0.32134392, 0.31119955),
)
_TO_YUV = (
    (0.299, -0.14714119, 0.61497538),
    (0.587, -0.28886916, -0.51496512),
    (0.114, 0.43601035, -0.10001026),
)


def _mixed(matrix: Any, doc: str) -> Callable[..., Any]:
    @v1()
    def mix(images: Any) -> Any:
        x = tensor(images)
        return tensordot(x, tensor(np.asarray(matrix, x.dtype.numpy)), 1)

    mix.__doc__ = doc
    return mix


rgb_to_yiq = _mixed(_TO_YIQ, "Brightness and two of colour, of red, green and blue.")
rgb_to_yuv = _mixed(_TO_YUV, "Brightness and two of colour, of red, green and blue.")
yiq_to_rgb = _mixed(np.linalg.inv(_TO_YIQ), "The inverse of `rgb_to_yiq`.")
yuv_to_rgb = _mixed(np.linalg.inv(_TO_YUV), "The inverse of `rgb_to_yuv`.")


def _of_floats(image: Any, change: Callable[[Any], Any]) -> Any:
    """What becomes of an image of floats up to 1, in the type of the image."""
    x = symbol(image)
    floats = x if x.dtype.is_floating else convert_image_dtype(x, "float32")
    return convert_image_dtype(change(floats), x.dtype, saturate=True)


@v1()
def adjust_hue(image: Any, delta: Any) -> Any:
    """The hue turned by `delta`, a part of the whole circle from -1 to 1."""

    def change(x: Any) -> Any:
        hue, saturation, value = ops.split(ops.image.rgb_to_hsv(x, "channels_last"), 3, -1)
        turned = lookup("FloorMod")(hue + (tensor(delta, x.dtype) + 1.0), tensor(1.0, x.dtype))
        whole = ops.concatenate([turned, saturation, value], -1)
        return ops.image.hsv_to_rgb(whole, "channels_last")

    return _of_floats(image, change)


@v1()
def adjust_saturation(image: Any, saturation_factor: Any) -> Any:
    """The saturation times a factor, and no more than 1."""

    def change(x: Any) -> Any:
        hue, saturation, value = ops.split(ops.image.rgb_to_hsv(x, "channels_last"), 3, -1)
        scaled = ops.clip(saturation * tensor(saturation_factor, x.dtype), 0.0, 1.0)
        whole = ops.concatenate([hue, scaled, value], -1)
        return ops.image.hsv_to_rgb(whole, "channels_last")

    return _of_floats(image, change)


@v1()
def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Any:
    """gain * x**gamma, in floats up to 1."""
    if isinstance(gamma, int | float) and gamma < 0:
        raise ValueError(f"adjust_gamma: gamma is 0 or more, got {gamma!r}")
    holds = lookup("GreaterEqual")(power := symbol(gamma, "float32"), tensor(0, power.dtype))
    held = assert_op(holds, power, message="adjust_gamma: gamma is 0 or more", summarize=1)
    with engine.control_dependencies([held] if hasattr(held, "op") else []):
        exponent = lookup("Identity")(power)
    return _of_floats(
        image, lambda x: tensor(gain, x.dtype) * lookup("Pow")(x, cast(exponent, x.dtype))
    )


@v1()
def random_hue(image: Any, max_delta: float, seed: Any = None) -> Any:
    """The hue turned by a number from [-max_delta, max_delta)."""
    if not 0 <= max_delta <= 0.5:
        raise ValueError(f"random_hue: max_delta is from 0 to 0.5, got {max_delta}")
    return adjust_hue(image, draws.random_uniform(draw_state(seed), [], -max_delta, max_delta))


@v1()
def random_saturation(image: Any, lower: float, upper: float, seed: Any = None) -> Any:
    """The saturation times a number from [lower, upper)."""
    if not 0 <= lower < upper:
        raise ValueError(f"random_saturation: 0 <= lower < upper, got {lower} and {upper}")
    return adjust_saturation(image, draws.random_uniform(draw_state(seed), [], lower, upper))


def _turned(x: Any, k: int) -> Any:
    rank = len(x.shape)
    if k == 2:
        return ops.flip(x, (rank - 3, rank - 2))
    y = ops.swapaxes(x, -2, -3)
    return ops.flip(y, -3 if k == 1 else -2) if k else x


@v1()
def rot90(image: Any, k: Any = 1) -> Any:
    """The image turned against the clock, k times by 90 degrees."""
    x, times = symbol(image), static(k)
    if x.shape.rank not in (3, 4):
        raise ValueError(f"rot90: images have 3 or 4 axes, got {x.spec}")
    if not isinstance(times, Tensor):
        return _turned(x, int(times) % 4)
    number = lookup("FloorMod")(cast(times, "int32"), tensor(4, "int32"))
    return switch_case(number, [lambda n=n: _turned(x, n) for n in range(4)])


@v1()
def total_variation(images: Any) -> Any:
    """How far neighbours differ in sum, of each image: of rows and of columns."""
    x = tensor(images)
    if x.shape.rank not in (3, 4):
        raise ValueError(f"total_variation: images have 3 or 4 axes, got {x.spec}")
    down = ops.abs(x[..., 1:, :, :] - x[..., :-1, :, :])
    right = ops.abs(x[..., :, 1:, :] - x[..., :, :-1, :])
    axes = [-3, -2, -1]
    return reduce_sum(down, axes) + reduce_sum(right, axes)


@v1()
def image_gradients(image: Any) -> tuple[Any, Any]:
    """(down, right): each pixel's difference to the next one, 0 at the end: (batch, h, w, c)."""
    x = tensor(image)
    if x.shape.rank != 4:
        raise ValueError(f"image_gradients: images have 4 axes, got {x.spec}")
    down = ops.pad(x[:, 1:] - x[:, :-1], [(0, 0), (0, 1), (0, 0), (0, 0)])
    right = ops.pad(x[:, :, 1:] - x[:, :, :-1], [(0, 0), (0, 0), (0, 1), (0, 0)])
    return down, right


@v1()
def psnr(a: Any, b: Any, max_val: Any) -> Any:
    """10 log10(max_val**2 / mean of (a - b)**2), of each image, in decibels."""
    x, y = (convert_image_dtype(v, "float32") for v in (a, b))
    scale = tensor(max_val)
    if symbol(a).dtype.is_integer:
        scale = convert_image_dtype(cast(scale, symbol(a).dtype), "float32")
    square = reduce_mean((x - y) * (x - y), [-3, -2, -1])
    ten = math.log(10.0)
    return ops.log(cast(scale, "float32")) * (20 / ten) - ops.log(square) * (10 / ten)
