"""Filters of images, and a measure of how alike two are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import DType, Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array.axes import expand_dims, moveaxis
from laminar.engine.ops.array.broadcast import broadcast_to
from laminar.engine.ops.array.join import stack
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import exp
from laminar.engine.ops.math.reduce import reduce_mean, reduce_sum
from laminar.engine.ops.nn import depthwise
from laminar.settings import standardize_data_format

from ..typing import DataFormat, Padding, TensorLike
from .arguments import floating, floating_pair, tensor, whole
from .layout import known_dims, on_batch
from .recording import public

__all__ = ["gaussian_blur", "sobel_edges", "ssim"]


def gaussian(size: int, sigma: TensorLike, dtype: DType) -> Tensor:
    """`size` values of a normal density of deviation `sigma` around the middle, of sum 1."""
    place: Any = creation.arange(size, dtype=dtype)
    distance = (place - (size - 1) / 2) / tensor(sigma, dtype)
    density: Any = exp(distance * distance * -0.5)
    found: Tensor = density / reduce_sum(density)
    return found


def filtered(x: Tensor, kernel: Tensor, padding: Padding) -> Tensor:
    """Each channel of `x` (batch, height, width, channels) filtered by a matrix."""
    (channels,) = known_dims("filter", x, -1)
    rows, columns = known_dims("filter", kernel, 0, 1)
    window = broadcast_to(expand_dims(kernel, (2, 3)), (rows, columns, channels, 1))
    return depthwise.depthwise_conv(x, window, padding=padding)


def blurred(x: Tensor, kernel_size: Sequence[int], sigma: Sequence[Any]) -> Tensor:
    """`x` (batch, height, width, channels) blurred; zeros count around it."""
    if np.shape(kernel_size) != (2,) or len(sigma) != 2:
        raise InvalidArgumentError(
            f"gaussian_blur: expected two sizes and two deviations, got {kernel_size} and {sigma}"
        )
    sides = [whole("gaussian_blur", "a size", n) for n in kernel_size]
    across, down = (gaussian(n, s, x.dtype) for n, s in zip(sides, sigma, strict=True))
    kernel: Tensor = expand_dims(down, 1) * across
    return filtered(x, kernel, "same")


@public
def gaussian_blur(
    images: TensorLike,
    kernel_size: Sequence[int] = (3, 3),
    sigma: Sequence[float] = (1.0, 1.0),
    data_format: DataFormat | None = None,
) -> Tensor:
    """Images convolved with a normal density; zeros count around them.

    Args:
        images: a batch, or one image.
        kernel_size: width and height of the density.
        sigma: its deviation along width and height, in pixels.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        Shape and type of `images`.

    Raises:
        ShapeError: neither an image nor a batch.

    Examples:
        >>> image = np.zeros((1, 3, 3, 1), "float32")
        >>> image[0, 1, 1, 0] = 1
        >>> ops.image.gaussian_blur(image)[0, :, :, 0]
        Tensor([[0.0751, 0.1238, 0.0751],
                [0.1238, 0.2042, 0.1238],
                [0.0751, 0.1238, 0.0751]], shape=(3, 3), dtype=float32)
    """

    def compute(x: Tensor) -> Tensor:
        return cast(blurred(floating(x), kernel_size, sigma), x.dtype)

    return on_batch("gaussian_blur", images, data_format, compute)


_SOBEL = ((-1.0, 0.0, 1.0), (-2.0, 0.0, 2.0), (-1.0, 0.0, 1.0))


def slopes(x: Tensor, padding: Padding) -> Tensor:
    """The slopes down and to the right of `x` (batch, height, width, channels), side by side."""
    right = tensor(_SOBEL, x.dtype)
    down = tensor(tuple(zip(*_SOBEL, strict=True)), x.dtype)
    return stack([filtered(x, kernel, padding) for kernel in (down, right)], -1)


@public
def sobel_edges(images: TensorLike, data_format: DataFormat | None = None) -> Tensor:
    """The slope of the brightness down and to the right, by Sobel's filters.

    Args:
        images: (batch, height, width, channels), or with the channels in front.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        The shape of `images`, and a last axis of two: down, right.

    Examples:
        >>> image = np.tile(np.arange(4.0, dtype="float32"), (4, 1)).reshape(1, 4, 4, 1)
        >>> ops.image.sobel_edges(image)[0, 1, 1]
        Tensor([[0., 8.]], shape=(1, 2), dtype=float32)
    """
    x = floating(images)
    if x.shape.rank != 4:
        raise ShapeError(f"sobel_edges: expected a batch of images, got {x.spec}")
    first = standardize_data_format(data_format) == "channels_first"
    if first:
        x = moveaxis(x, 1, -1)
    edges = slopes(x, "same")
    return moveaxis(edges, 3, 1) if first else edges


@public
def ssim(
    image1: TensorLike,
    image2: TensorLike,
    max_val: float = 1.0,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
    data_format: DataFormat | None = None,
) -> Tensor:
    """The structural similarity of images, 1 for equal ones: the mean over windows and channels.

    Args:
        image1: a batch, or one image.
        image2: of the same shape.
        max_val: the greatest possible value less the least.
        filter_size: side of the windows.
        filter_sigma: deviation of the normal density that weighs the pixels of a window.
        k1: steadies the comparison of means.
        k2: steadies the comparison of variances.
        data_format: "channels_last" or "channels_first", by default the global one.

    Returns:
        One number for each image.

    Raises:
        ShapeError: the shapes differ, or an image is smaller than a window.

    Source: Wang et al., "Image quality assessment: from error visibility to structural similarity",
        2004, equation 13.

    Examples:
        >>> image = np.random.default_rng(0).random((1, 16, 16, 1), "float32")
        >>> ops.image.ssim(image, image)
        Tensor([1.], shape=(1,), dtype=float32)
    """
    given = tensor(image1)
    a, b = floating_pair(given, image2)
    if not a.shape.is_compatible_with(b.shape) or a.shape.rank not in (3, 4):
        raise ShapeError(f"ssim: expected two equal shapes of images, got {a.spec} and {b.spec}")
    single = a.shape.rank == 3
    if single:
        a, b = expand_dims(a, 0), expand_dims(b, 0)
    if standardize_data_format(data_format) == "channels_first":
        a, b = moveaxis(a, 1, -1), moveaxis(b, 1, -1)
    filter_size = whole("ssim", "filter_size", filter_size)
    line = gaussian(filter_size, filter_sigma, a.dtype)
    window: Tensor = expand_dims(line, 1) * line

    def mean(x: Tensor) -> Any:
        return filtered(x, window, "valid")

    c1, c2 = (k1 * max_val) ** 2, (k2 * max_val) ** 2
    x: Any = a
    y: Any = b
    mx, my = mean(x), mean(y)
    variances = mean(x * x) - mx * mx + mean(y * y) - my * my
    covariance = mean(x * y) - mx * my
    index = (2 * mx * my + c1) * (2 * covariance + c2)
    index = index / ((mx * mx + my * my + c1) * (variances + c2))
    found = reduce_mean(index, (0, 1, 2, 3) if single else (1, 2, 3))
    return cast(found, given.dtype)
