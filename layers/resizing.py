"""Images of another size: resized, cropped in the middle, cropped at random."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import ImageLayer, between, known_size
from .layer_options import LayerOptions
from .options import config_of, one_of, whole

INTERPOLATIONS = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")


class Resizing(ImageLayer):
    """Images at another resolution, in and outside of training.

    Args:
        height: of the output.
        width: of the output.
        interpolation: "bilinear", "nearest", "bicubic", "lanczos3" or "lanczos5".
        crop_to_aspect_ratio: whether borders are cut off first, so that nothing is distorted.
        pad_to_aspect_ratio: whether borders are added first, so that nothing is distorted.
        fill_mode: how borders are filled: "constant".
        fill_value: the value of added borders.
        antialias: whether, in shrinking, all pixels count.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, rows, columns, channels) -> (batch, height, width, channels), of one dtype

    Raises:
        InvalidArgumentError: a size below 1, another choice, or both crop and pad.
    """

    always = True
    keeps_dtype = True
    moves = True

    def __init__(
        self,
        height: int,
        width: int,
        interpolation: str = "bilinear",
        crop_to_aspect_ratio: bool = False,
        pad_to_aspect_ratio: bool = False,
        fill_mode: str = "constant",
        fill_value: float = 0.0,
        antialias: bool = False,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.height = whole(self, "height", height)
        self.width = whole(self, "width", width)
        self.interpolation = one_of(self, "interpolation", interpolation, INTERPOLATIONS)
        self.fill_mode = one_of(self, "fill_mode", fill_mode, ("constant",))
        if crop_to_aspect_ratio and pad_to_aspect_ratio:
            raise InvalidArgumentError(
                f"{who(self)}: crop_to_aspect_ratio and pad_to_aspect_ratio exclude each other"
            )
        self.crop_to_aspect_ratio = crop_to_aspect_ratio
        self.pad_to_aspect_ratio = pad_to_aspect_ratio
        self.fill_value = fill_value
        self.antialias = bool(antialias)

    def change(self, x: Tensor, drawn: Any, interpolation: str | None = None) -> Any:
        return ops.image.resize(
            x,
            (self.height, self.width),
            interpolation=interpolation or self.interpolation,
            antialias=self.antialias and interpolation is None,
            crop_to_aspect_ratio=self.crop_to_aspect_ratio,
            pad_to_aspect_ratio=self.pad_to_aspect_ratio,
            fill_mode=self.fill_mode,
            fill_value=self.fill_value,
            data_format="channels_last",
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self,
            "height",
            "width",
            "interpolation",
            "crop_to_aspect_ratio",
            "pad_to_aspect_ratio",
            "fill_mode",
            "fill_value",
            "antialias",
        )


class CenterCrop(ImageLayer):
    """The middle of images, in and outside of training.

    An image that is smaller is first cropped to the ratio of the output, and then resized.

    Args:
        height: of the output.
        width: of the output.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, rows, columns, channels) -> y: (batch, height, width, channels)

    Raises:
        InvalidArgumentError: a size below 1.
    """

    always = True
    moves = True

    def __init__(
        self,
        height: int,
        width: int,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.height = whole(self, "height", height)
        self.width = whole(self, "width", width)

    def change(self, x: Tensor, drawn: Any, interpolation: str | None = None) -> Any:
        height, width = known_size(self, x)
        if height < self.height or width < self.width:
            return ops.image.resize(
                x,
                (self.height, self.width),
                interpolation=interpolation or "bilinear",
                crop_to_aspect_ratio=True,
                data_format="channels_last",
            )
        top, left = (height - self.height) // 2, (width - self.width) // 2
        return x[:, top : top + self.height, left : left + self.width]

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "height", "width")


class RandomCrop(CenterCrop):
    """In training, a part of the images at a random place, the same for the batch; else the middle.

    An image that is smaller is first cropped to the ratio of the output, and then resized.

    Args:
        height: of the output.
        width: of the output.
        seed: a whole number, which fixes all places that follow.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, rows, columns, channels) -> y: (batch, height, width, channels)

    Raises:
        InvalidArgumentError: a size below 1.
    """

    always = False

    def __init__(
        self,
        height: int,
        width: int,
        seed: int | None = None,
        data_format: DataFormat | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(height, width, data_format, name=name, **kwargs)
        self._begin(seed)

    def rest(self, x: Tensor, interpolation: str | None = None) -> Any:
        return super().change(x, None, interpolation)

    def draw(self, x: Tensor, seed: SeedGenerator) -> Any:
        """The first row and column; None where there is no choice."""
        height, width = known_size(self, x)
        if height < self.height or width < self.width:
            return None
        room = (height - self.height + 1, width - self.width + 1)
        places = between(seed, (0.0, 1.0), 2) * ops.convert_to_tensor(room, "float32")
        return ops.minimum(ops.cast(places, "int32"), [n - 1 for n in room])

    def change(self, x: Tensor, drawn: Any, interpolation: str | None = None) -> Any:
        if drawn is None:
            return super().change(x, drawn, interpolation)
        rows = ops.take(x, drawn[0] + ops.arange(self.height), axis=1)
        return ops.take(rows, drawn[1] + ops.arange(self.width), axis=2)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "seed")
