"""`tf.bitwise`."""

from __future__ import annotations

from .face import BINARY, Line, face

NAMES: dict[str, Line] = {
    "bitwise_and": (BINARY, "op:BitwiseAnd"),
    "bitwise_or": (BINARY, "op:BitwiseOr"),
    "bitwise_xor": (BINARY, "op:BitwiseXor"),
    "invert": ("x, name=None", "op:BitwiseNot"),
    "left_shift": (BINARY, "op:LeftShift"),
    "right_shift": (BINARY, "op:RightShift"),
}

__getattr__, __dir__ = face(__name__, NAMES)
