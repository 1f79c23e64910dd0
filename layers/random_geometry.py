"""Images turned, moved, stretched and slanted at random, in training."""

from __future__ import annotations

import math
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import ImageLayer, Range, as_like, between, each_image, known_size, span
from .layer_options import LayerOptions
from .options import config_of, one_of

FILL_MODES = ("reflect", "wrap", "constant", "nearest")
INTERPOLATIONS = ("nearest", "bilinear")


class RandomFlip(ImageLayer):
    """In training, each image is flipped with probability 1/2.

    Args:
        mode: "horizontal", "vertical", or "horizontal_and_vertical" for both at once.
        seed: a whole number, which fixes all draws that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: another mode.
    """

    moves = True

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        choices = ("horizontal", "vertical", "horizontal_and_vertical")
        self.mode = one_of(self, "mode", mode, choices)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        return between(seed, (0.0, 1.0), *each_image(x)) <= 0.5

    def change(self, x: Tensor, drawn: Any, interpolation: str | None = None) -> Any:
        axes = [axis for axis, name in ((1, "vertical"), (2, "horizontal")) if name in self.mode]
        return ops.where(drawn, ops.flip(x, axes), x)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "mode", "seed")


class _Affine(ImageLayer):
    """Each image is read at places that depend on its own by an affine map. Abstract.

    Args:
        fill_mode: what lies outside: "reflect", "wrap", "constant" or "nearest".
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        fill_value: what lies outside, with fill_mode "constant".
        data_format: "channels_last" or "channels_first", by default the global one.
    """

    moves = True

    def __init__(
        self,
        fill_mode: str,
        interpolation: str,
        seed: int | None,
        fill_value: float,
        data_format: DataFormat | None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_value = fill_value
        self._begin(seed)

    def _matrix(self, drawn: Any, height: int, width: int) -> Any:
        """For each image (a0, a1, a2, b0, b1, b2): (x, y) is what was at (a . (x, y, 1), b ...)."""
        raise NotImplementedError

    def change(self, x: Tensor, drawn: Any, interpolation: str | None = None) -> Any:
        rows = self._matrix(drawn, *known_size(self, x))
        zero = ops.zeros_like(drawn[0])
        whole = [ops.broadcast_to(r, ops.shape(zero)) if isinstance(r, int) else r for r in rows]
        return ops.image.affine_transform(
            x,
            as_like(ops.stack([*whole, zero, zero], -1), x),
            interpolation=interpolation or self.interpolation,
            fill_mode=self.fill_mode,
            fill_value=self.fill_value,
            data_format="channels_last",
        )

    def get_config(self) -> dict[str, Any]:
        names = ("fill_mode", "interpolation", "seed", "fill_value")
        return super().get_config() | config_of(self, *names)


class RandomRotation(_Affine):
    """In training, each image is turned about its middle.

    Args:
        factor: by which part of a full turn, against the clock: two numbers from -1 to 1 between
            which it is drawn, or one for all from -factor to factor.
        fill_mode: what lies outside: "reflect" (mirrored behind the last pixel), "wrap",
            "constant" or "nearest" (the last pixel).
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        fill_value: what lies outside, with fill_mode "constant".
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or another choice.
    """

    def __init__(
        self,
        factor: Range,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.factor = span(self, "factor", factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        return (between(seed, self.factor, ops.shape(x)[0]),)

    def _matrix(self, drawn: Any, height: int, width: int) -> Any:
        angle = drawn[0] * (2 * math.pi)
        cos, sin = ops.cos(angle), ops.sin(angle)
        x, y = (width - 1) / 2, (height - 1) / 2
        return cos, -sin, x - x * cos + y * sin, sin, cos, y - x * sin - y * cos

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "factor")


class RandomTranslation(_Affine):
    """In training, each image is moved.

    Args:
        height_factor: by which part of the height, down: two numbers from -1 to 1 between which it
            is drawn, or one for all from -height_factor to height_factor.
        width_factor: by which part of the width, to the right; likewise.
        fill_mode: what lies outside: "reflect" (mirrored behind the last pixel), "wrap",
            "constant" or "nearest" (the last pixel).
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        fill_value: what lies outside, with fill_mode "constant".
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or another choice.
    """

    def __init__(
        self,
        height_factor: Range,
        width_factor: Range,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height_span = span(self, "height_factor", height_factor, -1.0, 1.0)
        self._width_span = span(self, "width_factor", width_factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        count = ops.shape(x)[0]
        return between(seed, self._height_span, count), between(seed, self._width_span, count)

    def _matrix(self, drawn: Any, height: int, width: int) -> Any:
        down, right = drawn
        return 1, 0, -right * width, 0, 1, -down * height

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "height_factor", "width_factor")


class RandomZoom(_Affine):
    """In training, each image is zoomed about its middle.

    Args:
        height_factor: how much more is seen of the height, as a part of it: two numbers from above
            -1 to 1 between which it is drawn, or one for all from -height_factor to height_factor.
            Below 0 the image grows.
        width_factor: likewise of the width; None to keep the ratio.
        fill_mode: what lies outside: "reflect" (mirrored behind the last pixel), "wrap",
            "constant" or "nearest" (the last pixel).
        interpolation: "nearest" or "bilinear".
        seed: a whole number, which fixes all draws that follow.
        fill_value: what lies outside, with fill_mode "constant".
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or another choice.
    """

    def __init__(
        self,
        height_factor: Range,
        width_factor: Range | None = None,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        lowest = -1 + 1e-7  # at -1 nothing would be seen
        self._height_span = span(self, "height_factor", height_factor, lowest, 1.0)
        self._width_span = None
        if width_factor is not None:
            self._width_span = span(self, "width_factor", width_factor, lowest, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        count = ops.shape(x)[0]
        tall = 1.0 + between(seed, self._height_span, count)
        if self._width_span is None:
            return tall, tall
        return tall, 1.0 + between(seed, self._width_span, count)

    def _matrix(self, drawn: Any, height: int, width: int) -> Any:
        tall, wide = drawn
        return wide, 0, (width - 1) / 2 * (1 - wide), 0, tall, (height - 1) / 2 * (1 - tall)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "height_factor", "width_factor")


class RandomShear(_Affine):
    """In training, the rows of each image slide along each other, and its columns too.

    Args:
        x_factor: by how many pixels from row to row: two numbers from -1 to 1 between which it is
            drawn, or one for all from -x_factor to x_factor; the sign is then drawn too.
        y_factor: by how many pixels from column to column; likewise.
        interpolation: "nearest" or "bilinear".
        fill_mode: what lies outside: "reflect" (mirrored behind the last pixel), "wrap",
            "constant" or "nearest" (the last pixel).
        fill_value: what lies outside, with fill_mode "constant".
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all draws that follow.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: a factor outside of its bounds, or another choice.
    """

    def __init__(
        self,
        x_factor: Range = 0.0,
        y_factor: Range = 0.0,
        interpolation: str = "bilinear",
        fill_mode: str = "reflect",
        fill_value: float = 0.0,
        data_format: DataFormat | None = None,
        seed: int | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.x_factor, self.y_factor = x_factor, y_factor
        self._x_span = span(self, "x_factor", x_factor, -1.0, 1.0)
        self._y_span = span(self, "y_factor", y_factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        count = ops.shape(x)[0]
        turned = ops.where(between(seed, (0.0, 1.0), count) > 0.5, -1.0, 1.0)
        along_y, along_x = (between(seed, s, count) for s in (self._y_span, self._x_span))
        return along_x * turned, along_y * turned

    def _matrix(self, drawn: Any, height: int, width: int) -> Any:
        return 1, drawn[0], 0, drawn[1], 1, 0

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "x_factor", "y_factor")
