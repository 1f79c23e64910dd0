"""`laminar.backend`: Keras's older place for settings and a few helpers."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from laminar.engine.graph import as_dtype
from laminar.engine.ops.core.lattice import result_type as _result_type
from laminar.layers.symbolic import is_keras_tensor as is_keras_tensor

from .config import backend as backend
from .config import epsilon as epsilon
from .config import floatx as floatx
from .config import image_data_format as image_data_format
from .config import set_epsilon as set_epsilon
from .config import set_floatx as set_floatx
from .config import set_image_data_format as set_image_data_format
from .settings import standardize_dtype as standardize_dtype
from .utils import clear_session as clear_session

_lock = threading.Lock()
_uids: Counter[str] = Counter()


def get_uid(prefix: str = "") -> int:
    """The next number of a count that each prefix has for itself, from 1.

    Examples:
        >>> first = laminar.backend.get_uid("mine")
        >>> laminar.backend.get_uid("mine") - first
        1
    """
    with _lock:
        _uids[prefix] += 1
        return _uids[prefix]


def is_float_dtype(dtype: Any) -> bool:
    """Whether an element type is a floating one; None stands for the default.

    Examples:
        >>> laminar.backend.is_float_dtype("bfloat16"), laminar.backend.is_float_dtype("int8")
        (True, False)
    """
    return dtype is None or as_dtype(dtype).is_floating


def is_int_dtype(dtype: Any) -> bool:
    """Whether an element type is an integer one; None stands for the default.

    Examples:
        >>> laminar.backend.is_int_dtype("uint8"), laminar.backend.is_int_dtype("float32")
        (True, False)
    """
    return dtype is not None and as_dtype(dtype).is_integer


def result_type(*dtypes: Any) -> str:
    """The element type of an expression of these types; None and nothing are the default float.

    Examples:
        >>> laminar.backend.result_type("int32", "float16")
        'float16'
    """
    default = floatx()
    return str(_result_type(*(default if d is None else d for d in dtypes or (None,))))
