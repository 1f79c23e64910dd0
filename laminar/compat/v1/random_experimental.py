"""`tf.random.experimental`: generators that a program keeps."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f".sampling:{name}"
    for name in ("Generator", "create_rng_state", "get_global_generator", "set_global_generator")
}

__getattr__, __dir__ = face(__name__, NAMES)
