"""`tf.lookup`: tables from keys to values."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "KeyValueTensorInitializer": ".tables:KeyValueTensorInitializer",
    "StaticHashTable": ".tables:StaticHashTable",
    "TextFileIndex": ".tables:TextFileIndex",
    "TextFileInitializer": ".tables:TextFileInitializer",
}

__getattr__, __dir__ = face(__name__, NAMES)
