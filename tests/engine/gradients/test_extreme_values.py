"""Gradients of extreme values: finite in float32 wherever the weighted slope is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.ops.linalg.norms import norm
from laminar.engine.ops.math import arithmetic, elementary, reduce

# An op, its arguments, what arrives, and the slope for each argument in float64.
Slopes = Callable[..., tuple[Any, ...]]
ONE: dict[str, tuple[Any, Slopes]] = {
    "square": (arithmetic.square, lambda x: (2 * x,)),
    "reciprocal": (arithmetic.reciprocal, lambda x: (-1 / x**2,)),
    "sqrt": (elementary.sqrt, lambda x: (0.5 / np.sqrt(x),)),
    "rsqrt": (elementary.rsqrt, lambda x: (-0.5 * x**-1.5,)),
    "cbrt": (elementary.cbrt, lambda x: (x ** (-2 / 3) / 3,)),
    "log": (elementary.log, lambda x: (1 / x,)),
    "log2": (elementary.log2, lambda x: (1 / (x * np.log(2)),)),
    "log10": (elementary.log10, lambda x: (1 / (x * np.log(10)),)),
    "log1p": (elementary.log1p, lambda x: (1 / (1 + x),)),
    "arctan": (elementary.arctan, lambda x: (1 / (1 + x**2),)),
    "arcsinh": (elementary.arcsinh, lambda x: (1 / np.sqrt(1 + x**2),)),
    "arccosh": (elementary.arccosh, lambda x: (1 / np.sqrt((x - 1) * (x + 1)),)),
}
TWO: dict[str, tuple[Any, Slopes]] = {
    "xlogy": (elementary.xlogy, lambda x, y: (np.log(y), x / y)),
    "xdivy": (elementary.xdivy, lambda x, y: (1 / y, -x / y**2)),
    "hypot": (elementary.hypot, lambda x, y: (x / np.hypot(x, y), y / np.hypot(x, y))),
    "arctan2": (elementary.arctan2, lambda y, x: (x / (x**2 + y**2), -y / (x**2 + y**2))),
    "power": (elementary.power, lambda x, y: (y * x ** (y - 1), x**y * np.log(x))),
}
CASES = [
    *[(*ONE[n], (x,), w) for n in ONE for x, w in ((1e25, 1e25), (2e38, 0.1))],
    *[(*ONE[n], (1e-25,), 1e-25) for n in ONE if n != "arccosh"],
    *[(*TWO[n], (1e10, 1e-20), 1e-25) for n in ("xlogy", "xdivy", "arctan2", "hypot")],
    *[(*TWO["arctan2"], (1e-30, 3e-30), 1e-8)],
    *[(*TWO["power"], xs, 1e-3) for xs in ((1e19, 2.0), (1e-28, -0.9), (1e-30, -0.3))],
    (*TWO["power"], (1e-30, -0.9), 1e-30),
    (*TWO["power"], (1e30, -0.5), 1e30),
    *[(elementary.expm1, lambda x: (np.exp(x),), (x,), 1.0) for x in (-20.0, -1e-20, 3.0)],
]


def names(case: Any) -> str:
    return f"{case[0].type}-{'-'.join(map(str, case[2]))}"


def gradients_of(op: Any, xs: Any, weight: Any) -> list[Any]:
    tensors = [eng.convert_to_tensor(np.asarray(x, "float32")) for x in xs]
    with eng.GradientTape() as tape:
        tape.watch(tensors)
        y = op(*tensors)
    found = tape.gradient(y, tensors, np.broadcast_to(np.float32(weight), y.shape))
    return [np.asarray(dx, "float64") for dx in found]


@pytest.mark.parametrize("case", CASES, ids=names)
def test_op(case: Any) -> None:
    op, slopes, xs, weight = case
    exact = [np.float64(np.float32(x)) for x in xs]
    tiny, huge = np.finfo("float32").tiny, np.finfo("float32").max
    for found, slope in zip(gradients_of(op, xs, weight), slopes(*exact), strict=True):
        expected = np.float64(np.float32(weight)) * slope
        if tiny < abs(expected) < huge:
            np.testing.assert_allclose(found, expected, rtol=1e-5)
        else:
            assert abs(found) <= 2 * tiny or abs(found) >= 0.5 * huge


def test_power_by_the_exponent_where_there_is_no_logarithm() -> None:
    """The slope of 0**y is taken as 0, also where the value is infinite; NaN stays NaN."""
    _, dy = gradients_of(elementary.power, ([0.0, 0.0, -2.0, np.nan], [-1.0, 2.0, 3.0, 1.0]), 1.0)
    np.testing.assert_array_equal(dy, [0.0, 0.0, 0.0, np.nan])


def test_prod() -> None:
    x = np.asarray([1e30, 1e-30, 1e30], "float32")
    (dx,) = gradients_of(reduce.reduce_prod, (x,), 1e-30)
    exact = x.astype("float64")
    np.testing.assert_allclose(dx, 1e-30 * exact.prod() / exact, rtol=1e-5)


@pytest.mark.parametrize("p", [0.5, 1.0, 1.5, 2.0, 3.0, np.inf])
@pytest.mark.parametrize("compiled", [False, True])
def test_the_norm_of_the_zero_vector_has_the_slope_0(p: float, compiled: bool) -> None:
    """Of two rows, one is 0: that changes nothing for the other, nor does an element that is 0."""
    rows = np.array([[0.0, 0.0, 0.0], [0.0, -3.0, 4.0]], "float32")

    def slope(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = norm(x, p, axis=1)
        return tape.gradient(y, x)

    run = eng.function(jit_compile=True)(slope) if compiled else slope
    if p == np.inf:
        expected = np.array([0.0, 0.0, 1.0])
    else:
        size = np.array([0.0, 3.0, 4.0])
        total = np.sum(size**p)
        steep = np.where(size > 0, np.where(size > 0, size, 1) ** (p - 1), 0)
        expected = total ** (1 / p - 1) * steep * [0, -1, 1]
    found = run(eng.convert_to_tensor(rows))
    np.testing.assert_allclose(found, np.stack([np.zeros(3), expected]), rtol=1e-5)


def test_the_deviation_of_constant_rows_has_the_slope_0() -> None:
    x = eng.convert_to_tensor(np.array([[2.0, 2.0], [1.0, 3.0]], "float32"))
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = reduce.reduce_std(x, 1)
    np.testing.assert_allclose(y.numpy(), [0.0, 1.0])
    np.testing.assert_allclose(tape.gradient(y, x), [[0.0, 0.0], [-0.5, 0.5]])
