"""Images whose colours change at random, in training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import (
    BoxOptions,
    FactorLayer,
    ImageLayer,
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
)
from .options import config_of, fraction


class RandomBrightness(FactorLayer):
    """In training, a number is added to all pixels of an image, another one for each image.

    Args:
        factor: the number as a part of the range of values: two from -1 to 1 between which it is
            drawn, or one for all from -factor to factor.
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> y = layers.RandomBrightness((0.1, 0.1))(np.full((1, 1, 1, 3), 100.0), training=True)
        >>> y[0, 0, 0]  # a tenth of 255 is added
        Tensor([125.5, 125.5, 125.5], shape=(3,), dtype=float32)
    """

    least = -1.0

    def __init__(
        self,
        factor: Range,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        **kwargs: Unpack[ImageOptions],
    ) -> None:
        super().__init__(factor, value_range, seed=seed, **kwargs)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        low, high = self.value_range
        return {"rgb_delta": between(seed, self.factor, *each_image(x)) * (high - low)}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        shift = as_like(drawn["rgb_delta"], x)
        return clipped(x + shift, self.value_range)


class RandomContrast(FactorLayer):
    """In training, pixels move away from the mean of their channel in the image, or towards it.

    Args:
        factor: distances are multiplied by a number from 1 - factor to 1 + factor; two numbers
            from 0 to 1 stand for 1 - first to 1 + second.
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> layer = layers.RandomContrast(0.5, seed=1)
        >>> layer(np.full((1, 2, 2, 1), 7.0), training=True)[0, 0, 0]  # the mean stays
        Tensor([7.], shape=(1,), dtype=float32)
    """

    def __init__(
        self,
        factor: Range,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        **kwargs: Unpack[ImageOptions],
    ) -> None:
        super().__init__(factor, value_range, seed=seed, **kwargs)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        limits = 1 - self.factor[0], 1 + self.factor[1]
        return {"contrast_factor": between(seed, limits, *each_image(x))}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        mean = ops.mean(x, axis=(1, 2), keepdims=True)
        return clipped((x - mean) * as_like(drawn["contrast_factor"], x) + mean, self.value_range)


class RandomHue(FactorLayer):
    """In training, the hues of an image are turned round the circle of colours.

    Args:
        factor: by which part of half the circle, in either direction: two numbers from 0 to 1
            between which it is drawn, or one for all up to it.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> grey = np.full((1, 1, 1, 3), 100.0)
        >>> layers.RandomHue(0.5, seed=1)(grey, training=True)[0, 0, 0]  # grey has no hue
        Tensor([100., 100., 100.], shape=(3,), dtype=float32)
    """

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        sign = ops.where(between(seed, (0.0, 1.0), *each_image(x)) > 0.5, -0.5, 0.5)
        return {"factor": between(seed, self.factor, *each_image(x)) * sign}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        colors = rescaled(x, self.value_range, (0, 1))
        found = ops.image.rgb_to_hsv(colors, data_format="channels_last")
        hue = ops.mod(found[..., :1] + as_like(drawn["factor"], x), 1.0)
        y = ops.concatenate([hue, found[..., 1:]], -1)
        y = ops.image.hsv_to_rgb(y, data_format="channels_last")
        return rescaled(clipped(y, (0, 1)), (0, 1), self.value_range)


class RandomSaturation(FactorLayer):
    """In training, the colours of an image become stronger or weaker.

    Args:
        factor: with f drawn, saturations are multiplied by f / (1 - f): 0 gives grey, 0.5 leaves
            them, 1 makes them as strong as can be. Two numbers from -1 to 1 between which it is
            drawn, or one for all from -factor to factor; what is below 0 gives grey.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> grey = np.full((1, 1, 1, 3), 100.0)
        >>> layers.RandomSaturation(0.5, seed=1)(grey, training=True)[0, 0, 0]  # grey stays grey
        Tensor([100., 100., 100.], shape=(3,), dtype=float32)
    """

    least = -1.0

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        factor = between(seed, self.factor, *each_image(x))
        return {"factor": factor / (1 - factor + 1e-7)}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        colors = rescaled(x, self.value_range, (0, 1))
        found = ops.image.rgb_to_hsv(colors, data_format="channels_last")
        saturation = clipped(found[..., 1:2] * as_like(drawn["factor"], x), (0, 1))
        y = ops.concatenate([found[..., :1], saturation, found[..., 2:]], -1)
        y = ops.image.hsv_to_rgb(y, data_format="channels_last")
        return rescaled(y, (0, 1), self.value_range)


class RandomColorDegeneration(FactorLayer):
    """In training, images are mixed with themselves in grey.

    Args:
        factor: the part of the grey image: two numbers from -1 to 1 between which it is drawn, or
            one for all from -factor to factor.
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> image = np.array([[[[255.0, 0.0, 0.0]]]])
        >>> layers.RandomColorDegeneration((1.0, 1.0))(image, training=True)[0, 0, 0]  # all grey
        Tensor([76.2195, 76.2195, 76.2195], shape=(3,), dtype=float32)
    """

    least = -1.0

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        grey = ops.image.rgb_to_grayscale(x, data_format="channels_last")
        return clipped(x + as_like(drawn["factor"], x) * (grey - x), self.value_range)


class RandomGrayscale(ImageLayer):
    """In training, some images become grey; they keep their three channels.

    Args:
        factor: the chance of an image, from 0 to 1.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, 3) -> y: the same, of the same dtype

    Raises:
        InvalidArgumentError: a factor outside of its bounds.

    Examples:
        >>> image = np.array([[[[255.0, 0.0, 0.0]]]])
        >>> layers.RandomGrayscale(factor=1.0)(image, training=True)[0, 0, 0]
        Tensor([76.2195, 76.2195, 76.2195], shape=(3,), dtype=float32)
    """

    keeps_dtype = True

    def __init__(
        self,
        factor: float = 0.5,
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.factor = fraction(self, "factor", factor)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {"should_apply": between(seed, (0.0, 1.0), *each_image(x)) < self.factor}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        grey = ops.image.rgb_to_grayscale(x, data_format="channels_last")
        return ops.where(per_image(drawn["should_apply"]), grey, x)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "factor", "seed")


class RandomInvert(FactorLayer):
    """In training, some images are inverted: y = greatest value - x.

    Args:
        factor: the chance of an image: two numbers from 0 to 1 between which it is drawn, or one
            for all up to it.
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> image = np.array([[[[255.0, 0.0, 5.0]]]])
        >>> layers.RandomInvert(factor=1.0)(image, training=True)[0, 0, 0]
        Tensor([  0., 255., 250.], shape=(3,), dtype=float32)
    """

    def __init__(
        self,
        factor: Range = 1.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(factor, value_range, data_format, seed, **kwargs)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {"apply_inversion": some(seed, self.factor, x)}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        return ops.where(per_image(drawn["apply_inversion"]), self.value_range[1] - x, x)


class RandomColorJitter(ToneLayer):
    """In training, brightness, contrast, saturation and hue change at random, in this order.

    Args:
        value_range: the least and greatest value of a pixel.
        brightness_factor: see `RandomBrightness`; None leaves the brightness.
        contrast_factor: see `RandomContrast`; likewise.
        saturation_factor: see `RandomSaturation`; likewise.
        hue_factor: see `RandomHue`; likewise.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, 3) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or no range.

    Examples:
        >>> layer = layers.RandomColorJitter(brightness_factor=0.2, saturation_factor=0.3, seed=1)
        >>> layer(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        brightness_factor: Range | None = None,
        contrast_factor: Range | None = None,
        saturation_factor: Range | None = None,
        hue_factor: Range | None = None,
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(value_range, seed, data_format, **kwargs)
        self.brightness_factor = brightness_factor
        self.contrast_factor = contrast_factor
        self.saturation_factor = saturation_factor
        self.hue_factor = hue_factor
        given = (
            (RandomBrightness, brightness_factor),
            (RandomContrast, contrast_factor),
            (RandomSaturation, saturation_factor),
            (RandomHue, hue_factor),
        )
        self._steps = [
            cls(factor, value_range=value_range, seed=seed, data_format=data_format)
            for cls, factor in given
            if factor is not None
        ]

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {step.name: step.draw(x, seed) for step in self._steps}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        for step in self._steps:
            x = step.change(x, drawn[step.name])
        return x

    def get_config(self) -> dict[str, Any]:
        names = ("brightness_factor", "contrast_factor", "saturation_factor", "hue_factor")
        return super().get_config() | config_of(self, *names)
