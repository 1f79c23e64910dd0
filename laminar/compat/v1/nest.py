"""`tf.nest`: structures of lists, tuples and dictionaries."""

from __future__ import annotations

from .face import Line, face

NAMES: dict[str, Line] = {
    name: f"tree:{name}"
    for name in (
        "assert_same_structure",
        "flatten",
        "is_nested",
        "map_structure",
        "pack_sequence_as",
    )
}

__getattr__, __dir__ = face(__name__, NAMES)
