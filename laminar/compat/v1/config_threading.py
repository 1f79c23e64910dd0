"""`tf.config.threading`."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    f"{verb}_{kind}_op_parallelism_threads": f".settings:{verb}_{kind}_op_parallelism_threads"
    for verb in ("get", "set")
    for kind in ("inter", "intra")
}

__getattr__, __dir__ = face(__name__, NAMES)
