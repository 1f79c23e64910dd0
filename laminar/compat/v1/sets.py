"""`tf.sets`: sets of values along the last axes of arrays."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    "difference": ".set_operations:set_difference",
    "intersection": ".set_operations:set_intersection",
    "set_difference": ".set_operations:set_difference",
    "set_intersection": ".set_operations:set_intersection",
    "set_size": ".set_operations:set_size",
    "set_union": ".set_operations:set_union",
    "size": ".set_operations:set_size",
    "union": ".set_operations:set_union",
}

__getattr__, __dir__ = face(__name__, NAMES)
