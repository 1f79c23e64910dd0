"""Blocks of pixels as channels, and channels as blocks of pixels."""

from __future__ import annotations

from typing import Any

from ...errors import InvalidArgumentError, ShapeError
from ...graph import Array, Dim, OpView, Tensor, TensorSpec
from ..core.op_def import Grads
from ..core.registry import define


def _image(who: str, x: TensorSpec, block_size: int, data_format: str) -> tuple[Dim, Dim, Dim, Dim]:
    """Batch, height, width and channels of x."""
    if block_size < 1:
        raise InvalidArgumentError(f"{who}: block_size must be at least 1, got {block_size}")
    if data_format not in ("channels_last", "channels_first"):
        raise InvalidArgumentError(
            f'{who}: data_format must be "channels_last" or "channels_first", got {data_format!r}'
        )
    if x.shape.rank is None:
        return None, None, None, None
    if len(x.shape) != 4:
        raise ShapeError(
            f"{who}: expected images with four axes ({data_format}), got {x}",
            remedy="add or drop axes until there are four",
        )
    n, *rest = x.shape
    h, w, c = rest if data_format == "channels_last" else (*rest[1:], rest[0])
    return n, h, w, c


def _result(x: TensorSpec, data_format: str, dims: tuple[Dim, Dim, Dim, Dim]) -> TensorSpec:
    n, h, w, c = dims
    return TensorSpec([n, h, w, c] if data_format == "channels_last" else [n, c, h, w], x.dtype)


def _share(who: str, x: TensorSpec, what: str, size: Dim, parts: int) -> Dim:
    if size is not None and size % parts:
        raise ShapeError(
            f"{who}: the {what} of {x} must be a multiple of {parts}, got {size}",
            remedy="crop or pad, or choose another block_size",
        )
    return None if size is None else size // parts


def _times(size: Dim, factor: int) -> Dim:
    return None if size is None else size * factor


@define("SpaceToDepth")
def _space_to_depth(x: TensorSpec, *, block_size: int, data_format: str) -> TensorSpec:
    """The inverse of DepthToSpace with the same attributes."""
    n, h, w, c = _image("SpaceToDepth", x, block_size, data_format)
    h = _share("SpaceToDepth", x, "height", h, block_size)
    w = _share("SpaceToDepth", x, "width", w, block_size)
    return _result(x, data_format, (n, h, w, _times(c, block_size**2)))


@_space_to_depth.reference
def _space_to_depth_kernel(xp: Any, x: Array, *, block_size: int, data_format: str) -> Array:
    s = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        blocks = x.reshape(n, h // s, s, w // s, s, c).transpose(0, 1, 3, 2, 4, 5)
        return blocks.reshape(n, h // s, w // s, s * s * c)
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // s, s, w // s, s).transpose(0, 1, 3, 5, 2, 4)
    return blocks.reshape(n, c * s * s, h // s, w // s)


@_space_to_depth.grad
def _space_to_depth_grad(op: OpView, dy: Tensor) -> Grads:
    return (_depth_to_space(dy, **op.attrs),)


@define("DepthToSpace")
def _depth_to_space(x: TensorSpec, *, block_size: int, data_format: str) -> TensorSpec:
    """The channels of a pixel as a block of s * s pixels, s = block_size.

    channels_last: y[b, h * s + i, w * s + j, k] = x[b, h, w, (i * s + j) * c + k], k < c;
    channels_first: y[b, k, h * s + i, w * s + j] = x[b, (k * s + i) * s + j, h, w].
    """
    n, h, w, c = _image("DepthToSpace", x, block_size, data_format)
    c = _share("DepthToSpace", x, "number of channels", c, block_size**2)
    return _result(x, data_format, (n, _times(h, block_size), _times(w, block_size), c))


@_depth_to_space.reference
def _depth_to_space_kernel(xp: Any, x: Array, *, block_size: int, data_format: str) -> Array:
    s = block_size
    if data_format == "channels_last":
        n, h, w, c = x.shape
        blocks = x.reshape(n, h, w, s, s, c // (s * s)).transpose(0, 1, 3, 2, 4, 5)
        return blocks.reshape(n, h * s, w * s, c // (s * s))
    n, c, h, w = x.shape
    blocks = x.reshape(n, c // (s * s), s, s, h, w).transpose(0, 1, 4, 2, 5, 3)
    return blocks.reshape(n, c // (s * s), h * s, w * s)


@_depth_to_space.grad
def _depth_to_space_grad(op: OpView, dy: Tensor) -> Grads:
    return (_space_to_depth(dy, **op.attrs),)


def space_to_depth(x: Tensor, block_size: int, data_format: str = "channels_last") -> Tensor:
    """Each block of block_size * block_size pixels as the channels of one pixel.

    Args:
        x: (batch, height, width, channels), or (batch, channels, height, width).
        block_size: the side of a block; height and width are multiples of it.
        data_format: "channels_last" (channels of the first pixel come first) or "channels_first"
            (pixels of the first channel come first), as in Keras.

    Raises:
        ShapeError: `x` has not four axes, or its sides are no multiples of `block_size`.
    """
    return _space_to_depth(x, block_size=block_size, data_format=data_format)


def depth_to_space(x: Tensor, block_size: int, data_format: str = "channels_last") -> Tensor:
    """The channels of each pixel as a block of pixels: the inverse of `space_to_depth`.

    Raises:
        ShapeError: `x` has not four axes, or its channels are no multiple of block_size**2.
    """
    return _depth_to_space(x, block_size=block_size, data_format=data_format)
