"""Images as the architectures were trained on them, and what their classes are called."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from laminar import config, ops
from laminar.engine.errors import DataLossError, InvalidArgumentError, MissingFileError

from ..typing import DataFormat
from .common import Published

_CLASSES = 1000
_MEAN_BGR = (103.939, 116.779, 123.68)  # of ImageNet's images, as Caffe's models took them
_MEAN_RGB, _DEVIATION_RGB = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)  # as PyTorch's take them
_INDEX = ("imagenet_class_index.json", "c2c37ea517e94d9795004a39431a14cb")
_NAMES = Published("download.tensorflow.org/data/", _INDEX, _INDEX)
_MODES = ("caffe", "tf", "torch")


def preprocess_input(x: Any, data_format: DataFormat | None = None, mode: str = "caffe") -> Any:
    """Pixels from 0 to 255 as a model was trained on them; `x` stays as it is.

    Args:
        x: (batch, height, width, 3) or without the batch, RGB; arrays give arrays, tensors tensors.
        data_format: "channels_first" for (batch, 3, height, width).
        mode: "tf": x / 127.5 - 1; "torch": (x / 255 - mean) / deviation for each colour;
            "caffe": BGR, less the mean of each colour.

    Raises:
        InvalidArgumentError: another mode or data format, or not three colours.
    """
    if mode not in _MODES:
        raise InvalidArgumentError(f"preprocess_input: mode must be one of {_MODES}, got {mode!r}")
    data_format = data_format or config.image_data_format()
    if data_format not in ("channels_first", "channels_last"):
        raise InvalidArgumentError(
            f"preprocess_input: data_format must be channels_first or channels_last, "
            f"got {data_format!r}"
        )
    axis = -1 if data_format == "channels_last" else -3
    if len(x.shape) not in (3, 4) or (mode != "tf" and x.shape[axis] != 3):
        raise InvalidArgumentError(
            f"preprocess_input: expected images of three colours in {data_format}, "
            f"got the shape {tuple(x.shape)}"
        )
    if isinstance(x, np.ndarray):
        kind = x.dtype if x.dtype.kind == "f" else np.dtype(config.floatx())
        return _preprocess(x.astype(kind), axis, mode, np.flip)
    return _preprocess(
        ops.convert_to_tensor(x) if not hasattr(x, "history") else x, axis, mode, ops.flip
    )


def _preprocess(x: Any, axis: int, mode: str, flip: Any) -> Any:
    if mode == "tf":
        return x / 127.5 - 1.0
    if mode == "torch":
        return (x / 255.0 - _along(_MEAN_RGB, axis)) / _along(_DEVIATION_RGB, axis)
    return flip(x, axis) - _along(_MEAN_BGR, axis)


def _along(values: Sequence[float], axis: int) -> Any:
    shape = (3,) if axis == -1 else (3, 1, 1)
    return np.array(values, config.floatx()).reshape(shape)


def decode_predictions(
    preds: Any, top: int = 5, class_index: str | Mapping[str, Sequence[str]] | None = None
) -> list[list[tuple[str, str, float]]]:
    """The best classes of ImageNet for each image.

    Args:
        preds: (batch, 1000), what a model with its classifier gives.
        top: how many classes.
        class_index: the names of the classes, {"0": ["n01440764", "tench"], ...}, or the path of
            such a JSON file; by default Keras's, which is downloaded once.

    Returns:
        For each image a list of (class, name, score), the best first.

    Raises:
        InvalidArgumentError: another shape.
        UnavailableError: the file with the names cannot be downloaded.
        DataLossError: the file is damaged.
    """
    scores = np.asarray(preds)
    if scores.ndim != 2 or scores.shape[1] != _CLASSES:
        raise InvalidArgumentError(
            f"decode_predictions: expected predictions of shape (batch, {_CLASSES}), "
            f"got {scores.shape}",
            remedy="it names the classes of ImageNet; a model of your own has its own names",
        )
    names = class_index if isinstance(class_index, Mapping) else _read_names(class_index)
    best = np.argsort(-scores, axis=1, kind="stable")[:, :top]
    return [
        [(*names[str(i)], float(row[i])) for i in order]  # type: ignore[misc]  # two names each
        for row, order in zip(scores, best.tolist(), strict=True)
    ]


def _read_names(path: str | None) -> Mapping[str, Sequence[str]]:
    file = Path(path) if path else _NAMES.fetch(include_top=True)
    if not file.is_file():
        raise MissingFileError(f"decode_predictions: there is no file at {str(file)!r}")
    try:
        names = json.loads(file.read_text("utf-8"))
        if not all(len(names[str(i)]) == 2 for i in range(_CLASSES)):
            raise ValueError("a class has other than two names")
    except (ValueError, KeyError, TypeError, RecursionError) as cause:
        raise DataLossError(
            f"decode_predictions: {file} does not hold the names of {_CLASSES} classes: {cause!r}"
        ) from cause
    found: Mapping[str, Sequence[str]] = names
    return found
