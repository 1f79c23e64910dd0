"""A native plan as a function that calls it through ctypes, and knows nothing of Python's structs.

The driver reads of each array what it asks for where CPython would have it (abi.py); here that
are words which this module writes, of what Python says of the array.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..codegen import driver_words
from ..codegen.abi import DATA, FLAGS, REFERENCES, TYPE
from ..codegen.cpython_code import OTHER_SHAPES
from . import heap

_RUN = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)  # without Python's lock
_WORDS = FLAGS // 8 + 1  # of an array
_PLAIN, _WRITEABLE = 0x101, 0x400  # flags: contiguous and aligned
_SHARED = 1 << 40  # more references than anything that is written in place may have


class CtypesPlan:
    """What `callable_plan` gives, and takes."""

    def __init__(
        self,
        run: int,
        plan: int,
        num_arrays: int,
        given: Sequence[tuple[int, ...]],
        results: Sequence[heap.Form],
    ) -> None:
        self._run = _RUN(run)
        self._plan = plan
        self._status = ctypes.c_int64.from_address(plan + 8 * driver_words.STATUS)
        self._given = list(given)
        self._results = list(results)
        self._first = num_arrays - len(results)
        self._arrays = np.zeros((num_arrays, _WORDS), np.int64)
        start: int = self._arrays.ctypes.data
        self._table = start + 8 * _WORDS * np.arange(num_arrays)
        self._address: int = self._table.ctypes.data

    def __call__(self, objects: list[Any]) -> Any:
        """The list of results; a number where the plan has not been run to its end."""
        for x, shape in zip(objects, self._given, strict=False):
            if type(x) is np.ndarray and x.shape != shape:
                return OTHER_SHAPES
        for i, form in enumerate(self._results, self._first):
            if objects[i] is None:
                (objects[i],) = heap.made([form])
        for i, words in enumerate(self._arrays):
            _describe(objects, i, words)
        self._run(self._plan, self._address)
        status = self._status.value
        return objects[self._first :] if status == driver_words.DONE else status


def _describe(objects: list[Any], i: int, words: np.ndarray[Any, Any]) -> None:
    """Write what the driver reads of an item."""
    references = _references(objects, i) - _HELD_ONCE + 1  # before this has another one
    x = objects[i]
    is_array = type(x) is np.ndarray
    words[TYPE // 8] = id(np.ndarray) if is_array else 0
    if not is_array:
        return
    flags, base = x.flags, x.base
    is_lent = base is not None and type(base) is not np.ndarray
    del base
    if is_lent or (x.base is not None and _references_of_base(x) != _VIEWED_ONCE):
        references = _SHARED
    words[REFERENCES // 8] = references
    words[DATA // 8] = x.ctypes.data
    plain = _PLAIN if flags.c_contiguous and flags.aligned else 0
    words[FLAGS // 8] = plain | (_WRITEABLE if flags.writeable else 0)


def _references(objects: list[Any], i: int) -> int:
    return sys.getrefcount(objects[i])


def _references_of_base(x: np.ndarray[Any, Any]) -> int:
    return sys.getrefcount(x.base)


# What they give for an array that a list alone has, and for the memory of one view: how many
# references the calls have themselves is for Python to know.
_HELD_ONCE = _references([np.empty(1)], 0)
_VIEWED_ONCE = _references_of_base(np.empty(2)[:1])
