"""Pooling: the maximum or the mean of windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from laminar import ops
from laminar.config import standardize_data_format
from laminar.engine.graph import Tensor
from laminar.typing import DataFormat, Padding

from .input_spec import InputSpec
from .layer import Layer
from .options import config_of, each_axis, one_of

Ints = int | Sequence[int]


class Pooling(Layer):
    """The maximum or the mean of each window. Abstract in `rank` and `pool`.

    Args:
        pool_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis, by default the window.
        padding: "valid" (none) or "same" (a padded cell is never the maximum, and is left out of
            the mean).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, *spatial, channels) -> y: (batch, *positions, channels); with "channels_first"
        the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.
    """

    _laminar_stateless = True

    rank: ClassVar[int]
    pool: ClassVar[Callable[..., Any]]

    def __init__(
        self,
        pool_size: Ints,
        strides: Ints | None = None,
        padding: Padding = "valid",
        data_format: DataFormat | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, **kwargs)
        self.pool_size = each_axis(self, "pool_size", pool_size, self.rank)
        self.strides = (
            self.pool_size if strides is None else each_axis(self, "strides", strides, self.rank)
        )
        self.padding = one_of(self, "padding", padding, ("valid", "same"))
        self.data_format = standardize_data_format(data_format)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def call(self, inputs: Tensor) -> Any:
        return type(self).pool(
            inputs,
            self.pool_size,
            strides=self.strides,
            padding=self.padding,
            data_format=self.data_format,
        )

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(
            self, "pool_size", "padding", "strides", "data_format"
        )


class MaxPooling(Pooling):
    """The maximum of each window. Abstract in `rank`; see `Pooling`."""

    pool = staticmethod(ops.max_pool)

    def __init__(
        self,
        pool_size: Ints = 2,
        strides: Ints | None = None,
        padding: Padding = "valid",
        data_format: DataFormat | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(pool_size, strides, padding, data_format, name, **kwargs)


class MaxPooling1D(MaxPooling):
    """The maximum of each window of a sequence.

    Args:
        pool_size: cells of the window along the sequence.
        strides: step along the sequence, by default the window.
        padding: "valid" (none) or "same" (a padded cell is never the maximum).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, length, channels) -> y: (batch, positions, channels); with "channels_first" the
        channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.MaxPooling1D(2)(np.arange(4.0).reshape(1, 4, 1))[0, :, 0]
        Tensor([1., 3.], shape=(2,), dtype=float32)
    """

    rank = 1


class MaxPooling2D(MaxPooling):
    """The maximum of each window of an image.

    Args:
        pool_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis, by default the window.
        padding: "valid" (none) or "same" (a padded cell is never the maximum).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, columns, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.MaxPooling2D(2)(np.zeros((1, 8, 8, 3))).shape
        (1, 4, 4, 3)
    """

    rank = 2


class MaxPooling3D(MaxPooling):
    """The maximum of each window of a volume.

    Args:
        pool_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis, by default the window.
        padding: "valid" (none) or "same" (a padded cell is never the maximum).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, depth, height, width, channels) -> y: (batch, planes, rows, columns, channels);
        with "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.MaxPooling3D(2)(np.zeros((1, 4, 4, 4, 1))).shape
        (1, 2, 2, 2, 1)
    """

    rank = 3


class AveragePooling1D(Pooling):
    """The mean of each window of a sequence.

    Args:
        pool_size: cells of the window along the sequence.
        strides: step along the sequence, by default the window.
        padding: "valid" (none) or "same" (padded cells are left out of the mean).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, length, channels) -> y: (batch, positions, channels); with "channels_first" the
        channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.AveragePooling1D(2)(np.arange(4.0).reshape(1, 4, 1))[0, :, 0]
        Tensor([0.5, 2.5], shape=(2,), dtype=float32)
    """

    rank = 1
    pool = staticmethod(ops.average_pool)


class AveragePooling2D(Pooling):
    """The mean of each window of an image.

    Args:
        pool_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis, by default the window.
        padding: "valid" (none) or "same" (padded cells are left out of the mean).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, height, width, channels) -> y: (batch, rows, columns, channels); with
        "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.AveragePooling2D(2)(np.arange(4.0).reshape(1, 2, 2, 1))[0, 0, 0]
        Tensor([1.5], shape=(1,), dtype=float32)
    """

    rank = 2
    pool = staticmethod(ops.average_pool)


class AveragePooling3D(Pooling):
    """The mean of each window of a volume.

    Args:
        pool_size: cells of the window along each spatial axis: one number, or one for each.
        strides: step along each spatial axis, by default the window.
        padding: "valid" (none) or "same" (padded cells are left out of the mean).
        data_format: "channels_last" or "channels_first", by default the global one.
        name: of the layer.

    Shapes:
        x: (batch, depth, height, width, channels) -> y: (batch, planes, rows, columns, channels);
        with "channels_first" the channels stand second

    Raises:
        InvalidArgumentError: a size below 1, or another padding or layout.

    Examples:
        >>> layers.AveragePooling3D(2)(np.zeros((1, 4, 4, 4, 1))).shape
        (1, 2, 2, 2, 1)
    """

    rank = 3
    pool = staticmethod(ops.average_pool)
