"""`tf.summary`: what TensorBoard shows."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "FileWriter": "engine.summary:FileWriter",
    "FileWriterCache": "engine.summary:FileWriterCache",
    "Summary": ".summary_messages:Summary",
    "audio": (
        "name, tensor, sample_rate, max_outputs=3, collections=None, family=None",
        "engine.summary:audio(name, tensor, sample_rate, max_outputs=max_outputs, "
        "collections=collections, family=family)",
    ),
    "histogram": (
        "name, values, collections=None, family=None",
        "engine.summary:histogram(name, values, collections=collections, family=family)",
    ),
    "image": (
        "name, tensor, max_outputs=3, collections=None, family=None",
        "engine.summary:image(name, tensor, max_outputs=max_outputs, collections=collections, "
        "family=family)",
    ),
    "merge": (
        "inputs, collections=None, name=None",
        "engine.summary:merge(inputs, collections=collections, name=name)",
    ),
    "merge_all": "engine.summary:merge_all",
    "scalar": (
        "name, tensor, collections=None, family=None",
        "engine.summary:scalar(name, tensor, collections=collections, family=family)",
    ),
    "text": (
        "name, tensor, collections=None",
        "engine.summary:text(name, tensor, collections=collections)",
    ),
}

__getattr__, __dir__ = face(__name__, NAMES)
