"""Pooling over windows, in either layout; blocks of space turned into channels."""

from __future__ import annotations

from collections.abc import Sequence

from laminar.engine.graph import Tensor
from laminar.engine.ops.array import blocks
from laminar.engine.ops.nn import adaptive_pooling
from laminar.engine.ops.nn import pooling as engine
from laminar.settings import standardize_data_format

from ..typing import DataFormat, Padding, TensorLike
from .arguments import floating, tensor
from .convolution import channels_last
from .recording import public

__all__ = [
    "adaptive_average_pool",
    "adaptive_max_pool",
    "average_pool",
    "depth_to_space",
    "max_pool",
    "space_to_depth",
]

Ints = int | Sequence[int]


@public
def max_pool(
    inputs: TensorLike,
    pool_size: Ints,
    strides: Ints | None = None,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
) -> Tensor:
    """The maximum of each window.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial).
        pool_size: cells of the window along each spatial axis.
        strides: step along each spatial axis, by default the window.
        padding: "valid" or "same"; a padded cell is never the maximum.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The layout and type of `inputs`, with one cell for each place of the window.

    Raises:
        ShapeError: wrong rank, or a window greater than the padded input.
        InvalidArgumentError: another padding or data_format, or a window below 1.

    Examples:
        >>> ops.max_pool(np.arange(6.0).reshape(1, 6, 1), pool_size=3)[0, :, 0]
        Tensor([2., 5.], shape=(2,), dtype=float64)
    """
    return channels_last(
        tensor(inputs),
        data_format,
        lambda x: engine.max_pool(x, pool_size, strides=strides, padding=padding),
    )


@public
def average_pool(
    inputs: TensorLike,
    pool_size: Ints,
    strides: Ints | None = None,
    padding: Padding = "valid",
    data_format: DataFormat | None = None,
) -> Tensor:
    """The mean of each window, over the cells inside of the input; arguments as in `max_pool`.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial); integers and bools
            become the default float.
        pool_size: cells of the window along each spatial axis.
        strides: step along each spatial axis, by default the window.
        padding: "valid" or "same"; a padded cell counts in neither the sum nor the number of cells.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The layout of `inputs`, with one cell for each place of the window.

    Raises:
        ShapeError: wrong rank, or a window greater than the padded input.
        InvalidArgumentError: another padding or data_format, or a window below 1.

    Examples:
        >>> ops.average_pool(np.arange(6.0).reshape(1, 6, 1), pool_size=3)[0, :, 0]
        Tensor([1., 4.], shape=(2,), dtype=float64)
    """
    return channels_last(
        floating(inputs),
        data_format,
        lambda x: engine.average_pool(x, pool_size, strides=strides, padding=padding),
    )


@public
def adaptive_max_pool(
    inputs: TensorLike, output_size: Ints, data_format: DataFormat | None = None
) -> Tensor:
    """The maximum of each of `output_size` windows that together cover a spatial axis.

    Window i of n along an axis of m cells goes from floor(i m / n) to ceil((i + 1) m / n).

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial).
        output_size: number of windows along each spatial axis.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The layout and type of `inputs`, with `output_size` cells along the spatial axes.

    Raises:
        InvalidArgumentError: a size below 1.

    Examples:
        >>> ops.adaptive_max_pool(np.arange(6.0).reshape(1, 6, 1), 2)[0, :, 0]
        Tensor([2., 5.], shape=(2,), dtype=float64)
    """
    return channels_last(
        tensor(inputs),
        data_format,
        lambda x: adaptive_pooling.adaptive_max_pool(x, output_size),
    )


@public
def adaptive_average_pool(
    inputs: TensorLike, output_size: Ints, data_format: DataFormat | None = None
) -> Tensor:
    """The mean of each of `output_size` windows; see `adaptive_max_pool`.

    Args:
        inputs: (batch, *spatial, channels), or (batch, channels, *spatial); integers and bools
            become the default float.
        output_size: number of windows along each spatial axis.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The layout of `inputs`, with `output_size` cells along the spatial axes.

    Raises:
        InvalidArgumentError: a size below 1.

    Examples:
        >>> ops.adaptive_average_pool(np.arange(6.0).reshape(1, 6, 1), 2)[0, :, 0]
        Tensor([1., 4.], shape=(2,), dtype=float64)
    """
    return channels_last(
        floating(inputs),
        data_format,
        lambda x: adaptive_pooling.adaptive_average_pool(x, output_size),
    )


@public
def depth_to_space(
    x: TensorLike, block_size: int, data_format: DataFormat = "channels_last"
) -> Tensor:
    """Channels laid out as blocks of pixels: (h, w, c b**2) becomes (h b, w b, c).

    Args:
        x: (batch, height, width, channels), or (batch, channels, height, width).
        block_size: b, the side of a block.
        data_format: "channels_last" or "channels_first".

    Raises:
        ShapeError: not four axes, or channels that are no multiple of b**2.
        InvalidArgumentError: `block_size` is below 1.

    Examples:
        >>> ops.depth_to_space(np.arange(4).reshape(1, 1, 1, 4), 2)[0, :, :, 0]
        Tensor([[0, 1],
                [2, 3]], shape=(2, 2), dtype=int64)
    """
    return blocks.depth_to_space(tensor(x), block_size, standardize_data_format(data_format))


@public
def space_to_depth(
    x: TensorLike, block_size: int, data_format: DataFormat = "channels_last"
) -> Tensor:
    """Blocks of pixels stacked as channels: the inverse of `depth_to_space`.

    Args:
        x: (batch, height, width, channels), or (batch, channels, height, width).
        block_size: b, the side of a block; height and width must be multiples of it.
        data_format: "channels_last" or "channels_first".

    Returns:
        (batch, height / b, width / b, channels b**2), or with the channels in front.

    Raises:
        ShapeError: not four axes, or a height or width that is no multiple of b.
        InvalidArgumentError: `block_size` is below 1.

    Examples:
        >>> ops.space_to_depth(np.arange(4).reshape(1, 2, 2, 1), 2)
        Tensor([[[[0, 1, 2, 3]]]], shape=(1, 1, 1, 4), dtype=int64)
    """
    return blocks.space_to_depth(tensor(x), block_size, standardize_data_format(data_format))
