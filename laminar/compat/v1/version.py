"""`tf.version`: the version of TensorFlow whose names these are."""

from __future__ import annotations

from .face import Line, face
from .names import NAMES as TOP

NAMES: dict[str, Line] = {
    name: TOP[name]
    for name in (
        "COMPILER_VERSION",
        "GIT_VERSION",
        "GRAPH_DEF_VERSION",
        "GRAPH_DEF_VERSION_MIN_CONSUMER",
        "GRAPH_DEF_VERSION_MIN_PRODUCER",
        "VERSION",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
