"""Functions whose results are exact: of whole numbers, of bits, of order, of truth."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from laminar.engine.compiler.codegen import math as v
from laminar.engine.compiler.codegen.function import IRFunction, Value

from .math_values import everywhere, pairs, same, special_values
from .modules import Array, Body, elementwise


def test_powers_that_are_exact() -> None:
    x, y = (a.ravel() for a in np.meshgrid(np.arange(-9.0, 10.0), np.arange(14.0)))
    same(elementwise(v.power, ["float64"] * 2, "float64")(x, y), x**y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        pytest.param(v.floor_mod, np.mod, id="floor_mod"),
        pytest.param(v.trunc_mod, np.fmod, id="trunc_mod"),
        pytest.param(v.floor_divide, np.floor_divide, id="floor_divide"),
        pytest.param(v.next_after, np.nextafter, id="next_after"),
        pytest.param(v.copysign, np.copysign, id="copysign"),
    ],
)
def test_exact_of_two(body: Body, reference: Callable[..., Array], dtype: str) -> None:
    a, b = pairs(dtype, 1 << 13)
    with np.errstate(all="ignore"):
        same(elementwise(body, [dtype] * 2, dtype)(a, b), reference(a, b))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        pytest.param(v.rint, np.rint, id="rint"),
        pytest.param(v.floor, np.floor, id="floor"),
        pytest.param(v.ceil, np.ceil, id="ceil"),
        pytest.param(v.trunc, np.trunc, id="trunc"),
        pytest.param(v.absolute, np.abs, id="absolute"),
        pytest.param(v.sign, np.sign, id="sign"),
        pytest.param(v.angle, np.angle, id="angle"),
    ],
)
def test_exact_of_one(body: Body, reference: Callable[..., Array], dtype: str) -> None:
    x = np.concatenate([everywhere(dtype, 4), special_values(dtype), np.arange(-4, 4.5, 0.5)])
    x = x.astype(dtype)
    same(elementwise(body, [dtype], dtype)(x), reference(x).astype(dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("body", "reference"),
    [(v.is_nan, np.isnan), (v.is_inf, np.isinf), (v.is_finite, np.isfinite)],
)
def test_tests(body: Body, reference: Callable[..., Array], dtype: str) -> None:
    x = special_values(dtype)
    same(elementwise(body, [dtype], "bool")(x), reference(x))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "uint16", "int32", "uint64"])
@pytest.mark.parametrize(("body", "reference"), [(v.maximum, np.maximum), (v.minimum, np.minimum)])
def test_limits(body: Body, reference: Callable[..., Array], dtype: str) -> None:
    if dtype.startswith("float"):
        a, b = pairs(dtype, 1 << 10)
    else:
        rng = np.random.default_rng(0)
        info = np.iinfo(dtype)
        a, b = rng.integers(info.min, info.max, (2, 1000), dtype, endpoint=True)
    np.testing.assert_array_equal(elementwise(body, [dtype] * 2, dtype)(a, b), reference(a, b))
    for bound in (np.nan, 0.0, -0.0, 1.0) if dtype.startswith("float") else (0, 7):
        constant = np.full_like(a, bound)

        def above(fn: IRFunction, x: Value, bound: float = bound) -> Value:
            return body(fn, x, fn.constant(bound, x))

        def below(fn: IRFunction, x: Value, bound: float = bound) -> Value:
            return body(fn, fn.constant(bound, x), x)

        for fixed, expected in (
            (above, reference(a, constant)),
            (below, reference(constant, a)),
        ):
            found = elementwise(fixed, [dtype], dtype)(a)
            np.testing.assert_array_equal(found, expected)


INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    ("body", "reference"),
    [
        pytest.param(v.floor_mod, np.mod, id="floor_mod"),
        pytest.param(v.trunc_mod, np.fmod, id="trunc_mod"),
        pytest.param(v.floor_divide, np.floor_divide, id="floor_divide"),
        pytest.param(v.shift_left, np.left_shift, id="shift_left"),
        pytest.param(v.shift_right, np.right_shift, id="shift_right"),
    ],
)
def test_integers(body: Body, reference: Callable[..., Array], dtype: str) -> None:
    rng = np.random.default_rng(0)
    info = np.iinfo(dtype)
    a, b = rng.integers(info.min, info.max, (2, 500), dtype, endpoint=True)
    b[:300] >>= info.bits - 5
    few = np.array([info.min, info.max, 0, 1, 2, info.bits - 1, info.bits, 100], dtype)
    few = np.concatenate([few, -few])
    x, y = (
        np.concatenate([m, g.ravel()]) for m, g in zip((a, b), np.meshgrid(few, few), strict=True)
    )
    with np.errstate(all="ignore"):
        same(elementwise(body, [dtype] * 2, dtype)(x, y), reference(x, y))


@pytest.mark.parametrize("dtype", INTEGERS)
def test_signs_of_integers(dtype: str) -> None:
    info = np.iinfo(dtype)
    x = np.array([info.min, info.max, 0, 1, 5], dtype)
    same(elementwise(v.absolute, [dtype], dtype)(x), np.abs(x))
    same(elementwise(v.sign, [dtype], dtype)(x), np.sign(x))
    same(elementwise(v.floor, [dtype], dtype)(x), x)


@pytest.mark.parametrize("kind", ["int8", "int32", "int64", "uint8", "uint64"])
def test_ldexp(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([everywhere("float32", 8), special_values("float32")])
    info = np.iinfo(kind)
    n = rng.integers(max(info.min, -320), min(info.max, 320), x.size, kind)
    n[:50], n[50:100] = info.min, info.max
    rng.shuffle(n)
    with np.errstate(all="ignore"):
        expected = np.ldexp(x, np.clip(n.astype(object), -9999, 9999).astype(np.int32))
    same(elementwise(v.ldexp, ["float32", kind], "float32")(x, n), expected)


def test_logic() -> None:
    a, b = np.array([[0, 0, 1, 1], [0, 1, 0, 1]]).astype(bool)
    for body, reference in (
        (v.logical_and, np.logical_and),
        (v.logical_or, np.logical_or),
        (v.logical_xor, np.logical_xor),
    ):
        same(elementwise(body, ["bool"] * 2, "bool")(a, b), reference(a, b))
        same(
            elementwise(body, ["float32"] * 2, "bool")(a * 0.5, b * -2.0),
            reference(a, b),
        )
    same(elementwise(v.logical_not, ["bool"], "bool")(a), ~a)
