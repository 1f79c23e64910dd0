"""Image files, through Pillow, which is optional: this module owns it and loads it on first use."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from ..errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    ResourceExhaustedError,
    UnimplementedError,
)

_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
FORMATS = ("PNG", "JPEG", "GIF", "BMP")
# An image may be a small file that asks for much memory; this many pixels is 1.5 GB of colour.
MAX_PIXELS = 1 << 29


def pillow() -> Any:
    """The package PIL's Image module; UnimplementedError when it is not installed."""
    try:
        from PIL import Image  # optional, and slow to load
    except ImportError:
        raise UnimplementedError(
            "reading and writing images needs the package Pillow", remedy="pip install pillow"
        ) from None
    return Image


def read_image(
    contents: bytes, channels: int = 0, formats: tuple[str, ...] = FORMATS
) -> np.ndarray[Any, Any]:
    """The pixels of an image file, uint8[height, width, channels]; uint16 where it has 16 bits.

    Args:
        contents: the file.
        channels: 1 grey, 2 with alpha, 3 colour, 4 with alpha; 0 for those of the file.
        formats: what the file may be.

    Raises:
        DataLossError: it is no such image, or damaged.
        ResourceExhaustedError: it has more than MAX_PIXELS pixels.
    """
    if channels not in (0, *_MODES):
        raise InvalidArgumentError(f"channels must be 0, 1, 2, 3 or 4, got {channels}")
    with _opened(contents, formats) as image:
        width, height = image.size
        if width * height > MAX_PIXELS:
            raise ResourceExhaustedError(
                f"the image has {width} x {height} pixels, at most {MAX_PIXELS} are read"
            )
        if image.mode.startswith("I"):
            return _deep(image, channels)
        if channels:
            mode = _MODES[channels]
        elif image.mode in ("P", "PA", "CMYK", "YCbCr", "LAB", "HSV"):
            mode = "RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB"
        else:
            mode = "L" if image.mode == "1" else image.mode
        array = np.array(image if image.mode == mode else image.convert(mode))
    return array if array.ndim == 3 else array[:, :, None]


@contextmanager
def _opened(contents: bytes, formats: tuple[str, ...]) -> Iterator[Any]:
    """A block with an image of Pillow's, whose errors, of any kind on damaged files, are ours."""
    image_module = pillow()
    try:
        with image_module.open(io.BytesIO(contents), formats=formats) as image:
            yield image
    except LaminarError:
        raise
    except image_module.DecompressionBombError as cause:
        raise ResourceExhaustedError(f"the image is too large: {cause}") from cause
    except Exception as cause:
        raise DataLossError(
            f"the {len(contents)} bytes are not a readable {' or '.join(formats)} image: {cause}"
        ) from cause


# How files of these formats begin.
_BEGINNINGS = {
    "JPEG": (b"\xff\xd8\xff",),
    "PNG": (b"\x89PNG\r\n\x1a\n",),
    "GIF": (b"GIF87a", b"GIF89a"),
    "BMP": (b"BM",),
}


def is_image(contents: bytes, format: str) -> bool:
    """Whether the bytes begin as a file of the format ("JPEG", "PNG", "GIF" or "BMP") does."""
    return contents.startswith(_BEGINNINGS[format])


def image_size(contents: bytes, formats: tuple[str, ...] = FORMATS) -> tuple[int, int, int]:
    """(height, width, channels) of an image file, of which only the head is read.

    Raises:
        DataLossError: it is no such image.
        ResourceExhaustedError: it has more pixels than Pillow reads.
    """
    with _opened(contents, formats) as image:
        width, height = image.size
        return height, width, len(image.getbands())


def read_frames(contents: bytes) -> np.ndarray[Any, Any]:
    """All pictures of a GIF file, uint8[pictures, height, width, 3].

    Raises:
        DataLossError: it is no such file, or damaged.
        ResourceExhaustedError: it has more than MAX_PIXELS pixels in all.
    """
    with _opened(contents, ("GIF",)) as image:
        width, height = image.size
        count = getattr(image, "n_frames", 1)
        if width * height * count > MAX_PIXELS:
            raise ResourceExhaustedError(
                f"the pictures have {count} x {width} x {height} pixels, at most {MAX_PIXELS} "
                f"are read"
            )
        frames = []
        for number in range(count):
            image.seek(number)
            frames.append(np.array(image.convert("RGB")))
    return np.stack(frames)


def _deep(image: Any, channels: int) -> np.ndarray[Any, Any]:
    """Grey with 16 bits, the only deep kind that Pillow keeps."""
    grey = np.array(image).astype(np.uint16)[:, :, None]
    if channels in (0, 1):
        return grey
    colour = np.repeat(grey, 1 if channels == 2 else 3, axis=2)
    if channels == 3:
        return colour
    return np.concatenate([colour, np.full_like(grey, 0xFFFF)], axis=2)


def write_image(array: np.ndarray[Any, Any], format: str, quality: int = 95) -> bytes:
    """An image file of pixels uint8[height, width, channels].

    Args:
        array: 1 to 4 channels; JPEG takes 1 or 3.
        format: "PNG" or "JPEG".
        quality: of a JPEG, 0 to 100.

    Raises:
        InvalidArgumentError: the array is no such image.
    """
    allowed = (1, 3) if format == "JPEG" else (1, 2, 3, 4)
    if array.dtype != np.uint8 or array.ndim != 3 or array.shape[2] not in allowed:
        raise InvalidArgumentError(
            f"{format}: an image is uint8[height, width, channels] with {allowed} channels, "
            f"got {array.dtype}{list(array.shape)}"
        )
    if not array.size:
        raise InvalidArgumentError(f"{format}: the image has no pixels")
    if not 0 <= quality <= 100:
        raise InvalidArgumentError(f"{format}: the quality is from 0 to 100, got {quality}")
    plane = array[:, :, 0] if array.shape[2] == 1 else array
    out = io.BytesIO()
    options = {"quality": quality} if format == "JPEG" else {}
    pillow().fromarray(np.ascontiguousarray(plane)).save(out, format, **options)
    return out.getvalue()
