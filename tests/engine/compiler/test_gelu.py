"""GELU and its slope by pieces: how exact they are, for AVX-512 and for AVX2."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from scipy import special

from laminar.engine.compiler.codegen import math as v
from laminar.engine.compiler.codegen.function import POINTER, IRFunction, Module, Value
from laminar.engine.compiler.codegen.scalars import VectorScalars
from laminar.engine.compiler.target.llvm import compile_object, host_features, vector_bytes
from laminar.engine.graph import float32, float64
from laminar.engine.ops.nn.gelu import CUBIC, SCALE

from .modules import Array, elementwise_module, load

UNIT = 2.0**-24
SIZES = [
    pytest.param(
        size,
        marks=pytest.mark.skipif(
            not (host_features().get(feature) and size <= vector_bytes()),
            reason=f"the host has no {feature}",
        ),
        id=feature,
    )
    for size, feature in ((64, "avx512f"), (32, "avx2"))
]


def natively(name: str, approximate: bool, x: Array, size: int, lanes: int | None = None) -> Array:
    """A function of `VectorScalars` on float32, in registers of `size` bytes."""

    def body(fn: IRFunction, value: Value) -> Value:
        assert v.has_pieces(fn, value)
        found: Value = getattr(VectorScalars(fn), name)(value, approximate)
        return found

    lanes = size // 4 if lanes is None else lanes
    module = elementwise_module(body, [float32], float32, lanes=lanes, vector_bytes=size)
    y = np.empty_like(x)
    load(module, "kernel", partial(compile_object, vector=size))(x, y, y.size)
    return y


def normal(x: Array) -> tuple[Array, Array]:
    """The share below x, and x times its derivative."""
    return special.ndtr(x), x * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)


def by_tanh(x: Array) -> tuple[Array, Array]:
    share = special.expit(x * (SCALE + CUBIC * x * x))
    return share, x * share * special.expit(-x * (SCALE + CUBIC * x * x)) * (
        SCALE + 3 * CUBIC * x * x
    )


SHARES: dict[bool, Callable[[Array], tuple[Array, Array]]] = {False: normal, True: by_tanh}
NUMBERS = np.concatenate(
    [
        np.linspace(-12, 12, 1 << 17),
        np.random.default_rng(0).normal(size=1 << 17),
        np.random.default_rng(1).choice([-1, 1], 20000)
        * 10.0 ** np.random.default_rng(2).uniform(-45, 1, 20000),
        [-0.0, 0.0],
    ]
).astype(np.float32)


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_values(size: int, approximate: bool) -> None:
    """The error is a part of x, and beside a positive result little more than its last bit."""
    x = NUMBERS.astype(np.float64)
    share, _ = SHARES[approximate](x)
    found = natively("gelu", approximate, NUMBERS, size)
    error = np.abs(found - x * share)
    least = np.spacing(np.float32(0))
    assert (error <= 1.25 * UNIT * np.abs(x) + least).all()
    near = x > -0.5
    assert (error[near] <= 2 * np.spacing(np.abs(x * share)[near].astype(np.float32))).all()
    for end, part in ((-4, 2e-5), (-6.4, 2e-2 if approximate else 1e-3)):
        tail = (x < 0) & (x > end)
        assert (error[tail] <= part * np.abs(x * share)[tail] + least).all()
    assert np.array_equal(np.signbit(found), np.signbit(NUMBERS))
    assert not found[x < -6.6].any()


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_slopes(size: int, approximate: bool) -> None:
    share, rise = SHARES[approximate](NUMBERS.astype(np.float64))
    found = natively("gelu_slope", approximate, NUMBERS, size)
    error = np.abs(found - (share + rise))
    assert (error <= 1.5 * UNIT).all()
    assert (error[NUMBERS < 0] <= UNIT).all()
    assert (error[NUMBERS < -5] <= 2e-9).all()


@pytest.mark.parametrize("approximate", [False, True])
@pytest.mark.parametrize("size", SIZES)
def test_special_numbers(size: int, approximate: bool) -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3e38, -3e38, 1e-45, -1e-45], np.float32)
    values = [np.nan, np.inf, -0.0, 0.0, -0.0, 3e38, -0.0, 0.0, -0.0]
    found = natively("gelu", approximate, x, size)
    np.testing.assert_array_equal(found, np.array(values, np.float32))
    slopes = [np.nan, 1, 0, 0.5, 0.5, 1, 0, 0.5, 0.5]
    np.testing.assert_array_equal(natively("gelu_slope", approximate, x, size), slopes)


@pytest.mark.parametrize("name", ["gelu", "gelu_slope"])
@pytest.mark.parametrize("size", SIZES)
def test_one_number_is_as_many(size: int, name: str) -> None:
    x = NUMBERS[::64].copy()
    wide = natively(name, False, x, size)
    np.testing.assert_array_equal(natively(name, False, x, size, lanes=0), wide)


def test_who_has_pieces() -> None:
    for size, lanes, dtype in ((0, 16, float32), (64, 8, float32), (64, 8, float64)):
        fn = IRFunction(Module(size), "f", [POINTER])
        assert not v.has_pieces(fn, Value(fn, "%x", dtype, lanes))
