"""`tf.app`: a script's settings, and how it is run."""

from __future__ import annotations

from . import flags as flags
from .face import Line, face

NAMES: dict[str, Line] = {
    "run": ".flag_values:run",
}

__getattr__, __dir__ = face(__name__, NAMES)
