"""How Python calls a plan: as a built-in function that reads Python's structs, or through ctypes.

The built-in function (cpython_calls.py) costs a third of a call through ctypes. For that it reads
lists and arrays by the offsets of their fields, and calls NumPy's C API by the numbers of its
table. So it is used with the versions that this was tried with, after a look at some objects. With
others, and where the environment variable LAMINAR_CALLS is `ctypes`, calls go through ctypes
(ctypes_calls.py): the same kernels, and the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import logging
import os
import sys
import sysconfig

import numpy as np

from ...errors import InvalidArgumentError

_log = logging.getLogger(__name__)

# The first and the last versions that it was tried with.
_PYTHONS = (3, 11), (3, 13)
_NUMPYS = (2, 0), (2, 5)

# In the table of functions that NumPy gives to native code, whose numbers stay as they are: one
# that tells its version, the type of an array, what makes one, PyArray_NewFromDescr, and what says
# whose memory it has, PyArray_SetBaseObject.
_VERSION, _NDARRAY, _NEW, _SET_BASE = 0, 2, 94, 282
_KNOWN_VERSION = 2


@functools.cache
def reads_structs() -> bool:
    """Whether plans are called as built-in functions.

    Raises:
        InvalidArgumentError: LAMINAR_CALLS is no way to call.
    """
    reason = _why_not()
    if reason:
        _log.debug("native code is called through ctypes: %s", reason)
    return not reason


def _why_not() -> str:
    """Why calls go through ctypes; empty where they need not."""
    chosen = os.environ.get("LAMINAR_CALLS")
    if chosen:
        if chosen != "ctypes":
            raise InvalidArgumentError(
                f"LAMINAR_CALLS: expected ctypes, got {chosen!r}",
                remedy="correct the environment variable, or remove it",
            )
        return "LAMINAR_CALLS says so"
    if sys.implementation.name != "cpython" or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return "this is not CPython with its lock"
    if not _PYTHONS[0] <= sys.version_info[:2] <= _PYTHONS[1]:
        return f"it was not tried with Python {sys.version.split()[0]}"
    if not _NUMPYS[0] <= tuple(map(int, np.__version__.split(".")[:2])) <= _NUMPYS[1]:
        return f"it was not tried with NumPy {np.__version__}"
    if not _layout_is_known():
        return "this Python lays out its arrays otherwise"
    return "" if all(array_makers()) else "NumPy's C API is another one"


@functools.cache
def array_makers() -> tuple[int, int]:
    """The addresses of NumPy's functions; 0 where they are not those known here."""
    try:
        module = importlib.import_module("numpy._core._multiarray_umath")
        capsule = module._ARRAY_API
    except (ImportError, AttributeError):
        return 0, 0
    pointer_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    table = pointer_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, None)
    entries = (ctypes.c_void_p * (_SET_BASE + 1)).from_address(table or 0)
    version = ctypes.CFUNCTYPE(ctypes.c_uint)(entries[_VERSION] or 0)()
    if version >> 24 != _KNOWN_VERSION or entries[_NDARRAY] != id(np.ndarray):
        return 0, 0
    return entries[_NEW] or 0, entries[_SET_BASE] or 0


def _layout_is_known() -> bool:
    """Whether the parts of an array are where the native code looks for them."""
    for a in (np.zeros(3), np.zeros((2, 2), np.float32), np.zeros(())):
        fields = [ctypes.c_int64.from_address(id(a) + 8 * i).value for i in range(9)]
        more = [a, a]
        references = ctypes.c_int64.from_address(id(a)).value
        held = a[...]
        base = ctypes.c_int64.from_address(id(held) + 48).value
        if (
            fields[0] != references - len(more)
            or fields[1] != id(np.ndarray)
            or fields[2] != a.ctypes.data
            or fields[6] != 0
            or base != id(a)
            or ctypes.c_int32.from_address(id(a) + 64).value & 0x501 != 0x501
        ):
            return False
    items = [object(), object()]
    found = ctypes.c_int64.from_address(id(items) + 24).value
    return [ctypes.c_int64.from_address(found + 8 * i).value for i in (0, 1)] == [*map(id, items)]
