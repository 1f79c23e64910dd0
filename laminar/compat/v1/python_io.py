"""`tf.python_io`: files of records."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "TFRecordCompressionType": ".inputs:TFRecordCompressionType",
    "TFRecordOptions": ".inputs:TFRecordOptions",
    "TFRecordWriter": ".inputs:TFRecordWriter",
    "tf_record_iterator": ".inputs:tf_record_iterator",
}

__getattr__, __dir__ = face(__name__, NAMES)
