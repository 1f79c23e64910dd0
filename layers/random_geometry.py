"""Images turned, moved, stretched and slanted at random, in training."""

from __future__ import annotations

import math
from typing import Any, Unpack

from laminar import ops
from laminar.bounding_boxes.moving import around, sides
from laminar.engine.graph import Tensor
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import (
    BoxOptions,
    ImageLayer,
    Range,
    as_like,
    between,
    each_image,
    known_size,
    per_image,
    span,
)
from .options import config_of, one_of

FILL_MODES = ("reflect", "wrap", "constant", "nearest")
INTERPOLATIONS = ("nearest", "bilinear")


def columns(values: Any) -> Any:
    """The two columns of what is drawn for each image."""
    x = ops.convert_to_tensor(values)
    return x[:, 0], x[:, 1]


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

    Examples:
        >>> image = np.arange(4.0).reshape(1, 2, 2, 1)
        >>> y = layers.RandomFlip("horizontal", seed=3)(image, training=True)
        >>> ops.sort(ops.ravel(y))  # the pixels are the same
        Tensor([0., 1., 2., 3.], shape=(4,), dtype=float32)
    """

    moves = True

    def __init__(
        self,
        mode: str = "horizontal_and_vertical",
        seed: int | None = None,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        choices = ("horizontal", "vertical", "horizontal_and_vertical")
        self.mode = one_of(self, "mode", mode, choices)
        self._begin(seed)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {"flips": between(seed, (0.0, 1.0), *each_image(x)) <= 0.5}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        axes = [axis for axis, name in ((1, "vertical"), (2, "horizontal")) if name in self.mode]
        return ops.where(per_image(drawn["flips"]), ops.flip(x, axes), x)

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        height, width = size
        left, top, right, bottom = sides(boxes)
        if "horizontal" in self.mode:
            left, right = width - right, width - left
        if "vertical" in self.mode:
            top, bottom = height - bottom, height - top
        flips = ops.reshape(ops.convert_to_tensor(drawn["flips"]), (-1, 1, 1))
        return ops.where(flips, ops.stack([left, top, right, bottom], -1), boxes)

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
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, FILL_MODES)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_value = fill_value
        self._begin(seed)

    def _matrix(self, drawn: dict[str, Any], height: int, width: int) -> Any:
        """For each image (a0, a1, a2, b0, b1, b2): (x, y) is what was at (a . (x, y, 1), b ...)."""
        raise NotImplementedError

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        rows = self._matrix(drawn, *known_size(self, x))
        zero = ops.zeros_like(next(r for r in rows if not isinstance(r, int)))
        whole = [ops.broadcast_to(r, ops.shape(zero)) if isinstance(r, int) else r for r in rows]
        return ops.image.affine_transform(
            x,
            as_like(ops.stack([*whole, zero, zero], -1), x),
            interpolation=interpolation or self.interpolation,
            fill_mode=self.fill_mode,
            fill_value=self.fill_value,
            data_format="channels_last",
        )

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        a0, a1, a2, b0, b1, b2 = (
            r if isinstance(r, int) else ops.reshape(r, (-1, 1)) for r in self._matrix(drawn, *size)
        )
        # The map of `_matrix` leads from new places to old ones; boxes go the other way.
        area = a0 * b1 - a1 * b0
        area = ops.where(ops.abs(area) < 1e-6, 1e-6, area)

        def moved(x: Any, y: Any) -> tuple[Any, Any]:
            x, y = x - a2, y - b2
            return (b1 * x - a1 * y) / area, (a0 * y - b0 * x) / area

        return around(moved, boxes)

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

    Examples:
        >>> image = np.arange(4.0).reshape(1, 2, 2, 1)
        >>> quarter = layers.RandomRotation((0.25, 0.25))
        >>> quarter(image, training=True)[0, :, :, 0]
        Tensor([[1., 3.],
                [0., 2.]], shape=(2, 2), dtype=float32)
    """

    def __init__(
        self,
        factor: Range,
        fill_mode: str = "reflect",
        interpolation: str = "bilinear",
        seed: int | None = None,
        fill_value: float = 0.0,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.factor = span(self, "factor", factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        return {"angle": 360.0 * between(seed, self.factor, ops.shape(x)[0])}

    def _matrix(self, drawn: dict[str, Any], height: int, width: int) -> Any:
        angle = ops.convert_to_tensor(drawn["angle"]) * (math.pi / 180)
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

    Examples:
        >>> image = np.arange(4.0).reshape(1, 2, 2, 1)
        >>> layer = layers.RandomTranslation((0.5, 0.5), 0.0, fill_mode="constant")
        >>> layer(image, training=True)[0, :, :, 0]  # down by half the height
        Tensor([[0., 0.],
                [0., 1.]], shape=(2, 2), dtype=float32)
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
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        self._height_span = span(self, "height_factor", height_factor, -1.0, 1.0)
        self._width_span = span(self, "width_factor", width_factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        count = ops.shape(x)[0]
        height, width = known_size(self, x)
        down = between(seed, self._height_span, count) * height
        right = between(seed, self._width_span, count) * width
        return {"translations": ops.stack([right, down], -1)}

    def _matrix(self, drawn: dict[str, Any], height: int, width: int) -> Any:
        right, down = columns(drawn["translations"])
        return 1, 0, -right, 0, 1, -down

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

    Examples:
        >>> layers.RandomZoom(0.2, seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
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
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.height_factor, self.width_factor = height_factor, width_factor
        lowest = -1 + 1e-7  # at -1 nothing would be seen
        self._height_span = span(self, "height_factor", height_factor, lowest, 1.0)
        self._width_span = None
        if width_factor is not None:
            self._width_span = span(self, "width_factor", width_factor, lowest, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        count = ops.shape(x)[0]
        tall = 1.0 + between(seed, self._height_span, count)
        if self._width_span is None:
            return {"height_zoom": tall, "width_zoom": tall}
        wide = 1.0 + between(seed, self._width_span, count)
        return {"height_zoom": tall, "width_zoom": wide}

    def _matrix(self, drawn: dict[str, Any], height: int, width: int) -> Any:
        tall, wide = (
            ops.reshape(ops.convert_to_tensor(drawn[name]), (-1,))
            for name in ("height_zoom", "width_zoom")
        )
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

    Examples:
        >>> layers.RandomShear(x_factor=0.2, seed=1)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 8, 8, 3)
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
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(fill_mode, interpolation, seed, fill_value, data_format, **kwargs)
        self.x_factor, self.y_factor = x_factor, y_factor
        self._x_span = span(self, "x_factor", x_factor, -1.0, 1.0)
        self._y_span = span(self, "y_factor", y_factor, -1.0, 1.0)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        count = ops.shape(x)[0]
        turned = ops.where(between(seed, (0.0, 1.0), count) > 0.5, -1.0, 1.0)
        along_y, along_x = (between(seed, s, count) for s in (self._y_span, self._x_span))
        return {"shear_factor": ops.stack([along_x * turned, along_y * turned], -1)}

    def _matrix(self, drawn: dict[str, Any], height: int, width: int) -> Any:
        along_x, along_y = columns(drawn["shear_factor"])
        return 1, along_x, 0, along_y, 1, 0

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "x_factor", "y_factor")
