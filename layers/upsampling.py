"""Upsampling: cells repeated, or interpolated, along the spatial axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from laminar import ops
from laminar.config import standardize_data_format
from laminar.engine.graph import Tensor
from laminar.typing import DataFormat

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, each_axis, one_of, whole

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "lanczos3", "lanczos5")


def _repeat(x: Tensor, sizes: Sequence[int], first: int) -> Any:
    """`x` with each cell repeated `sizes[i]` times along axis `first + i`."""
    for i, size in enumerate(sizes):
        x = ops.repeat(x, size, axis=first + i)
    return x


class UpSampling1D(Layer):
    """Each step of a sequence repeated.

    Args:
        size: how often.

    Shapes:
        x: (batch, steps, channels) -> y: (batch, size * steps, channels)

    Examples:
        >>> layers.UpSampling1D(2)(np.array([[[1.0], [2.0]]]))[0, :, 0]
        Tensor([1., 1., 2., 2.], shape=(4,), dtype=float32)
    """

    def __init__(self, size: int = 2, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.size = whole(self, "size", size)
        self.input_spec = InputSpec(ndim=3)

    def call(self, inputs: Tensor) -> Any:
        return _repeat(inputs, (self.size,), 1)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "size")


class UpSampling2D(Layer):
    """An image enlarged by whole factors.

    Args:
        size: the factors of height and width: one number, or two.
        data_format: "channels_last" or "channels_first", by default the global one.
        interpolation: "nearest" (each pixel repeated), "bilinear", "bicubic", "lanczos3" or
            "lanczos5".

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, size[0] * height, size[1] * width,
        channels); with "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a factor below 1, or another interpolation or layout.

    Examples:
        >>> layers.UpSampling2D(2)(np.zeros((1, 4, 4, 3))).shape
        (1, 8, 8, 3)
    """

    def __init__(
        self,
        size: int | Sequence[int] = (2, 2),
        data_format: DataFormat | None = None,
        interpolation: str = "nearest",
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.size = each_axis(self, "size", size, 2)
        self.interpolation = one_of(self, "interpolation", interpolation, _INTERPOLATIONS)
        self.input_spec = InputSpec(ndim=4)

    def call(self, inputs: Tensor) -> Any:
        first = 1 if self.data_format == "channels_last" else 2
        if self.interpolation == "nearest":
            return _repeat(inputs, self.size, first)
        height, width = ops.shape(inputs)[first : first + 2]
        return ops.image.resize(
            inputs,
            (height * self.size[0], width * self.size[1]),
            interpolation=self.interpolation,
            data_format=self.data_format,
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "size", "data_format", "interpolation")


class UpSampling3D(Layer):
    """Each cell of a volume repeated.

    Args:
        size: how often along each spatial axis: one number, or three.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, d1, d2, d3, channels) -> y: (batch, size[0] * d1, size[1] * d2, size[2] * d3,
        channels); with "channels_first" the channels stand second

    Examples:
        >>> layers.UpSampling3D(2)(np.zeros((1, 2, 2, 2, 3))).shape
        (1, 4, 4, 4, 3)
    """

    def __init__(
        self,
        size: int | Sequence[int] = (2, 2, 2),
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.size = each_axis(self, "size", size, 3)
        self.input_spec = InputSpec(ndim=5)

    def call(self, inputs: Tensor) -> Any:
        return _repeat(inputs, self.size, 1 if self.data_format == "channels_last" else 2)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "size", "data_format")
