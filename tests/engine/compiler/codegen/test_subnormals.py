"""Native code takes subnormal numbers for 0, and leaves the thread that calls it as it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine import errors
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module
from laminar.engine.compiler.target import host
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.ops.core.checks import check_numerics

from ..modules import load

FLOATS = ["float32", "float64"]


def below(dtype: Any, *shape: int) -> Any:
    """Numbers of both signs below the normal ones."""
    share = np.random.default_rng(0).uniform(0.01, 0.9, shape)
    sign = np.where(np.arange(share.size).reshape(shape) % 2, -1, 1)
    return (sign * share).astype(dtype) * np.finfo(dtype).smallest_normal


def assert_numpy_is_as_before() -> None:
    for dtype in FLOATS:
        x = below(dtype, 64)
        half = x * x.dtype.type(0.5)
        assert half.all()
        assert (np.abs(half) < np.abs(x)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_they_count_as_zero(dtype: str) -> None:
    step = laminar.function(lambda x: (x * 0.5, x + 1.0, x > 0, ops.sqrt(ops.abs(x))))
    x = below(dtype, 37)
    expected = 0 * x, np.ones_like(x), np.zeros(37, bool), np.zeros(37)
    for found, value in zip(step(x), expected, strict=True):
        np.testing.assert_array_equal(found, value)
    assert_numpy_is_as_before()


@pytest.mark.parametrize("dtype", FLOATS)
def test_so_does_what_becomes_one(dtype: str) -> None:
    step = laminar.function(lambda x: (x * x, ops.exp(-x), x / 4.0))
    limits = np.finfo(dtype)
    x = np.full(19, -np.log(limits.smallest_normal) + 0.5, dtype)
    _, shares, _ = step(x)
    np.testing.assert_array_equal(shares, 0)
    squares, _, parts = step(np.full(19, limits.smallest_normal, dtype))
    np.testing.assert_array_equal(squares, 0)
    np.testing.assert_array_equal(parts, 0)


def test_what_is_moved_keeps_its_bits() -> None:
    x = below("float32", 6, 35)
    moved = laminar.function(lambda x: (ops.transpose(x), ops.concatenate([x, x + 1.0]), -x))
    turned, joined, negative = (np.asarray(y) for y in moved(x))
    np.testing.assert_array_equal(turned, x.T)
    np.testing.assert_array_equal(joined[:6], x)
    np.testing.assert_array_equal(negative, -x)


def test_those_of_float16_are_numbers() -> None:
    halves = np.arange(1, 1024, dtype=np.uint16).view("float16")
    step = laminar.function(lambda x: (ops.cast(x, "float32"), x + x, ops.cast(x * 0.5, "float64")))
    wide, double, half = step(halves)
    np.testing.assert_array_equal(wide, halves.astype("float32"))
    np.testing.assert_array_equal(double, halves + halves)
    np.testing.assert_array_equal(half, (halves * np.float16(0.5)).astype("float64"))


def test_the_number_of_threads_changes_no_bit() -> None:
    x = below("float32", 700, 700) * 1e3  # some of them are normal
    step = laminar.function(lambda x: (x * 0.1, ops.matmul(x * 1e20, x * 1e20), ops.sum(x, axis=1)))
    before = num_threads()
    found = []
    try:
        for count in (1, 2, 3):
            laminar.set_threads(count)
            found.append([np.asarray(y) for y in step(x)])
    finally:
        laminar.set_threads(before)
    products, _, _ = found[0]
    assert not products[np.abs(x) < 5e-38].any()
    assert products.any()
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert one.tobytes() == other.tobytes()
    assert_numpy_is_as_before()


def test_after_a_step_that_fails() -> None:
    step = laminar.function(lambda x: ops.sqrt(check_numerics(x * 0.5)))
    with pytest.raises(errors.InvalidArgumentError):
        step(np.array([np.nan, 1e-40], "float32"))
    assert_numpy_is_as_before()


@pytest.mark.skipif(not host.is_x86(), reason="reads the control word of x86")
def test_the_control_word_is_the_same() -> None:
    module = Module()
    fn = IRFunction(module, "control_word", [POINTER])
    module.declarations["stmxcsr"] = "declare void @llvm.x86.sse.stmxcsr(ptr)"
    fn.line(f"call void @llvm.x86.sse.stmxcsr(ptr {fn.arguments[0]})")
    read = load(module, "control_word")
    words = np.zeros(3, np.uint32)
    step = laminar.function(lambda x: ops.sqrt(x) / 3.0)
    x = np.array([2.0, -1.0, 1e-40], "float32")
    step(x)
    read(words[:1])
    step(x)
    read(words[1:2])
    assert words[0] == words[1]
    assert not words[0] & (1 << 6 | 1 << 15)
