"""A native plan as a function of Python's own kind, which costs a third of a call through ctypes.

CPython calls a built-in function of one argument as `f(self, argument)`, both by address. The
driver's `call` is such a function: `self` is an array of words that say what to run, the argument a
list of arrays, whose items lie in memory as the table of addresses that a plan takes.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import driver
from .codes import addresses_of, native
from .threads import driver_code

_ONE_ARGUMENT = 8  # METH_O


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def callable_plan(run: int, plan: int) -> Callable[[Sequence[Any]], int]:
    """A function of a list of arrays that runs a plan on them, without Python's lock.

    Args:
        run: the address of `run` or `share` of the driver.
        plan: the address of the plan, which must live as long.

    Returns:
        What gives the status of the driver.
    """
    words = np.zeros(5, np.int64)
    words[driver.CALL_RUN], words[driver.CALL_PLAN] = run, plan
    words[driver.CALL_LEAVE :] = _python_functions()
    method = _method()
    # It keeps what it takes for its module, here what it is: Python reads that when it is dropped.
    found: Callable[[Sequence[Any]], int] = _maker()(ctypes.byref(method), words, method)
    return found


@functools.cache
def _python_functions() -> tuple[int, ...]:
    api = ctypes.pythonapi
    functions = api.PyEval_SaveThread, api.PyEval_RestoreThread, api.PyLong_FromLongLong
    return tuple(ctypes.cast(f, ctypes.c_void_p).value or 0 for f in functions)


@functools.cache
def _maker() -> Any:
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object
    )
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


@functools.cache
def _method() -> _Method:
    """What all these functions are."""
    (address,) = addresses_of([native(driver_code("call"))])
    return _Method(b"native_plan", address, _ONE_ARGUMENT, None)
