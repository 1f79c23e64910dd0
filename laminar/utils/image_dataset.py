"""image_dataset_from_directory: images in folders, one folder for each class."""

from __future__ import annotations

import operator
import os
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from laminar import config, ops
from laminar.engine.errors import InvalidArgumentError

from ..typing import DataFormat
from .directories import Wanted, datasets
from .images import img_to_array, load_img

_WHO = "image_dataset_from_directory"
_ENDINGS = (".bmp", ".gif", ".jpeg", ".jpg", ".png")
_INTERPOLATIONS = ("bilinear", "nearest", "bicubic", "lanczos3", "lanczos5")
_COLORS = ("grayscale", "rgb", "rgba")


def image_dataset_from_directory(
    directory: str | os.PathLike[str],
    labels: Any = "inferred",
    label_mode: str | None = "int",
    class_names: Sequence[str] | None = None,
    color_mode: str = "rgb",
    batch_size: int | None = 32,
    image_size: tuple[int, int] = (256, 256),
    shuffle: bool = True,
    seed: int | None = None,
    validation_split: float | None = None,
    subset: str | None = None,
    interpolation: str = "bilinear",
    follow_links: bool = False,
    crop_to_aspect_ratio: bool = False,
    pad_to_aspect_ratio: bool = False,
    data_format: DataFormat | None = None,
    format: str = "tf",
    verbose: bool = True,
) -> Any:
    """A Dataset of the images (BMP, GIF, JPEG, PNG) in a folder, read and resized in threads.

    Args:
        directory: with a folder for each class.
        labels: "inferred" from the folders, None, or a list of numbers in the order of the files.
        label_mode: "int" (int32 numbers), "categorical" (one-hot rows), "binary" (a float column)
            or None for no labels.
        class_names: the classes in an order of one's own; by default they are sorted.
        color_mode: "grayscale", "rgb" or "rgba": 1, 3 or 4 channels.
        batch_size: images in a batch; None for single images.
        image_size: (height, width) that images are resized to.
        shuffle: whether each pass has another random order.
        seed: of the order and the split.
        validation_split: fraction of the images to keep for validation.
        subset: "training", "validation", or "both" for a list of the two.
        interpolation: of resizing, as in `ops.image.resize`.
        follow_links: whether links to folders are followed.
        crop_to_aspect_ratio: cut out the middle instead of distorting.
        pad_to_aspect_ratio: fill up with black instead of distorting.
        data_format: "channels_last" or "channels_first".
        format: accepted for Keras's sake: the result is a laminar Dataset.
        verbose: whether to say how many files there are.

    Returns:
        A Dataset of float32 images with values 0 to 255, with targets unless there are no labels;
        with `class_names` and `file_paths`.

    Raises:
        MissingFileError: no folder, or no images in it.
        InvalidArgumentError: arguments that do not go together.
        UnimplementedError: Pillow is not installed.

    Examples:
        >>> import pathlib
        >>> for name in ("cats/1.png", "dogs/2.png"):
        ...     pathlib.Path(name).parent.mkdir()
        ...     laminar.utils.save_img(name, np.zeros((8, 8, 3)))
        >>> data = laminar.utils.image_dataset_from_directory(".", image_size=(4, 4), verbose=False)
        >>> images, labels = next(iter(data))
        >>> images.shape, sorted(labels.numpy())
        ((2, 4, 4, 3), [np.int32(0), np.int32(1)])
    """
    if color_mode not in _COLORS:
        raise InvalidArgumentError(
            f"{_WHO}: color_mode must be 'grayscale', 'rgb' or 'rgba', got {color_mode!r}"
        )
    if crop_to_aspect_ratio and pad_to_aspect_ratio:
        raise InvalidArgumentError(
            f"{_WHO}: crop_to_aspect_ratio and pad_to_aspect_ratio exclude one another"
        )
    if interpolation not in _INTERPOLATIONS:
        raise InvalidArgumentError(
            f"{_WHO}: interpolation must be one of {', '.join(_INTERPOLATIONS)}, "
            f"got {interpolation!r}"
        )
    try:
        height, width = (operator.index(size) for size in image_size)
    except (TypeError, ValueError):
        height = width = 0
    if height < 1 or width < 1:
        raise InvalidArgumentError(
            f"{_WHO}: image_size must be (height, width) in pixels, got {image_size!r}",
            remedy="image_size=(256, 256)",
        )
    load = partial(
        _load,
        color_mode=color_mode,
        size=(height, width),
        data_format=data_format or config.image_data_format(),
        options={
            "interpolation": interpolation,
            "crop_to_aspect_ratio": crop_to_aspect_ratio,
            "pad_to_aspect_ratio": pad_to_aspect_ratio,
        },
    )
    return datasets(
        _WHO,
        directory,
        _ENDINGS,
        Wanted(
            labels,
            label_mode,
            class_names,
            batch_size,
            shuffle,
            seed,
            validation_split,
            subset,
            follow_links,
            verbose,
        ),
        load,
    )


def _load(
    path: bytes,
    color_mode: str,
    size: tuple[int, int],
    data_format: DataFormat,
    options: dict[str, Any],
) -> Any:
    image = load_img(os.fsdecode(path), color_mode)
    array = img_to_array(image, data_format=data_format, dtype="float32")
    if (image.height, image.width) == size:
        return np.ascontiguousarray(array)
    return ops.image.resize(array, size, data_format=data_format, **options)
