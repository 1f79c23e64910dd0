"""Images as the contents of files, decoded and encoded. On the host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import STRING, Array, Tensor, TensorSpec, as_dtype, float32, string, uint8, uint16
from ...io.images import FORMATS, read_image, write_image
from ..core.registry import define, no_gradient


@define("DecodeImage", dtypes=STRING)
def _decode_image(
    contents: TensorSpec, *, channels: int, dtype: str, formats: tuple[str, ...]
) -> TensorSpec:
    """The pixels of an image file, (height, width, channels)."""
    if not contents.shape.is_compatible_with(()):
        raise ShapeError(f"DecodeImage: the contents of one file are a scalar, got {contents}")
    if channels not in range(5):
        raise InvalidArgumentError(f"DecodeImage: channels must be 0 to 4, got {channels}")
    if as_dtype(dtype) not in (uint8, uint16, float32):
        raise DTypeError(f"DecodeImage: the type is uint8, uint16 or float32, got {dtype}")
    return TensorSpec([None, None, channels or None], as_dtype(dtype))


@_decode_image.kernel("cpu")
def _decode_image_kernel(
    contents: Array, *, channels: int, dtype: str, formats: tuple[str, ...]
) -> Array:
    pixels = read_image(contents.item(), channels, tuple(formats))
    wanted = as_dtype(dtype).numpy
    if pixels.dtype == wanted:
        return pixels
    if wanted.kind == "f":
        return (pixels * np.float32(1 / np.iinfo(pixels.dtype).max)).astype(wanted, copy=False)
    if wanted.itemsize == 1:
        return (pixels >> 8).astype(wanted)
    return pixels.astype(wanted) * 257  # 255 becomes 65535


_decode_image.grad(no_gradient)


def decode_image(
    contents: Tensor,
    channels: int = 0,
    dtype: Any = uint8,
    formats: Sequence[str] = FORMATS,
    name: str | None = None,
) -> Tensor:
    """The pixels of an image file: PNG, JPEG, GIF (its first picture) or BMP.

    Args:
        contents: the file, a string scalar.
        channels: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha; 0 for those of the file.
        dtype: uint8, uint16, or float32 from 0 to 1.
        formats: what the file may be.

    Returns:
        (height, width, channels).

    Raises:
        DataLossError: it is no such image, or damaged.
        UnimplementedError: the package Pillow is not installed.

    Examples:
        >>> picture = np.zeros((4, 6, 3), "uint8")
        >>> engine.decode_image(engine.encode_png(picture), channels=3).shape
        (4, 6, 3)
    """
    kinds = tuple(str(f).upper() for f in formats)
    return _decode_image(
        contents, name=name, channels=int(channels), dtype=as_dtype(dtype), formats=kinds
    )


def decode_png(
    contents: Tensor, channels: int = 0, dtype: Any = uint8, name: str | None = None
) -> Tensor:
    """The pixels of a PNG file; see `decode_image`.

    Args:
        contents: the file, a string scalar.
        channels: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha; 0 for those of the file.
        dtype: uint8, uint16, or float32 from 0 to 1.
        name: of the operation.

    Returns:
        (height, width, channels).

    Raises:
        DataLossError: it is no PNG image, or damaged.
        InvalidArgumentError: another number of channels.

    Examples:
        >>> picture = np.zeros((4, 6, 3), "uint8")
        >>> engine.decode_png(engine.encode_png(picture), channels=3).shape
        (4, 6, 3)
    """
    return decode_image(contents, channels, dtype, ("PNG",), name)


def decode_jpeg(contents: Tensor, channels: int = 0, name: str | None = None) -> Tensor:
    """The pixels of a JPEG file, uint8; see `decode_image`.

    Args:
        contents: the file, a string scalar.
        channels: 1 grey, 2 grey and alpha, 3 colour, 4 colour and alpha; 0 for those of the file.
        name: of the operation.

    Returns:
        (height, width, channels), uint8.

    Raises:
        DataLossError: it is no JPEG image, or damaged.
        InvalidArgumentError: another number of channels.

    Examples:
        >>> picture = np.zeros((4, 6, 3), "uint8")
        >>> engine.decode_jpeg(engine.encode_jpeg(picture), channels=3).shape
        (4, 6, 3)
    """
    return decode_image(contents, channels, uint8, ("JPEG",), name)


@define("EncodeImage", dtypes={"image": {uint8}})
def _encode_image(image: TensorSpec, *, format: str, quality: int) -> TensorSpec:
    """The file of an image (height, width, channels), a string; `format` is "PNG" or "JPEG"."""
    if image.shape.rank not in (3, None):
        raise ShapeError(f"EncodeImage: an image is (height, width, channels), got {image}")
    if format not in ("PNG", "JPEG"):
        raise InvalidArgumentError(f'EncodeImage: the format is "PNG" or "JPEG", got {format!r}')
    return TensorSpec((), string)


@_encode_image.kernel("cpu")
def _encode_image_kernel(image: Array, *, format: str, quality: int) -> Array:
    return np.array(write_image(image, format, quality), object)


_encode_image.grad(no_gradient)


def encode_png(image: Tensor, name: str | None = None) -> Tensor:
    """The PNG file of an image uint8 (height, width, 1 to 4 channels), a string.

    Args:
        image: (height, width, channels), uint8, with 1 to 4 channels.
        name: of the operation.

    Raises:
        ShapeError: `image` has not three axes.
        DTypeError: `image` is not uint8.
        InvalidArgumentError: more than 4 channels.

    Examples:
        >>> picture = np.zeros((4, 6, 3), "uint8")
        >>> engine.decode_png(engine.encode_png(picture), channels=3).shape
        (4, 6, 3)
    """
    return _encode_image(image, name=name, format="PNG", quality=100)


def encode_jpeg(image: Tensor, quality: int = 95, name: str | None = None) -> Tensor:
    """The JPEG file of an image uint8 (height, width, 1 or 3 channels), a string.

    Args:
        image: (height, width, channels), uint8, with 1 or 3 channels.
        quality: from 0, the smallest file, to 100.
        name: of the operation.

    Raises:
        ShapeError: `image` has not three axes.
        DTypeError: `image` is not uint8.
        InvalidArgumentError: another number of channels, or another quality.

    Examples:
        >>> picture = np.zeros((4, 6, 3), "uint8")
        >>> engine.decode_jpeg(engine.encode_jpeg(picture), channels=3).shape
        (4, 6, 3)
    """
    return _encode_image(image, name=name, format="JPEG", quality=int(quality))
