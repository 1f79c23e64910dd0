"""`tf.compat`: texts and bytes."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "as_bytes": ".encodings:as_bytes",
    "as_str": ".encodings:as_str",
    "as_str_any": ".encodings:as_str_any",
    "as_text": ".encodings:as_text",
}

__getattr__, __dir__ = face(__name__, NAMES)
