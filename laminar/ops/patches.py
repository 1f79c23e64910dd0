"""Windows of a tensor laid out side by side, and put together again."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, canonical_axis
from laminar.engine.ops.array import axes, creation
from laminar.engine.ops.array import padding as engine_padding
from laminar.engine.ops.array.gather import gather
from laminar.engine.ops.array.index import get_item
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.nn import conv_transpose, convolution
from laminar.engine.ops.nn.windows import per_axis

from ..typing import TensorLike
from .arguments import floating, known_rank, known_size, tensor, whole
from .layout import sizes
from .recording import public

__all__ = ["extract_sequences", "fold", "unfold"]

Pair = int | Sequence[int]


def windows(x: Tensor, size: Sequence[int], strides: Any, dilation: Any, pads: Any) -> Tensor:
    """The windows of (batch, *spatial, channels): (batch, *places, prod(size) * channels).

    Within a window the channels of one cell stand together.
    """
    channels = known_size("windows", x, -1)
    cells = math.prod(size) * channels
    # One filter for each cell and channel of the window picks it.
    kernel = reshape(creation.eye(cells, dtype=x.dtype), (*size, channels, cells))
    return convolution.conv(x, kernel, strides=strides, dilations=dilation, padding=pads)


@public
def unfold(
    x: TensorLike, kernel_size: Pair, dilation: Pair = 1, padding: Pair = 0, stride: Pair = 1
) -> Tensor:
    """The windows of images as columns.

    Args:
        x: (batch, channels, height, width).
        kernel_size: rows and columns of a window.
        dilation: distance of its cells.
        padding: zeros on each side.
        stride: step of the windows.

    Returns:
        (batch, channels * rows * columns, windows).

    Examples:
        >>> ops.unfold(np.arange(9.0, dtype="float32").reshape(1, 1, 3, 3), 2)[0, :, 0]
        Tensor([0., 1., 3., 4.], shape=(4,), dtype=float32)
    """
    x = floating(x)
    if x.shape.rank != 4:
        raise ShapeError(f"unfold: expected (batch, channels, height, width), got {x.spec}")
    size = per_axis("unfold", "kernel_size", kernel_size, 2)
    pads = [(p, p) for p in _pair("unfold", "padding", padding)]
    channels = known_size("unfold", x, 1)
    patches = windows(axes.moveaxis(x, 1, -1), size, stride, dilation, pads)
    batch = sizes(patches)[0]
    cells = math.prod(size)
    # (batch, places, cells, channels) to (batch, channels, cells, places)
    columns = axes.transpose(reshape(patches, (batch, -1, cells, channels)), (0, 3, 2, 1))
    return reshape(columns, (batch, channels * cells, sizes(columns)[3]))


def _pair(who: str, what: str, value: Pair) -> tuple[int, int]:
    pair = tuple(value) if np.iterable(value) else (value, value)
    if len(pair) != 2 or not all(hasattr(p, "__index__") and p >= 0 for p in pair):
        raise InvalidArgumentError(f"{who}: {what} must be one or two whole numbers, got {value}")
    return int(pair[0]), int(pair[1])


@public
def fold(
    x: TensorLike,
    output_size: Pair,
    kernel_size: Pair,
    dilation: Pair = 1,
    padding: Pair = 0,
    stride: Pair = 1,
) -> Tensor:
    """Images whose pixels are the sums of the windows that cover them: the adjoint of `unfold`.

    Args:
        x: (batch, channels * rows * columns, windows).
        output_size: height and width of the images.
        kernel_size: rows and columns of a window.
        dilation: distance of its cells.
        padding: zeros on each side of the images, which are cut off.
        stride: step of the windows.

    Returns:
        (batch, channels, height, width).

    Raises:
        ShapeError: the windows do not fit the images.

    Examples:
        >>> patches = ops.unfold(np.ones((1, 1, 3, 3), "float32"), 2)
        >>> ops.fold(patches, output_size=(3, 3), kernel_size=2)[0, 0]  # in how many each is
        Tensor([[1., 2., 1.],
                [2., 4., 2.],
                [1., 2., 1.]], shape=(3, 3), dtype=float32)
    """
    x = floating(x)
    who = "fold"
    if x.shape.rank != 3:
        raise ShapeError(f"fold: expected (batch, cells, windows), got {x.spec}")
    size = per_axis(who, "kernel_size", kernel_size, 2)
    step, gap = per_axis(who, "stride", stride, 2), per_axis(who, "dilation", dilation, 2)
    pads, target = _pair(who, "padding", padding), _pair(who, "output_size", output_size)
    padded = [n + 2 * p for n, p in zip(target, pads, strict=True)]
    covered = [g * (k - 1) + 1 for k, g in zip(size, gap, strict=True)]
    counts = [(n - c) // s + 1 for n, c, s in zip(padded, covered, step, strict=True)]
    cells = math.prod(size)
    columns = known_size(who, x, 1)
    if columns % cells or x.shape[2] not in (None, math.prod(counts)):
        raise ShapeError(
            f"fold: {x.spec} does not hold {math.prod(counts)} windows of {size[0]} by {size[1]}"
        )
    channels = columns // cells
    batch = sizes(x)[0]
    # (batch, channels * cells, places) to (batch, rows, columns, cells * channels)
    split = reshape(x, (batch, channels, cells, *counts))
    grid = reshape(axes.transpose(split, (0, 3, 4, 2, 1)), (batch, *counts, cells * channels))
    kernel = creation.eye(cells * channels, dtype=x.dtype)
    kernel = reshape(kernel, (*size, channels, cells * channels))
    y = conv_transpose.conv_transpose(grid, kernel, strides=step, dilations=gap)
    y = _fitted(y, padded)
    (top, left), (height, width) = pads, target
    y = get_item(y, (slice(None), slice(top, top + height), slice(left, left + width)))
    return axes.moveaxis(y, -1, 1)


def _fitted(y: Tensor, sizes: Sequence[int]) -> Tensor:
    """`y` (batch, height, width, channels) cut, or filled up with zeros, to `sizes`."""
    missing = [max(0, n - known_size("fold", y, i + 1)) for i, n in enumerate(sizes)]
    y = engine_padding.pad(y, [(0, 0), (0, missing[0]), (0, missing[1]), (0, 0)])
    return get_item(y, (slice(None), slice(0, sizes[0]), slice(0, sizes[1])))


@public
def extract_sequences(x: TensorLike, sequence_length: int, sequence_stride: int) -> Tensor:
    """Stretches of the last axis, one every `sequence_stride` elements.

    Args:
        x: (..., n).
        sequence_length: elements of a stretch.
        sequence_stride: distance of the beginnings.

    Returns:
        (..., stretches, sequence_length), stretches = 1 + (n - sequence_length) // sequence_stride.

    Raises:
        ShapeError: the number of axes is unknown.

    Examples:
        >>> ops.extract_sequences([1.0, 2.0, 3.0, 4.0, 5.0], sequence_length=3, sequence_stride=2)
        Tensor([[1., 2., 3.],
                [3., 4., 5.]], shape=(2, 3), dtype=float32)
    """
    x = tensor(x)
    canonical_axis("extract_sequences", -1, known_rank("extract_sequences", x))
    sequence_length = whole("extract_sequences", "sequence_length", sequence_length)
    sequence_stride = whole("extract_sequences", "sequence_stride", sequence_stride)
    n = sizes(x)[-1]  # a scalar tensor, where it is not known
    end = n - sequence_length + 1
    starts = creation.arange(
        0, max(end, 0) if isinstance(n, int) else end, sequence_stride, "int32"
    )
    within = creation.arange(sequence_length, dtype="int32")
    places = axes.expand_dims(starts, 1) + within
    return gather(x, places, -1)
