"""Images whose pixels are mapped, sharpened or blurred at random, in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops, random
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.random import SeedGenerator
from laminar.typing import DataFormat, Ints

from .image_layer import (
    BoxOptions,
    FactorLayer,
    ImageOptions,
    Range,
    ToneLayer,
    as_like,
    between,
    clipped,
    each_image,
    per_image,
    rescaled,
    some,
    span,
)
from .options import at_least_0, config_of, each_axis, whole

_BYTES = (0, 255)


class Solarization(ToneLayer):
    """In training, a number is added to the pixels, and those above a threshold are inverted.

    Args:
        addition_factor: the number as a part of the range of values: two from 0 to 1 between which
            it is drawn for each image, or one for all up to it.
        threshold_factor: the threshold as a part of the range of values; likewise.
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> image = np.array([[[[10.0, 200.0, 255.0]]]])
        >>> layers.Solarization(threshold_factor=(0.5, 0.5))(image, training=True)[0, 0, 0]
        Tensor([10., 55.,  0.], shape=(3,), dtype=float32)
    """

    def __init__(
        self,
        addition_factor: Range = 0.0,
        threshold_factor: Range = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        **kwargs: Unpack[ImageOptions],
    ) -> None:
        super().__init__(value_range, seed, **kwargs)
        self.addition_factor = span(self, "addition_factor", addition_factor, 0.0, 1.0)
        self.threshold_factor = span(self, "threshold_factor", threshold_factor, 0.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        factors = self.addition_factor, self.threshold_factor
        additions, thresholds = (255 * between(seed, f, *each_image(x)) for f in factors)
        return {"additions": additions, "thresholds": thresholds}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        y = rescaled(x, self.value_range, _BYTES)
        y = clipped(y + as_like(drawn["additions"], x), _BYTES)
        y = ops.where(y < as_like(drawn["thresholds"], x), y, 255 - y)
        return rescaled(y, _BYTES, self.value_range)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "addition_factor", "threshold_factor")


class RandomPosterization(ToneLayer):
    """In training, pixels keep only their most significant bits of 8.

    Args:
        factor: how many bits: two numbers from 1 to 8, from which it is drawn for each image, the
            second excluded; or one for 1 up to it. Two equal numbers fix it.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> image = np.array([[[[255.0, 130.0, 5.0]]]])
        >>> layers.RandomPosterization(1)(image, training=True)[0, 0, 0]
        Tensor([128., 128.,   0.], shape=(3,), dtype=float32)
    """

    def __init__(
        self,
        factor: Range,
        value_range: Sequence[float] = (0, 255),
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(value_range, seed, data_format, **kwargs)
        low, high = span(self, "factor", factor, 1, 8)
        self.factor = whole(self, "factor", low), whole(self, "factor", high)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        """How many of the least significant bits are dropped."""
        low, high = self.factor
        bits = random.randint(each_image(x), low, max(high, low + 1), seed=seed)
        return {"shift_factor": 8 - bits}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        y = ops.cast(rescaled(x, self.value_range, _BYTES), "int32")
        step = ops.left_shift(1, ops.cast(per_image(drawn["shift_factor"]), "int32"))
        y = ops.cast(y // step * step, x.dtype)
        return rescaled(y, _BYTES, self.value_range)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "factor")


class RandomSharpness(FactorLayer):
    """In training, images are mixed with themselves smoothed: blurred, or sharpened.

    With f drawn, y = smooth + 2 f (x - smooth): 0 gives the smoothed image, 0.5 leaves x, 1 is
    sharpest. A pixel is smoothed by the mean of the 9 around, where it counts five times.

    Args:
        factor: f: two numbers from 0 to 1 between which it is drawn for each image, or one for all
            up to it.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> layers.RandomSharpness(0.5, seed=1)(np.full((1, 3, 3, 1), 7.0), training=True)[0, 1, 1]
        Tensor([7.], shape=(1,), dtype=float32)
    """

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        # The sum of the 9 pixels around is a sum along rows of a sum along columns.
        padded = ops.pad(x, [(0, 0), (1, 1), (1, 1), (0, 0)])
        rows = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
        around = rows[:, :, :-2] + rows[:, :, 1:-1] + rows[:, :, 2:]
        smooth = (around + 4 * x) / 13
        return clipped(smooth + 2 * as_like(drawn["factor"], x) * (x - smooth), self.value_range)


class RandomGaussianBlur(FactorLayer):
    """In training, some images are blurred.

    Args:
        factor: the chance of an image: two numbers from 0 to 1 between which it is drawn, or one
            for all up to it.
        kernel_size: pixels of the window, odd: one number, or height and width.
        sigma: width of the bell, the same for a batch: two numbers from 0 to 1 between which it is
            drawn for each axis, or one for all up to it.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, an even window, or no range.

    Examples:
        >>> layers.RandomGaussianBlur(seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
    """

    def __init__(
        self,
        factor: Range = 1.0,
        kernel_size: Ints = 3,
        sigma: Range = 1.0,
        value_range: Sequence[float] = (0, 255),
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(factor, value_range, data_format, seed, **kwargs)
        self.kernel_size = each_axis(self, "kernel_size", kernel_size, 2)
        if not all(size % 2 for size in self.kernel_size):
            raise InvalidArgumentError(
                f"{who(self)}: kernel_size must be odd, got {kernel_size!r}",
                remedy="a window has a pixel in its middle",
            )
        self.sigma = span(self, "sigma", sigma, 0.0, 1.0)
        at_least_0(self, "sigma", self.sigma[0])

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {
            "should_apply_blur": some(seed, self.factor, x),
            "blur_factor": between(seed, self.sigma, 2) + 1e-6,
        }

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        y = ops.image.gaussian_blur(
            x, self.kernel_size, as_like(drawn["blur_factor"], x), data_format="channels_last"
        )
        y = ops.where(per_image(drawn["should_apply_blur"]), y, x)
        return clipped(y, self.value_range)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "kernel_size", "sigma")
