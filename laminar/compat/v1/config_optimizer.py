"""`tf.config.optimizer`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    f"{verb}_{what}": f".settings:{verb}_{what}"
    for verb in ("get", "set")
    for what in ("experimental_options", "jit")
}

__getattr__, __dir__ = face(__name__, NAMES)
