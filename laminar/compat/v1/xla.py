"""`tf.xla.experimental`: laminar compiles what it can without being asked."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "compile": ".compiling:compile",
    "jit_scope": ".compiling:jit_scope",
}

__getattr__, __dir__ = face(__name__, NAMES, itself={"experimental"})
