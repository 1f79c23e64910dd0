"""Blocks, constants and tables in generated code."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.compiler.codegen.function import Function, Value
from laminar.engine.graph import float64, int64

from ..modules import elementwise

LANES = pytest.mark.parametrize("lanes", [0, 4, 16])


@LANES
def test_replaced(lanes: int) -> None:
    def body(fn: Function, x: Value) -> Value:
        def negative() -> list[Value]:
            def far() -> list[Value]:
                return [x * 100.0]

            (inner,) = fn.replaced(fn.any(x < -50.0), [x * 10.0], far)
            return [fn.select(x < 0, inner, x)]

        (y,) = fn.replaced(fn.any(x < 0), [x], negative)
        return y

    x = np.arange(-2.0, 100.0)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, np.where(x < 0, 10 * x, x))
    x = np.full(35, -60.0)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, 100 * x)


@LANES
def test_repeat(lanes: int) -> None:
    def body(fn: Function, x: Value) -> Value:
        def halved(y: Value) -> tuple[Value, Value]:
            y = fn.select(y >= 1.0, y * 0.5, y)
            return y, fn.any(y >= 1.0)

        return fn.repeat(x, halved)

    x = np.array([0.25, 3.0, 1e30, 7.0] * 5)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, np.where(x < 1, x, np.frexp(x)[0]))


@LANES
def test_lookup(lanes: int) -> None:
    table = [np.pi, -1.0, np.inf, 1e-300]

    def body(fn: Function, i: Value) -> Value:
        return fn.lookup("table", table, i)

    i = np.arange(37) % 4
    found = elementwise(body, ["int64"], float64, lanes=lanes)(i)
    np.testing.assert_array_equal(found, np.array(table)[i])


def test_constants_beyond_the_type_are_infinite() -> None:
    found = elementwise(lambda fn, x: fn.constant(-1e39, x) * x, ["float32"], "float32")
    np.testing.assert_array_equal(found(np.ones(3)), [-np.inf] * 3)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_operators(dtype: str) -> None:
    a, b = np.array([7, -7, 8, -9, 5], dtype), np.array([2, 2, -3, -4, 0], dtype)
    for body, expected in (
        (lambda fn, x, y: x // y, np.floor_divide),
        (lambda fn, x, y: x % y, np.mod),
    ):
        with np.errstate(all="ignore"):
            found = elementwise(body, [dtype] * 2, dtype)(a, b)
            np.testing.assert_array_equal(found, expected(a, b))
    found = elementwise(lambda fn, x: x // 4 + x % 4, [dtype], dtype)(a)
    np.testing.assert_array_equal(found, a // 4 + a % 4)


def test_loops_nest_in_branches() -> None:
    def body(fn: Function, n: Value) -> Value:
        def counted() -> list[Value]:
            place = fn.named("alloca i64")
            fn.store(n, place)
            step = fn.number(2)
            fn.loop(
                fn.number(0),
                n,
                1,
                lambda i: fn.store(fn.load(place, int64, 0) + step, place),
            )
            return [fn.load(place, int64, 0)]

        (total,) = fn.replaced(n > 3, [n], counted)
        return total

    n = np.arange(8)
    found = elementwise(body, ["int64"], "int64", lanes=0)(n)
    np.testing.assert_array_equal(found, np.where(n > 3, 3 * n, n))
