"""`tf.compat`: texts and bytes."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "as_bytes": ".encodings:as_bytes",
    "as_str": ".encodings:as_str",
    "as_str_any": ".encodings:as_str_any",
    "bytes_or_text_types": ".encodings:bytes_or_text_types",
    "complex_types": ".encodings:complex_types",
    "dimension_at_index": ".framework:dimension_at_index",
    "dimension_value": ".framework:dimension_value",
    "forward_compatibility_horizon": ".encodings:forward_compatibility_horizon",
    "forward_compatible": ".encodings:forward_compatible",
    "integral_types": ".encodings:integral_types",
    "path_to_str": ".encodings:path_to_str",
    "real_types": ".encodings:real_types",
    "as_text": ".encodings:as_text",
}

__getattr__, __dir__ = face(__name__, NAMES)
