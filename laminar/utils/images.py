"""Images in files, as objects of Pillow, and as arrays."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np

from laminar import config
from laminar.engine.closing import open_regular
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    ShapeError,
)
from laminar.engine.io.images import pillow
from laminar.engine.source import warn

from ..typing import DataFormat

_INTERPOLATIONS = ("nearest", "bilinear", "bicubic", "hamming", "box", "lanczos")
_MODES = {"grayscale": "L", "rgb": "RGB", "rgba": "RGBA"}


def load_img(
    path: Any,
    color_mode: str = "rgb",
    target_size: tuple[int, int] | None = None,
    interpolation: str = "nearest",
    keep_aspect_ratio: bool = False,
) -> Any:
    """The image in a file, as an object of Pillow.

    Args:
        path: of the file, or an open binary file.
        color_mode: "grayscale", "rgb" or "rgba".
        target_size: (height, width) to resize it to.
        interpolation: "nearest", "bilinear", "bicubic", "lanczos", "box" or "hamming".
        keep_aspect_ratio: whether the middle of the image is cut out first, of the shape of
            `target_size`, so that it is not distorted.

    Returns:
        an image of Pillow, which `img_to_array` makes an array.

    Raises:
        DataLossError: the file is no image, or a damaged one.
        InvalidArgumentError: another mode or interpolation.
        MissingFileError: there is no such file.
        UnimplementedError: Pillow is not installed.

    Examples:
        >>> laminar.utils.save_img("black.png", np.zeros((4, 6, 3)))
        >>> laminar.utils.load_img("black.png", target_size=(8, 8)).size
        (8, 8)
    """
    if color_mode not in _MODES:
        raise InvalidArgumentError(
            f"load_img: color_mode must be 'grayscale', 'rgb' or 'rgba', got {color_mode!r}"
        )
    how = _resampling(interpolation) if target_size is not None else None
    image = _with_mode(_opened(path), color_mode)
    if target_size is None:
        return image
    height, width = int(target_size[0]), int(target_size[1])
    if image.size == (width, height):
        return image
    box = _middle(image.height, image.width, height, width) if keep_aspect_ratio else None
    return image.resize((width, height), how, box=box)


def _resampling(interpolation: str) -> Any:
    if interpolation not in _INTERPOLATIONS:
        raise InvalidArgumentError(
            f"load_img: interpolation must be one of {', '.join(_INTERPOLATIONS)}, "
            f"got {interpolation!r}"
        )
    return getattr(pillow().Resampling, interpolation.upper())


def _opened(path: Any) -> Any:
    module = pillow()
    if isinstance(path, io.BytesIO):
        file, name = path, "the file"
    elif isinstance(path, str | bytes | os.PathLike):
        name = repr(os.fspath(path))
        try:
            with open_regular(os.fsdecode(path)) as source:
                file = io.BytesIO(source.read())
        except (FileNotFoundError, NotADirectoryError):
            raise MissingFileError(f"load_img: there is no file {name}") from None
    else:
        raise InvalidArgumentError(
            f"load_img: path must be a path or an open binary file, got {type(path).__name__}"
        )
    try:
        image = module.open(file)
        image.load()  # otherwise a file that is cut short is noticed later, without its name
    except Exception as cause:  # Pillow's readers raise errors of any kind on damaged files
        raise DataLossError(
            f"load_img: {name} is not an image that can be read: {cause}",
            remedy="take the file from its source again, or leave it out",
        ) from cause
    return image


def _with_mode(image: Any, color_mode: str) -> Any:
    if color_mode == "grayscale" and image.mode in ("L", "I;16", "I"):
        return image  # also with more than 8 bits
    mode = _MODES[color_mode]
    return image if image.mode == mode else image.convert(mode)


def _middle(height: int, width: int, target_height: int, target_width: int) -> Any:
    """The largest box in the middle of an image that has the shape of the target."""
    crop_height = min(height, width * target_height // target_width)
    crop_width = min(width, height * target_width // target_height)
    top, left = (height - crop_height) // 2, (width - crop_width) // 2
    return (left, top, left + crop_width, top + crop_height)


def img_to_array(img: Any, data_format: DataFormat | None = None, dtype: Any = None) -> Any:
    """An image of Pillow as an array (height, width, channels), or with the channels first.

    Args:
        img: the image.
        data_format: "channels_last", "channels_first", or None for the default.
        dtype: of the array, by default the default float type.

    Returns:
        (height, width, channels), with 1 channel for a gray image, or (channels, height, width).

    Raises:
        ShapeError: the image has other than 2 or 3 axes.

    Examples:
        >>> image = laminar.utils.array_to_img(np.zeros((4, 6, 3)))
        >>> laminar.utils.img_to_array(image).shape
        (4, 6, 3)
    """
    is_first = _is_channels_first("img_to_array", data_format)
    array = np.asarray(img, dtype=dtype or config.floatx())
    if array.ndim == 2:
        array = array[..., None]
    elif array.ndim != 3:
        raise ShapeError(
            f"img_to_array: expected an image of 2 or 3 axes, got the shape {array.shape}"
        )
    return array.transpose(2, 0, 1) if is_first else array


def _is_channels_first(who: str, data_format: DataFormat | None) -> bool:
    found = config.image_data_format() if data_format is None else data_format
    if found not in ("channels_first", "channels_last"):
        raise InvalidArgumentError(
            f"{who}: data_format must be 'channels_last' or 'channels_first', got {found!r}"
        )
    return found == "channels_first"


def array_to_img(
    x: Any, data_format: DataFormat | None = None, scale: bool = True, dtype: Any = None
) -> Any:
    """An array (height, width, channels) as an image of Pillow.

    Args:
        x: 1 (gray), 3 or 4 channels.
        data_format: "channels_last", "channels_first", or None for the default.
        scale: whether the smallest value becomes 0 and the largest 255.
        dtype: to compute in, by default the default float type.

    Returns:
        an image of Pillow of mode "L", "RGB" or "RGBA"; of mode "I" for gray values above 255.

    Raises:
        ShapeError: another number of axes or channels.

    Examples:
        >>> laminar.utils.array_to_img(np.zeros((4, 6, 3))).size
        (6, 4)
    """
    is_first = _is_channels_first("array_to_img", data_format)
    array = np.asarray(x, dtype=dtype or config.floatx())
    if array.ndim != 3:
        raise ShapeError(f"array_to_img: expected one image of 3 axes, got the shape {array.shape}")
    if is_first:
        array = array.transpose(1, 2, 0)
    if scale:
        array = array - array.min()
        largest = array.max()
        if largest:
            array = array / largest
        array = array * 255
    make = pillow().fromarray
    channels = array.shape[-1]
    if channels == 1:
        gray = array[..., 0]
        return make(gray.astype("int32" if gray.max() > 255 else "uint8"))
    if channels not in (3, 4):
        raise ShapeError(f"array_to_img: expected 1, 3 or 4 channels, got {channels}")
    return make(np.ascontiguousarray(array.astype("uint8")))


def save_img(
    path: Any,
    x: Any,
    data_format: DataFormat | None = None,
    file_format: str | None = None,
    scale: bool = True,
    **kwargs: Any,
) -> None:
    """Write an array as an image file.

    Args:
        path: of the file, or an open binary file.
        x: as `array_to_img` takes it; so `data_format` and `scale`.
        file_format: as "png"; by default what the ending of `path` says.
        **kwargs: for Pillow's `Image.save`.

    Examples:
        >>> laminar.utils.save_img("black.png", np.zeros((4, 6, 3)))
        >>> laminar.utils.load_img("black.png").size
        (6, 4)
    """
    image = array_to_img(x, data_format=data_format, scale=scale)
    ending = file_format or (os.path.splitext(path)[1][1:] if isinstance(path, str) else "")
    if image.mode == "RGBA" and ending.lower() in ("jpg", "jpeg"):
        warn("save_img: JPEG files have no transparency; it is left out")
        image = image.convert("RGB")
    name = "jpeg" if ending.lower() == "jpg" else file_format  # Pillow's name of it
    image.save(path, format=name, **kwargs)


def smart_resize(
    x: Any,
    size: tuple[int, int],
    interpolation: str = "bilinear",
    data_format: DataFormat = "channels_last",
) -> Any:
    """Images resized without being distorted: the middle of the shape of `size` is cut out first.

    Args:
        x: (height, width, channels) or a batch of such.
        size: (height, width) of the result.
        interpolation: as in `ops.image.resize`.
        data_format: "channels_last" or "channels_first".

    Returns:
        A NumPy array for one, else a tensor; float32.
    """
    from laminar import ops

    if len(size) != 2:
        raise InvalidArgumentError(f"smart_resize: size must be (height, width), got {size!r}")
    rank = len(x.shape)
    if rank not in (3, 4):
        raise ShapeError(f"smart_resize: expected 3 or 4 axes, got the shape {tuple(x.shape)}")
    is_first = _is_channels_first("smart_resize", data_format)
    height_axis = rank - 2 if is_first else rank - 3
    left, top, right, bottom = _middle(x.shape[height_axis], x.shape[height_axis + 1], *size)
    box: list[Any] = [slice(None)] * rank
    box[height_axis], box[height_axis + 1] = slice(top, bottom), slice(left, right)
    cut = ops.cast(ops.convert_to_tensor(x)[tuple(box)], config.floatx())
    found = ops.image.resize(cut, size, interpolation=interpolation, data_format=data_format)
    return found.numpy() if isinstance(x, np.ndarray) else found
