"""Images whose values are spread over their whole range."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.typing import DataFormat, Ints

from .image_layer import BoxOptions, ImageLayer, ImageOptions, bounds, clipped, known_size, rescaled
from .options import at_least_0, config_of, each_axis, whole

_BYTES = (0, 255)


class AutoContrast(ImageLayer):
    """Each channel of each image is stretched to the whole range of values, in training.

    A channel of one value stays as it is.

    Args:
        value_range: the least and greatest value of a pixel.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: no range.

    Examples:
        >>> image = np.array([[[[50.0], [100.0]]]])
        >>> layers.AutoContrast()(image, training=True)[0, 0, :, 0]
        Tensor([  0., 255.], shape=(2,), dtype=float32)
    """

    always = True

    def __init__(
        self, value_range: Sequence[float] = (0, 255), **kwargs: Unpack[ImageOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.value_range = bounds(self, value_range)

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        y = rescaled(x, self.value_range, _BYTES)
        low = ops.min(y, axis=(1, 2), keepdims=True)
        high = ops.max(y, axis=(1, 2), keepdims=True)
        is_flat = high == low
        scale = 255 / ops.where(is_flat, ops.ones_like(high), high - low)
        stretched = clipped(y * scale - low * scale, _BYTES)
        return ops.where(is_flat, x, rescaled(stretched, _BYTES, self.value_range))

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "value_range")


def _counts(bins: Tensor, groups: int, size: int) -> Any:
    """How often each of `size` bins stands in each of `groups` columns: (groups, size), floats.

    Args:
        bins: (..., groups), int32 from 0 to size - 1.
        groups: how many.
        size: of a histogram.
    """
    each = ops.reshape(bins + size * ops.arange(groups), (-1,))
    ones = ops.ones_like(each, dtype="float32")
    return ops.reshape(ops.segment_sum(ones, each, num_segments=groups * size), (groups, size))


class Equalization(ImageLayer):
    """In training, values are mapped so that all are about equally frequent in each channel.

    The histogram of a channel is that of the whole batch, as in Keras.

    Args:
        value_range: the least and greatest value of a pixel.
        bins: of the histograms.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same

    Raises:
        InvalidArgumentError: no range, or less than one bin.

    Examples:
        >>> image = np.array([[[[10.0], [11.0], [12.0], [13.0]]]])
        >>> layers.Equalization()(image, training=True)[0, 0, :, 0]
        Tensor([  0.,  85., 170., 255.], shape=(4,), dtype=float32)
    """

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        bins: int = 256,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.value_range = bounds(self, value_range)
        self.bins = whole(self, "bins", bins, 2)

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        channels: Any = x.shape[-1]
        y = rescaled(x, self.value_range, _BYTES)
        places = y * (self.bins - 1) / 255
        bins = ops.clip(ops.cast(places, "int32"), 0, self.bins - 1)
        counts = _counts(bins, channels, self.bins)
        below = ops.cumsum(counts, axis=-1)
        total = below[:, -1:]
        least = ops.min(ops.where(below > 0, below, total), axis=-1, keepdims=True)
        room = ops.where(total == least, ops.ones_like(total), total - least)
        table = clipped(ops.round((below - least) * 255 / room), _BYTES)
        flat = ops.reshape(table, (-1,))
        equal = ops.take(flat, bins + self.bins * ops.arange(channels))
        is_flat = ops.sum(ops.cast(counts > 0, "int32"), axis=-1) <= 1
        equal = ops.where(is_flat, y, ops.cast(equal, y.dtype))
        return rescaled(equal, _BYTES, self.value_range)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "value_range", "bins")


class ContrastLimitedAdaptiveHistogramEqualization(ImageLayer):
    """Values are equalized in each tile of each image, and mixed between tiles.

    Args:
        value_range: the least and greatest value of a pixel.
        clip_limit: how many times the mean a bin of a tile's histogram counts at most; the rest is
            spread over all bins. 0 for no limit.
        tile_grid_size: tiles along height and width.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: the same, of the same dtype

    Raises:
        InvalidArgumentError: no range, a limit below 0, or no tiles.

    Source: Zuiderveld, "Contrast limited adaptive histogram equalization", Graphics Gems IV, 1994,
        pages 474 to 485.

    Examples:
        >>> layer = layers.ContrastLimitedAdaptiveHistogramEqualization(tile_grid_size=(2, 2))
        >>> layer(np.zeros((1, 8, 8, 3))).shape
        (1, 8, 8, 3)
    """

    always = True
    keeps_dtype = True

    def __init__(
        self,
        value_range: Sequence[float] = (0, 255),
        clip_limit: float = 4.0,
        tile_grid_size: Ints = (8, 8),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[BoxOptions],
    ) -> None:
        super().__init__(data_format, **kwargs)
        self.value_range = bounds(self, value_range)
        self.clip_limit = at_least_0(self, "clip_limit", clip_limit)
        self.tile_grid_size = each_axis(self, "tile_grid_size", tile_grid_size, 2)

    def change(self, x: Tensor, drawn: dict[str, Any], interpolation: str | None = None) -> Any:
        height, width = known_size(self, x)
        channels: Any = x.shape[-1]
        down, right = self.tile_grid_size
        tall, wide = -(-height // down), -(-width // right)
        y = rescaled(x, self.value_range, _BYTES)
        margins = [(0, 0), (0, tall * down - height), (0, wide * right - width), (0, 0)]
        y = ops.pad(y, margins, mode="symmetric")
        bins = ops.cast(clipped(y, _BYTES), "int32")

        # One histogram for each (image, tile, channel); `place` numbers them.
        batch = ops.shape(x)[0]
        image = ops.reshape(ops.arange(batch), (-1, 1, 1, 1))
        channel = ops.arange(channels)

        def place(row: Any, column: Any) -> Any:
            tile = ops.reshape(row, (-1, 1, 1)) * right + ops.reshape(column, (1, -1, 1))
            return ((image * (down * right) + tile) * channels + channel) * 256

        rows, columns = ops.arange(tall * down), ops.arange(wide * right)
        own = ops.reshape(place(rows // tall, columns // wide) + bins, (-1,))
        none = ops.zeros((batch * (down * right * channels * 256),), dtype=y.dtype)
        ones = ops.ones_like(own, dtype=y.dtype)
        counts = ops.scatter_update(none, ops.expand_dims(own, -1), ones, reduction="add")
        table = self._tables(ops.reshape(counts, (-1, 256)), tall * wide)
        flat = ops.reshape(table, (-1,))

        # A pixel is mapped by the four tiles whose middles are nearest.
        def neighbours(at: Any, size: int, most: int) -> tuple[Any, Any, Any]:
            middle = (ops.cast(at, y.dtype) - size / 2) / size
            first = ops.floor(middle)
            lower = ops.cast(ops.clip(first, 0, most - 1), "int32")
            upper = ops.cast(ops.clip(first + 1, 0, most - 1), "int32")
            return lower, upper, middle - first

        top, bottom, fall = neighbours(rows, tall, down)
        left, end, run = neighbours(columns, wide, right)
        fall, run = ops.reshape(fall, (-1, 1, 1)), ops.reshape(run, (1, -1, 1))

        def along(row: Any) -> Any:
            before = ops.take(flat, place(row, left) + bins)
            return before + (ops.take(flat, place(row, end) + bins) - before) * run

        upper = along(top)
        y = (upper + (along(bottom) - upper) * fall)[:, :height, :width]
        return rescaled(y, _BYTES, self.value_range)

    def _tables(self, counts: Tensor, pixels: int) -> Any:
        """Where each histogram of a tile takes the values 0 to 255."""
        if self.clip_limit > 0:
            kept = ops.minimum(counts, self.clip_limit * pixels / 256)
            counts = kept + ops.sum(counts - kept, axis=-1, keepdims=True) / 256
        below = ops.cumsum(counts, axis=-1)
        least = ops.min(below, axis=-1, keepdims=True)
        room = pixels - least
        room = ops.where(room == 0, ops.ones_like(room), room)
        return clipped((below - least) * 255 / room, _BYTES)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "value_range", "clip_limit", "tile_grid_size")
