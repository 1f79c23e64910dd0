"""Global and adaptive pooling: over all of the spatial axes, or over a given number of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops
from laminar.config import standardize_data_format
from laminar.engine.graph import Tensor
from laminar.typing import DataFormat

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import config_of, each_axis

Ints = int | Sequence[int]


class GlobalPooling(Layer):
    """The maximum or the mean over all spatial axes. Abstract in `rank` and `pool`.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the spatial axes stay, with size 1.

    Shapes:
        x: (batch, *spatial, channels), or (batch, channels, *spatial) -> y: (batch, channels)
    """

    _laminar_stateless = True

    rank: ClassVar[int]
    pool: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        data_format: DataFormat | None = None,
        keepdims: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.data_format = standardize_data_format(data_format)
        self.keepdims = keepdims
        self.input_spec = InputSpec(ndim=self.rank + 2)

    @property
    def _axes(self) -> tuple[int, ...]:
        first = 1 if self.data_format == "channels_last" else 2
        return tuple(range(first, first + self.rank))

    def call(self, inputs: Tensor) -> Any:
        return type(self).pool(inputs, axis=self._axes, keepdims=self.keepdims)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "data_format", "keepdims")


class GlobalMaxPooling1D(GlobalPooling):
    """The maximum over the steps of a sequence.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the axis of the sequence stays, with size 1.

    Shapes:
        x: (batch, length, channels), or (batch, channels, length) -> y: (batch, channels)

    Examples:
        >>> layers.GlobalMaxPooling1D()(np.array([[[1.0], [3.0]]]))
        Tensor([[3.]], shape=(1, 1), dtype=float32)
    """

    rank = 1
    pool = staticmethod(ops.max)


class GlobalMaxPooling2D(GlobalPooling):
    """The maximum over an image, for each channel.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the spatial axes stay, with size 1.

    Shapes:
        x: (batch, height, width, channels), or (batch, channels, height, width) -> y: (batch,
        channels)

    Examples:
        >>> layers.GlobalMaxPooling2D()(np.zeros((2, 7, 7, 16))).shape
        (2, 16)
    """

    rank = 2
    pool = staticmethod(ops.max)


class GlobalMaxPooling3D(GlobalPooling):
    """The maximum over a volume, for each channel.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the spatial axes stay, with size 1.

    Shapes:
        x: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) -> y:
        (batch, channels)

    Examples:
        >>> layers.GlobalMaxPooling3D()(np.zeros((2, 4, 4, 4, 16))).shape
        (2, 16)
    """

    rank = 3
    pool = staticmethod(ops.max)


class GlobalAveragePooling1D(GlobalPooling):
    """The mean over the steps of a sequence.

    Call arguments:
        inputs: (batch, steps, channels), or (batch, channels, steps).
        mask: (batch, steps); steps where it is false are left out.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the axis of the sequence stays, with size 1.

    Shapes:
        x: (batch, length, channels), or (batch, channels, length) -> y: (batch, channels)

    Examples:
        >>> layers.GlobalAveragePooling1D()(np.array([[[1.0], [3.0]]]))
        Tensor([[2.]], shape=(1, 1), dtype=float32)
    """

    rank = 1
    pool = staticmethod(ops.mean)

    def __init__(
        self,
        data_format: DataFormat | None = None,
        keepdims: bool = False,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(data_format, keepdims, **kwargs)
        self.supports_masking = True

    def call(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        if mask is None:
            return super().call(inputs)
        channel_axis = 2 if self.data_format == "channels_last" else 1
        kept = ops.expand_dims(ops.cast(mask, "bool"), channel_axis)
        options: dict[str, Any] = {"axis": self._axes, "keepdims": self.keepdims}
        total = ops.sum(ops.where(kept, inputs, 0), **options)
        return total / ops.sum(ops.cast(kept, inputs.dtype), **options)

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> None:
        """No mask: the steps are gone."""


class GlobalAveragePooling2D(GlobalPooling):
    """The mean over an image, for each channel.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the spatial axes stay, with size 1.

    Shapes:
        x: (batch, height, width, channels), or (batch, channels, height, width) -> y: (batch,
        channels)

    Examples:
        >>> layers.GlobalAveragePooling2D()(np.zeros((2, 7, 7, 16))).shape
        (2, 16)
    """

    rank = 2
    pool = staticmethod(ops.mean)


class GlobalAveragePooling3D(GlobalPooling):
    """The mean over a volume, for each channel.

    Args:
        data_format: "channels_last" or "channels_first", by default the global one.
        keepdims: whether the spatial axes stay, with size 1.

    Shapes:
        x: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) -> y:
        (batch, channels)

    Examples:
        >>> layers.GlobalAveragePooling3D()(np.zeros((2, 4, 4, 4, 16))).shape
        (2, 16)
    """

    rank = 3
    pool = staticmethod(ops.mean)


class AdaptivePooling(Layer):
    """The maximum or the mean of windows that together cover the input. Abstract.

    Window i of n along an axis of m cells goes from floor(i m / n) to ceil((i + 1) m / n).

    Args:
        output_size: number of windows along each spatial axis: one number, or one for each.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *output_size, channels); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.
    """

    rank: ClassVar[int]
    pool: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        output_size: Ints,
        data_format: DataFormat | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.output_size = each_axis(self, "output_size", output_size, self.rank)
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Any:
        return type(self).pool(inputs, self.output_size, data_format=self.data_format)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "output_size", "data_format")


class AdaptiveAveragePooling1D(AdaptivePooling):
    """The means of a number of windows of a sequence.

    Args:
        output_size: number of windows along the sequence.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, length, channels) -> y: (batch, *output_size, channels); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveAveragePooling1D(2)(np.arange(6.0).reshape(1, 6, 1))[0, :, 0]
        Tensor([1., 4.], shape=(2,), dtype=float32)
    """

    rank = 1
    pool = staticmethod(ops.adaptive_average_pool)


class AdaptiveAveragePooling2D(AdaptivePooling):
    """The means of a number of windows of an image.

    Args:
        output_size: number of windows along each spatial axis: one number, or one for each.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, *output_size, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveAveragePooling2D(2)(np.zeros((1, 6, 8, 3))).shape
        (1, 2, 2, 3)
    """

    rank = 2
    pool = staticmethod(ops.adaptive_average_pool)


class AdaptiveAveragePooling3D(AdaptivePooling):
    """The means of a number of windows of a volume.

    Args:
        output_size: number of windows along each spatial axis: one number, or one for each.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, depth, height, width, channels) -> y: (batch, *output_size, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveAveragePooling3D(2)(np.zeros((1, 4, 6, 8, 3))).shape
        (1, 2, 2, 2, 3)
    """

    rank = 3
    pool = staticmethod(ops.adaptive_average_pool)


class AdaptiveMaxPooling1D(AdaptivePooling):
    """The maxima of a number of windows of a sequence.

    Args:
        output_size: number of windows along the sequence.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, length, channels) -> y: (batch, *output_size, channels); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveMaxPooling1D(2)(np.arange(6.0).reshape(1, 6, 1))[0, :, 0]
        Tensor([2., 5.], shape=(2,), dtype=float32)
    """

    rank = 1
    pool = staticmethod(ops.adaptive_max_pool)


class AdaptiveMaxPooling2D(AdaptivePooling):
    """The maxima of a number of windows of an image.

    Args:
        output_size: number of windows along each spatial axis: one number, or one for each.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, *output_size, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveMaxPooling2D(2)(np.zeros((1, 6, 8, 3))).shape
        (1, 2, 2, 3)
    """

    rank = 2
    pool = staticmethod(ops.adaptive_max_pool)


class AdaptiveMaxPooling3D(AdaptivePooling):
    """The maxima of a number of windows of a volume.

    Args:
        output_size: number of windows along each spatial axis: one number, or one for each.
        data_format: "channels_last" or "channels_first", by default the global one.

    Shapes:
        x: (batch, depth, height, width, channels) -> y: (batch, *output_size, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a number of windows below 1.

    Examples:
        >>> layers.AdaptiveMaxPooling3D(2)(np.zeros((1, 4, 6, 8, 3))).shape
        (1, 2, 2, 2, 3)
    """

    rank = 3
    pool = staticmethod(ops.adaptive_max_pool)
