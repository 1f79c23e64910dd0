"""A native plan as a function of Python's own kind, which costs a third of a call through ctypes.

CPython calls a built-in function of one argument as `f(self, argument)`, both by address. `call` is
such a function (cpython_code.py): `self` is an array of words that say what to run, the argument a
list of arrays, whose items lie in memory as the table of addresses that a plan takes. It looks
whether the arrays have the shapes that the plan is for, and makes the arrays of results. That, and
tensors of them, would take longer in Python than a small plan. Where Python's structs are not known
(call_path.py), ctypes_calls.py does the same.

What it buys, against LAMINAR_CALLS=ctypes (`python -m benchmarks`): a small step of `fit` takes
12.7 us instead of 36.6, `predict` of a row 32 instead of 54, a run of a session 11 instead of 18.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import EagerTensor, set_tensor_maker
from ..codegen import cpython_code as code
from ..target import host
from ..target.code_cache import address_of
from .call_path import array_makers, reads_structs
from .ctypes_calls import CtypesPlan
from .heap import Form, is_large

_BYTE = np.dtype(np.uint8)
_ONE_ARGUMENT, _SOME_ARGUMENTS = 8, 0x80  # METH_O, METH_FASTCALL


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    )


def callable_plan(
    run: int,
    plan: int,
    num_arrays: int,
    given: Sequence[tuple[int, ...]] = (),
    results: Sequence[Form] = (),
) -> Callable[[list[Any]], Any]:
    """A function of a list of arrays that runs a plan on them, without Python's lock.

    Args:
        run: the address of `run` or `share` of the driver.
        plan: the address of the plan, which must live as long.
        num_arrays: that the plan takes.
        given: the shapes of the first ones.
        results: the forms of the last ones, whose element types must live as long; the list may
            have None in their places.

    Returns:
        What gives the list of results, or the status of the driver where it is not DONE, or
        OTHER_SHAPES.
    """
    if not reads_structs():
        return CtypesPlan(run, plan, num_arrays, given, results)
    ranks = sum(map(len, given)) + sum(len(shape) for shape, _ in results)
    given_forms, result_forms = code.CALL_WORDS, code.CALL_WORDS + code.GIVEN_WORDS * len(given)
    sizes = result_forms + code.RESULT_WORDS * len(results)
    words = np.zeros(sizes + ranks, np.int64)
    start: int = words.ctypes.data
    words[code.CALL_RUN], words[code.CALL_PLAN] = run, plan
    words[code.CALL_LEAVE : code.CALL_REFER + 1] = *_python_functions(), *array_makers()
    words[code.CALL_ARRAY_TYPE], words[code.CALL_BYTE] = id(np.ndarray), id(_BYTE)
    words[code.CALL_NONE] = id(None)
    words[code.CALL_GIVEN], words[code.CALL_RESULTS] = len(given), len(results)
    words[code.CALL_FIRST] = num_arrays - len(results)
    words[code.CALL_GIVEN_FORMS], words[code.CALL_RESULT_FORMS] = (
        start + 8 * given_forms,
        start + 8 * result_forms,
    )
    for i, shape in enumerate(given):
        words[given_forms + code.GIVEN_WORDS * i :][:2] = len(shape), start + 8 * sizes
        words[sizes : sizes + len(shape)] = shape
        sizes += len(shape)
    for i, (shape, dtype) in enumerate(results):
        memory = math.prod(shape) * dtype.itemsize + host.LINE if is_large((shape, dtype)) else 0
        form = id(dtype), len(shape), start + 8 * sizes, memory
        words[result_forms + code.RESULT_WORDS * i :][: code.RESULT_WORDS] = form
        words[sizes : sizes + len(shape)] = shape
        sizes += len(shape)
    found: Callable[[list[Any]], Any] = _built_in("call", _ONE_ARGUMENT, words)
    return found


@functools.cache
def make_tensors_natively() -> None:
    """Have tensors of results made by native code, where their parts are found."""
    value, dtype, shape = object(), object(), object()
    tensor = EagerTensor(value, dtype)  # type: ignore[arg-type]  # anything that can be found
    tensor._shape = shape  # type: ignore[assignment]  # so too
    size = EagerTensor.__basicsize__ // 8
    fields = list((ctypes.c_int64 * size).from_address(id(tensor)))
    if EagerTensor.__dictoffset__ or any(fields.count(id(x)) != 1 for x in (value, dtype, shape)):
        return
    words = np.zeros(code.TENSORS_WORDS, np.int64)
    words[code.TENSORS_NEW] = _address(ctypes.pythonapi.PyType_GenericAlloc)
    words[code.TENSORS_KEEP] = _address(ctypes.pythonapi.Py_IncRef)
    words[code.TENSORS_NONE], words[code.TENSORS_TYPE] = id(None), id(EagerTensor)
    for place, part in (
        (code.TENSORS_VALUE, value),
        (code.TENSORS_DTYPE, dtype),
        (code.TENSORS_SHAPE, shape),
    ):
        words[place] = 8 * fields.index(id(part))
    set_tensor_maker(_built_in("tensors", _SOME_ARGUMENTS, words))


@functools.cache
def _python_functions() -> tuple[int, ...]:
    api = ctypes.pythonapi
    functions = (
        api.PyEval_SaveThread,
        api.PyEval_RestoreThread,
        api.PyLong_FromLongLong,
        api.PyList_GetSlice,
        api.Py_IncRef,
        api.Py_DecRef,
    )
    return tuple(map(_address, functions))


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _built_in(symbol: str, flags: int, words: np.ndarray[Any, Any]) -> Any:
    """A built-in function of Python that reads these words."""
    method = _method(symbol, flags)
    # It keeps what it takes for its module, here what it is: Python reads that when it is dropped.
    return _maker()(ctypes.byref(method), words, method)


@functools.cache
def _maker() -> Any:
    kind = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.POINTER(_Method), ctypes.py_object, ctypes.py_object
    )
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))


@functools.cache
def _method(symbol: str, flags: int) -> _Method:
    """What the built-in functions of a kind are."""
    return _Method(b"native", address_of(code.code(symbol)), flags, None)
