"""`tf.data`: laminar's pipelines."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "Dataset": "datasets:Dataset",
}

__getattr__, __dir__ = face(__name__, NAMES)
