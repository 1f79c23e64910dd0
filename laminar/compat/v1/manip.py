"""`tf.manip`: arrays moved."""

from __future__ import annotations

from .array import NAMES as ARRAY
from .face import Line, face

NAMES: dict[str, Line] = {
    "batch_to_space_nd": ARRAY["batch_to_space_nd"],
    "gather_nd": ARRAY["gather_nd"],
    "reshape": ARRAY["reshape"],
    "reverse": ARRAY["reverse"],
    "roll": ARRAY["roll"],
    "scatter_nd": ARRAY["scatter_nd"],
    "space_to_batch_nd": ARRAY["space_to_batch_nd"],
    "tile": ARRAY["tile"],
}

__getattr__, __dir__ = face(__name__, NAMES)
