"""Images of another size: resized, cropped in the middle, cropped at random."""

from __future__ import annotations

from typing import Any, NamedTuple, Unpack

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.random import SeedGenerator
from laminar.typing import DataFormat

from .image_layer import BoxOptions, ImageLayer, between, known_size
from .options import config_of, one_of, whole

INTERPOLATIONS = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")


class _Window(NamedTuple):
    """A part of an image: where it begins, and its size."""

    top: Any
    left: Any
    height: Any
    width: Any


def _cropped(size: tuple[int, int], wanted: tuple[int, int]) -> _Window:
    """The largest window in the middle of an image that has the ratio of the size that is wanted;
    `ops.image.resize` cuts it out with `crop_to_aspect_ratio`."""
    height, width = size
    rows = max(min(height, int(width * wanted[0] / wanted[1])), 1)
    columns = max(min(width, int(height * wanted[1] / wanted[0])), 1)
    return _Window((height - rows) // 2, (width - columns) // 2, rows, columns)


def _corners(down: Any, right: Any, boxes: Tensor) -> Any:
    """Two numbers for each of left, top, right and bottom of boxes."""
    return ops.stack([ops.cast(v, boxes.dtype) for v in (right, down, right, down)])


def _in_window(boxes: Tensor, window: _Window, height: int, width: int) -> Any:
    """Boxes in a part of their image, once it has another size."""
    moved = boxes - _corners(window.top, window.left, boxes)
    return moved * _corners(height / window.height, width / window.width, boxes)


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

    Examples:
        >>> layers.Resizing(4, 4)(np.zeros((1, 9, 7, 3))).shape
        (1, 4, 4, 3)
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
        **kwargs: Unpack[BoxOptions],
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

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
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

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        if self.crop_to_aspect_ratio:
            return _in_window(
                boxes, _cropped(size, self.changed_size(size)), self.height, self.width
            )
        height, width = size
        if not self.pad_to_aspect_ratio:
            return boxes * _corners(self.height / height, self.width / width, boxes)
        scale = min(self.height / height, self.width / width)
        top, left = (self.height - height * scale) // 2, (self.width - width * scale) // 2
        return boxes * scale + _corners(top, left, boxes)

    def changed_size(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.height, self.width

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

    Examples:
        >>> layers.CenterCrop(2, 2)(np.arange(16.0).reshape(1, 4, 4, 1))[0, :, :, 0]
        Tensor([[ 5.,  6.],
                [ 9., 10.]], shape=(2, 2), dtype=float32)
    """

    always = True
    moves = True

    def __init__(
        self,
        height: int,
        width: int,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.height = whole(self, "height", height)
        self.width = whole(self, "width", width)

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
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

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        height, width = size
        if height < self.height or width < self.width:
            window = _cropped(size, self.changed_size(size))
        else:
            top, left = (height - self.height) // 2, (width - self.width) // 2
            window = _Window(top, left, self.height, self.width)
        return _in_window(boxes, window, self.height, self.width)

    def changed_size(self, size: tuple[Any, Any]) -> tuple[Any, Any]:
        return self.height, self.width

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

    Examples:
        >>> layers.RandomCrop(4, 4)(np.zeros((2, 8, 8, 3)), training=True).shape
        (2, 4, 4, 3)
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
        return super().change(x, {}, interpolation)

    def draw(self, x: Tensor, seed: SeedGenerator) -> dict[str, Any]:
        """The first row and column, where there is a choice."""
        height, width = known_size(self, x)
        if height < self.height or width < self.width:
            return {}
        room = (height - self.height + 1, width - self.width + 1)
        places = between(seed, (0.0, 1.0), 2) * ops.convert_to_tensor(room, "float32")
        return {"start": ops.minimum(ops.cast(places, "int32"), [n - 1 for n in room])}

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        if "start" not in drawn:
            return super().change(x, drawn, interpolation)
        top, left = drawn["start"][0], drawn["start"][1]
        rows = ops.take(x, top + ops.arange(self.height), axis=1)
        return ops.take(rows, left + ops.arange(self.width), axis=2)

    def change_boxes(self, boxes: Tensor, drawn: dict[str, Any], size: tuple[Any, Any]) -> Any:
        if "start" not in drawn:
            return super().change_boxes(boxes, drawn, size)
        window = _Window(drawn["start"][0], drawn["start"][1], self.height, self.width)
        return _in_window(boxes, window, self.height, self.width)

    def rest_boxes(self, boxes: Tensor, size: tuple[Any, Any]) -> Any:
        return super().change_boxes(boxes, {}, size)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "seed")
