"""`tf.dtypes`: element types and casts."""

from __future__ import annotations

from .face import Line, face
from .math import NAMES as MATH
from .names import NAMES as TOP

_TYPES = (
    "DType as_dtype as_string bfloat16 bool complex128 complex64 double float16 float32 float64 "
    "half int16 int32 int64 int8 resource string uint16 uint32 uint64 uint8"
)
NAMES: dict[str, Line] = {
    **{name: TOP[name] for name in _TYPES.split()},
    **{name: MATH[name] for name in ("cast", "complex", "saturate_cast") if name in MATH},
    **{name: TOP[name] for name in ("cast", "complex", "saturate_cast") if name in TOP},
}

__getattr__, __dir__ = face(__name__, NAMES)
