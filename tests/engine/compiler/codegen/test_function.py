"""Blocks, constants and tables in generated code."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.compiler.codegen.control import any_lane, loop, repeat, replaced
from laminar.engine.compiler.codegen.function import IRFunction, Value
from laminar.engine.compiler.codegen.memory import load, lookup, store
from laminar.engine.graph import float64, int64

from ..modules import elementwise

LANES = pytest.mark.parametrize("lanes", [0, 4, 16])


@LANES
def test_replaced(lanes: int) -> None:
    def body(fn: IRFunction, x: Value) -> Value:
        def negative() -> list[Value]:
            def far() -> list[Value]:
                return [x * 100.0]

            (inner,) = replaced(fn, any_lane(fn, x < -50.0), [x * 10.0], far)
            return [fn.select(x < 0, inner, x)]

        (y,) = replaced(fn, any_lane(fn, x < 0), [x], negative)
        return y

    x = np.arange(-2.0, 100.0)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, np.where(x < 0, 10 * x, x))
    x = np.full(35, -60.0)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, 100 * x)


@LANES
def test_repeat(lanes: int) -> None:
    def body(fn: IRFunction, x: Value) -> Value:
        def halved(y: Value) -> tuple[Value, Value]:
            y = fn.select(y >= 1.0, y * 0.5, y)
            return y, any_lane(fn, y >= 1.0)

        return repeat(fn, x, halved)

    x = np.array([0.25, 3.0, 1e30, 7.0] * 5)
    found = elementwise(body, ["float64"], "float64", lanes=lanes)(x)
    np.testing.assert_array_equal(found, np.where(x < 1, x, np.frexp(x)[0]))


@LANES
def test_lookup(lanes: int) -> None:
    table = [np.pi, -1.0, np.inf, 1e-300]

    def body(fn: IRFunction, i: Value) -> Value:
        return lookup(fn, "table", table, i)

    i = np.arange(37) % 4
    found = elementwise(body, ["int64"], float64, lanes=lanes)(i)
    np.testing.assert_array_equal(found, np.array(table)[i])


def test_constants_beyond_the_type_are_infinite() -> None:
    found = elementwise(lambda fn, x: fn.constant(-1e39, x) * x, ["float32"], "float32")
    np.testing.assert_array_equal(found(np.ones(3)), [-np.inf] * 3)


def test_loops_nest_in_branches() -> None:
    def body(fn: IRFunction, n: Value) -> Value:
        def counted() -> list[Value]:
            place = fn.named("alloca i64")
            store(fn, n, place)
            step = fn.number(2)
            loop(
                fn,
                fn.number(0),
                n,
                1,
                lambda i: store(fn, load(fn, place, int64, 0) + step, place),
            )
            return [load(fn, place, int64, 0)]

        (total,) = replaced(fn, n > 3, [n], counted)
        return total

    n = np.arange(8)
    found = elementwise(body, ["int64"], "int64", lanes=0)(n)
    np.testing.assert_array_equal(found, np.where(n > 3, 3 * n, n))
