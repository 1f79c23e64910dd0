"""`tf.data`: laminar's pipelines, and their iterators in graphs."""

from __future__ import annotations

import importlib
from typing import Any

from .face import Line, face

NAMES: dict[str, Line] = {
    "Dataset": ".pipelines:Dataset",
    "FixedLengthRecordDataset": ".pipeline_files:FixedLengthRecordDataset",
    "Options": ".pipeline_options:Options",
    "get_output_classes": ".pipelines:get_output_classes",
    "Iterator": ".pipelines:Iterator",
    "TFRecordDataset": ".pipelines:tf_record_dataset",
    "TextLineDataset": ".pipelines:text_line_dataset",
    "get_output_shapes": ".pipelines:get_output_shapes",
    "get_output_types": ".pipelines:get_output_types",
    "make_initializable_iterator": ".pipelines:make_initializable_iterator",
    "make_one_shot_iterator": ".pipelines:make_one_shot_iterator",
}

_get, _names = face(__name__, NAMES)


def __getattr__(name: str) -> Any:
    if name == "experimental":
        return importlib.import_module(".data_experimental", __package__)
    return _get(name)


def __dir__() -> list[str]:
    return sorted({*_names(), "experimental"})
