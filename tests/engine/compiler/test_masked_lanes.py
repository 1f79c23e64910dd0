"""The first lanes of vectors, read and written between pages that cannot be touched."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.memory import first_lanes, load_strided, store, store_strided
from laminar.engine.compiler.codegen.memory import load as load_elements
from laminar.engine.compiler.target.llvm import compile_object, vector_bytes
from laminar.engine.graph import as_dtype, int64

from .array_bounds import guarded
from .modules import load

LANES = 4


def copier(dtype: Any, known: int | None, stride: int | None, vector: int) -> Module:
    """A module with copy(from, to, count): of `LANES` lanes those below the count."""
    module = Module(vector)
    fn = IRFunction(module, "copy", [POINTER, POINTER, "i64"])
    source, target, argument = fn.arguments
    count = Value(fn, argument, int64, 0) if known is None else fn.number(known)
    mask = first_lanes(fn, count, LANES)
    if stride is None:
        store(fn, load_elements(fn, source, dtype, LANES, mask), target, mask)
        return module
    step = fn.number(stride * dtype.size)
    store_strided(fn, load_strided(fn, source, step, dtype, LANES, mask), target, step, mask)
    return module


@pytest.mark.slow
@pytest.mark.parametrize("vector", [16, 0])
@pytest.mark.parametrize("stride", [None, 1, 3, -2])
@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int8", "bool"])
def test_only_the_first_lanes_are_touched(name: str, stride: int | None, vector: int) -> None:
    dtype = as_dtype(name)
    step, width = stride or 1, vector or vector_bytes()
    unknown = load(copier(dtype, None, stride, vector), "copy", lambda t: compile_object(t, width))
    for count in range(LANES + 1):
        module = copier(dtype, count, stride, vector)
        known = load(module, "copy", lambda t: compile_object(t, width))
        size = abs(step) * max(count - 1, 0) + (count > 0)
        for copy in (unknown, known):
            for at_end in (True, False):
                x, y = (guarded(size, dtype.numpy, at_end=at_end) for _ in range(2))
                x[:] = np.arange(1, 1 + size)
                first = size - 1 if step < 0 < size else 0
                copy(x[first:], y[first:], count)
                want = np.zeros_like(y)
                want[first::step][:count] = x[first::step][:count]
                np.testing.assert_array_equal(y, want)


@pytest.mark.parametrize("known", [None, 1, 3])
@pytest.mark.parametrize("stride", [None, 3])
def test_lanes_outside_of_the_mask_are_zero(stride: int | None, known: int | None) -> None:
    dtype = as_dtype("float32")
    module = Module(16)
    fn = IRFunction(module, "read", [POINTER, POINTER, "i64"])
    source, target, argument = fn.arguments
    count = Value(fn, argument, int64, 0) if known is None else fn.number(known)
    mask = first_lanes(fn, count, LANES)
    step = fn.number(4 * (stride or 1))
    if stride is None:
        store(fn, load_elements(fn, source, dtype, LANES, mask), target)
    else:
        store(fn, load_strided(fn, source, step, dtype, LANES, mask), target)
    read = load(module, "read", lambda t: compile_object(t, 16))
    y, num = np.full(LANES, np.nan, np.float32), known or 2
    x = np.arange(1, 1 + (stride or 1) * LANES, dtype=np.float32)
    read(x, y, num)
    np.testing.assert_array_equal(y, np.where(np.arange(LANES) < num, x[:: stride or 1], 0))


@pytest.mark.parametrize("known", [None, 3])
def test_quotients_outside_of_the_mask_are_left_out(known: int | None) -> None:
    dtype = as_dtype("float32")
    module = Module(16)
    fn = IRFunction(module, "divide", [POINTER, POINTER, "i64"])
    source, target, argument = fn.arguments
    count = Value(fn, argument, int64, 0) if known is None else fn.number(known)
    mask = first_lanes(fn, count, LANES)
    x = load_elements(fn, source, dtype, LANES, mask)
    quotient = x / load_elements(fn, source, dtype, LANES, mask)  # 0 / 0 in the last lane
    store(fn, fn.select(mask, quotient, fn.constant(0.0, quotient)), target)
    divide = load(module, "divide", lambda t: compile_object(t, 16))
    y = np.full(LANES, np.nan, np.float32)
    divide(np.arange(1, 4, dtype=np.float32), y, 3)
    np.testing.assert_array_equal(y, [1, 1, 1, 0])


@pytest.mark.parametrize("stride", [None, 3])
@pytest.mark.parametrize("known", [None, 3])
def test_processors_without_masks_do_not_branch(known: int | None, stride: int | None) -> None:
    # LLVM writes masked operations as a branch for each lane.
    assert "llvm.masked" not in copier(as_dtype("float32"), known, stride, 16).text()
