"""Images whose shape changes at random, in training: seen from elsewhere, or shaken."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.bounding_boxes.moving import around
from laminar.engine.graph import Tensor
from laminar.ops.warping import homography, random_moves, shaken
from laminar.random import SeedGenerator
from laminar.random.seeds import draw_seed
from laminar.typing import DataFormat

from .image_layer import (
    BoxOptions,
    ImageLayer,
    Range,
    as_like,
    between,
    bounds,
    clipped,
    known_size,
    per_image,
    some,
    span,
)
from .options import config_of, fraction, one_of
from .random_geometry import INTERPOLATIONS


class RandomPerspective(ImageLayer):
    """In training, images are seen from elsewhere: their corners move.

    Args:
        factor: the chance of an image to be changed: two numbers from 0 to 1 between which it is
            drawn, or one for all up to it.
        scale: how far corners move, as a part of their distance from the first, from 0 to 1.
        interpolation: "nearest" or "bilinear".
        fill_value: what lies outside.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a number outside of its bounds, or another choice.

    Examples:
        >>> layers.RandomPerspective(seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
    """

    moves = True

    def __init__(
        self,
        factor: Range = 1.0,
        scale: float = 1.0,
        interpolation: str = "bilinear",
        fill_value: float = 0.0,
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.factor = span(self, "factor", factor, 0.0, 1.0)
        self.scale = fraction(self, "scale", scale)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_value = fill_value
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        limits = -0.5 * self.scale, 0.5 * self.scale
        height, width = known_size(self, x)
        right, bottom = width - 1.0, height - 1.0
        moves = between(seed, limits, ops.shape(x)[0], 4, 2)
        corners = [[[0.0, 0.0], [right, 0.0], [0.0, bottom], [right, bottom]]]
        start = ops.convert_to_tensor(corners, "float32") + ops.zeros_like(moves)
        return {
            "apply_perspective": some(seed, self.factor, x),
            "start_points": start,
            "end_points": start + start * moves,
        }

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        start, end = (
            as_like(ops.convert_to_tensor(drawn[name]), x)
            for name in ("start_points", "end_points")
        )
        y = ops.image.perspective_transform(
            x,
            start,
            end,
            interpolation=interpolation or self.interpolation,
            fill_value=self.fill_value,
            data_format="channels_last",
        )
        return ops.where(per_image(drawn["apply_perspective"]), y, x)

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        # An image is read at the places of `start` to be seen at those of `end`.
        start, end = (
            ops.cast(ops.convert_to_tensor(drawn[name]), boxes.dtype)
            for name in ("start_points", "end_points")
        )
        matrix = [ops.expand_dims(v, 1) for v in ops.unstack(homography(end, start), axis=-1)]

        def moved(x: Any, y: Any) -> tuple[Any, Any]:
            a0, a1, a2, b0, b1, b2, c0, c1 = matrix
            below = c0 * x + c1 * y + 1.0
            return (a0 * x + a1 * y + a2) / below, (b0 * x + b1 * y + b2) / below

        chosen = ops.reshape(ops.convert_to_tensor(drawn["apply_perspective"]), (-1, 1, 1))
        return ops.where(chosen, around(moved, boxes), boxes)

    def get_config(self) -> dict[str, Any]:
        names = ("factor", "scale", "interpolation", "fill_value", "seed")
        return super().get_config() | config_of(self, *names)


class RandomElasticTransform(ImageLayer):
    """In training, the pixels of images move at random, neighbours alike.

    Args:
        factor: the chance of an image to be changed: two numbers from 0 to 1 between which it is
            drawn, or one for all up to it.
        scale: how strong, the same for a batch: two numbers from 0 to 1 between which it is drawn,
            or one for all up to it. With s drawn, moves are of a size of s/10 of the longer side,
            and alike over s/20 of the shorter one.
        interpolation: "nearest" or "bilinear".
        fill_mode: what lies outside: "reflect", "wrap", "constant", "nearest" or "mirror".
        fill_value: what lies outside, with fill_mode "constant".
        value_range: the least and greatest value of a pixel.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a number outside of its bounds, or another choice.

    Source: Simard, Steinkraus and Platt, "Best practices for convolutional neural networks applied
        to visual document analysis", 2003, section 2.

    Examples:
        >>> layers.RandomElasticTransform(seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
    """

    moves = True

    def __init__(
        self,
        factor: Range = 1.0,
        scale: Range = 1.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        value_range: Sequence[float] = (0, 255),
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        modes = ("constant", "nearest", "wrap", "mirror", "reflect")
        self.factor = span(self, "factor", factor, 0.0, 1.0)
        self.scale = span(self, "scale", scale, 0.0, 1.0)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, modes)
        self.fill_value = fill_value
        self.value_range = bounds(self, value_range)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        """Which images are chosen, how strong the change is, and what it is drawn from."""
        return {
            "apply_transform": some(seed, self.factor, x),
            "distortion_factor": between(seed, self.scale),
            "seed": draw_seed(seed),
        }

    def _shaken(self, x: Tensor, drawn: dict[str, Any], interpolation: str) -> Any:
        height, width = known_size(self, x)
        state = drawn["seed"]
        # A width of 0 would be none at all.
        strength = as_like(ops.convert_to_tensor(drawn["distortion_factor"]), x) + 1e-6
        widest = min(height, width) * 0.05 * self.scale[1]
        moves = random_moves(
            x,
            strength * (max(height, width) * 0.1),
            strength * (min(height, width) * 0.05),
            int(6 * widest) | 1,
            state if isinstance(state, Tensor) else draw_seed(state),
        )
        y = shaken(x, moves, interpolation, self.fill_mode, self.fill_value)
        return ops.where(per_image(drawn["apply_transform"]), y, x)

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        y = self._shaken(x, drawn, interpolation or self.interpolation)
        return clipped(y, self.value_range)

    def change_masks(self, masks: Tensor, drawn: dict[str, Any]) -> Any:
        return self._shaken(masks, drawn, "nearest")

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "factor",
            "scale",
            "interpolation",
            "fill_mode",
            "fill_value",
            "value_range",
            "seed",
        )
