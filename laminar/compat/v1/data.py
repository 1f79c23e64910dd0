"""`tf.data`: laminar's pipelines, and their iterators in graphs."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "Dataset": ".pipelines:Dataset",
    "Iterator": ".pipelines:Iterator",
    "TFRecordDataset": ".pipelines:tf_record_dataset",
    "TextLineDataset": ".pipelines:text_line_dataset",
    "get_output_shapes": ".pipelines:get_output_shapes",
    "get_output_types": ".pipelines:get_output_types",
    "make_initializable_iterator": ".pipelines:make_initializable_iterator",
    "make_one_shot_iterator": ".pipelines:make_one_shot_iterator",
}

__getattr__, __dir__ = face(__name__, NAMES)
