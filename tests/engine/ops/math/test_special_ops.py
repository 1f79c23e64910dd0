"""Special functions as ops: against SciPy, with gradients, and at the edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special as sp

import laminar.compat.v1 as tf
from laminar import engine
from laminar.engine.ops.math import bessel_scaled as b
from laminar.engine.ops.math import incomplete_beta as ib
from laminar.engine.ops.math import incomplete_gamma as ig
from laminar.engine.ops.math import normal_quantile as nq
from laminar.engine.ops.math import zeta as z
from tests.engine.ops.harness import check_op

rng = np.random.default_rng(3)
INF, NAN = math.inf, math.nan
A, X = rng.uniform(0.3, 4, (2, 3)), rng.uniform(0.3, 6, (2, 3))
B, U = rng.uniform(0.3, 4, (2, 3)), rng.uniform(0.05, 0.95, (2, 3))
S, N = rng.uniform(1.5, 5, (2, 3)), np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
Y = rng.normal(size=(2, 3)) * 3


def gamma_slope(a: Any, x: Any) -> Any:
    h = 1e-3
    parts = [w * (sp.gammainc(a + k * h, x) - sp.gammainc(a - k * h, x)) for k, w in STENCIL]
    return sum(parts) / h


def gamma_bend(a: Any, x: Any) -> Any:
    h = 1e-2  # of the second derivative to sixth order
    parts = [w * (sp.gammainc(a + k * h, x) + sp.gammainc(a - k * h, x)) for k, w in SECOND]
    return (sum(parts) - 49 / 18 * sp.gammainc(a, x)) / (h * h)


def beta_slope(a: Any, b: Any, x: Any) -> Any:
    h = 2e-3
    parts = [w * (sp.betainc(a + k * h, b, x) - sp.betainc(a - k * h, b, x)) for k, w in STENCIL]
    return sum(parts) / h


SECOND = ((1, 3 / 2), (2, -3 / 20), (3, 1 / 90))
STENCIL = ((1, 3 / 4), (2, -3 / 20), (3, 1 / 60))


@pytest.mark.parametrize(
    ("fn", "reference", "inputs", "second"),
    [
        pytest.param(ig.igamma, sp.gammainc, (A, X), True, id="igamma"),
        pytest.param(ig.igammac, sp.gammaincc, (A, X), True, id="igammac"),
        pytest.param(ig.igamma, sp.gammainc, (A[:, :1], X), True, id="igamma-broadcast"),
        pytest.param(ib.betainc, sp.betainc, (A, B, U), False, id="betainc-all"),
        pytest.param(z.zeta, sp.zeta, (S, X), True, id="zeta-both"),
        pytest.param(b.i0e, sp.i0e, (Y,), True, id="i0e"),
        pytest.param(b.i1e, sp.i1e, (Y,), True, id="i1e"),
        pytest.param(nq.normal_quantile, sp.ndtri, (U,), True, id="ndtri"),
    ],
)
def test_op(fn: Any, reference: Any, inputs: Any, second: bool) -> None:
    check_op(fn, reference, inputs, second=second, dtypes=["float32"])


@pytest.mark.parametrize(
    ("fn", "reference", "fixed", "x"),
    [
        pytest.param(ib.betainc, sp.betainc, (A, B), U, id="betainc"),
        pytest.param(ig.igamma_slope, gamma_slope, (A,), X, id="igamma-slope"),
        pytest.param(ig.igamma_bend, gamma_bend, (A,), X, id="igamma-bend"),
        pytest.param(ib.betainc_slope, beta_slope, (A, B), U, id="betainc-slope"),
        pytest.param(z.zeta, sp.zeta, (S,), X, id="zeta"),
        pytest.param(z.polygamma, sp.polygamma, (N,), X, id="polygamma"),
    ],
)
def test_op_of_its_last_argument(fn: Any, reference: Any, fixed: Any, x: Any) -> None:
    check_op(lambda x: fn(*fixed, x), lambda x: reference(*fixed, x), (x,), rtol=1e-8)


SIZES = [
    pytest.param((1e-6, 1), 1e-13, 1e-10, id="small"),
    pytest.param((1, 1e4), 1e-12, 1e-12, id="middle"),
    pytest.param((9e3, 1.1e4), 1e-10, 1e-10, id="where-the-expansion-begins"),
    pytest.param((1e5, 1e9), 1e-9, 1e-9, id="large"),
]


@pytest.fixture
def quiet() -> Any:
    """As where ops call kernels."""
    with np.errstate(all="ignore"):
        yield


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize(("sizes", "lower", "upper"), SIZES)
def test_incomplete_gamma_of_all_sizes(
    sizes: tuple[float, float], lower: float, upper: float
) -> None:
    a = np.exp(rng.uniform(math.log(sizes[0]), math.log(sizes[1]), 500))
    x = a * np.exp(np.clip(rng.normal(size=500), -3, 3) / np.sqrt(np.maximum(a, 1)) * 1.5)
    np.testing.assert_allclose(ig.lower_gamma(np, a, x), sp.gammainc(a, x), rtol=lower)
    np.testing.assert_allclose(ig.upper_gamma(np, a, x), sp.gammaincc(a, x), rtol=upper)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("a", [0.3, 3.0, 80.0, 9e3, 3e4, 1e7])
def test_slope_of_the_incomplete_gamma_function(a: float) -> None:
    x = a + math.sqrt(a) * np.array([-1.0, -0.2, 0.0, 0.5, 2.0])
    x = np.maximum(x, 0.1)
    h = 0.02 * math.sqrt(a)
    expected = sum(w * (sp.gammainc(a + k * h, x) - sp.gammainc(a - k * h, x)) for k, w in STENCIL)
    found = ig.lower_gamma_slope(np, np.full_like(x, a), x)
    np.testing.assert_allclose(found, expected / h, rtol=2e-7)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("order", [1, 2, 3])
def test_derivatives_of_zeta(order: int) -> None:
    """By differences of those of one order less; of zeta(s, 1) by what is known of them."""
    s, q = rng.uniform(1.05, 8, 50), np.exp(rng.uniform(-3, 4, 50))
    h = 1e-3 * (s - 1)

    def below(s: Any) -> Any:
        return z.hurwitz_slope(np, s, q, order - 1) if order > 1 else sp.zeta(s, q)

    expected = sum(w * (below(s + k * h) - below(s - k * h)) for k, w in STENCIL) / h
    np.testing.assert_allclose(z.hurwitz_slope(np, s, q, order), expected, rtol=1e-8)
    # zeta'(2) = pi**2 / 6 (gamma + log(2 pi) - 12 log(A)), with the constant of Glaisher
    constant = math.log(1.2824271291006226)
    known = math.pi**2 / 6 * (np.euler_gamma + math.log(2 * math.pi) - 12 * constant)
    two, one = np.array([2.0]), np.array([1.0])
    np.testing.assert_allclose(z.hurwitz_slope(np, two, one, 1), [known], rtol=1e-13)


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("a", [1e-3, 0.1, 1.0, 20.0, 3e3])
def test_slope_of_the_incomplete_beta_function(a: float) -> None:
    """For b = 1 I is x**a, and for a whole b a polynomial times that."""
    x = np.array([1e-8, 0.01, 0.3, 0.9, 0.999])
    ones = np.ones_like(x)
    found = ib.beta_slope(np, a * ones, ones, x)
    np.testing.assert_allclose(found, x**a * np.log(x), rtol=1e-7, atol=1e-9)
    found = ib.beta_slope(np, a * ones, 2 * ones, x)  # I = x**a (1 + a (1 - x))
    expected = x**a * (np.log(x) * (1 + a * (1 - x)) + 1 - x)
    np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-9)
    ends = ib.beta_slope(np, np.full(3, a), np.full(3, 2.0), np.array([0.0, 1.0, 1.5]))
    np.testing.assert_array_equal(ends, [0.0, 0.0, NAN])


@pytest.mark.usefixtures("quiet")
def test_incomplete_beta_of_all_sizes() -> None:
    a, c = np.exp(rng.uniform(-5, 12, (2, 2000)))
    mean = a / (a + c)
    x = np.clip(mean + rng.normal(size=2000) * np.sqrt(mean * (1 - mean) / (a + c + 1)), 0, 1)
    expected = sp.betainc(a, c, x)
    np.testing.assert_allclose(ib.incomplete_beta(np, a, c, x), expected, rtol=1e-9, atol=1e-14)


EDGES = [
    (ig.igamma, [(1.0, 0.0), (1.0, INF), (0.0, 1.0), (INF, 1.0)], [0.0, 1.0, 1.0, 0.0]),
    (ig.igammac, [(1.0, 0.0), (1.0, INF), (0.0, 1.0), (INF, 1.0)], [1.0, 0.0, 0.0, 1.0]),
    (ig.igamma, [(-1.0, 1.0), (1.0, -1.0), (0.0, 0.0), (NAN, 1.0), (INF, INF)], [NAN] * 5),
    (ib.betainc, [(2.0, 3.0, 0.0), (2.0, 3.0, 1.0)], [0.0, 1.0]),
    (ib.betainc, [(-1.0, 3.0, 0.5), (2.0, 0.0, 0.5), (2.0, 3.0, 1.5)], [NAN] * 3),
    (z.zeta, [(1.0, 2.0), (2.0, -3.0), (0.5, 2.0), (2.5, -0.5)], [INF, INF, NAN, NAN]),
    (z.polygamma, [(0.5, 1.0), (-1.0, 1.0), (1.0, 0.0)], [NAN, NAN, INF]),
    (nq.normal_quantile, [(0.0,), (1.0,), (0.5,), (-0.1,), (1.1,)], [-INF, INF, 0.0, NAN, NAN]),
    (b.i0e, [(INF,), (0.0,), (800.0,)], [0.0, 1.0, sp.i0e(800.0)]),
]


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("fn", "given", "expected"), EDGES)
def test_edges(fn: Any, given: Any, expected: Any, dtype: str) -> None:
    found = fn(*(engine.constant(column, dtype) for column in zip(*given, strict=True)))
    np.testing.assert_allclose(found.numpy(), np.array(expected, dtype), rtol=1e-6)


def test_zeta_left_of_zero() -> None:
    q = np.array([-0.5, -2.25, -7.75])
    terms = np.array([sum((v + n) ** -2.0 for n in range(9)) for v in q])
    expected = terms + sp.zeta(2.0, q + 9)
    np.testing.assert_allclose(z.hurwitz(np, np.full(3, 2.0), q), expected, rtol=1e-13)


def test_under_the_names_of_tensorflow() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(
            [
                tf.igamma(2.0, 3.0),
                tf.math.igammac(2.0, 3.0),
                tf.betainc(2.0, 3.0, 0.5),
                tf.zeta(3.0, 2.0),
                tf.polygamma(1.0, 2.0),
                tf.math.bessel_i0(1.0),
                tf.math.bessel_i1(1.0),
                tf.math.bessel_i0e(1.0),
                tf.math.bessel_i1e(1.0),
                tf.math.ndtri(0.9),
            ]
        )
    expected = [
        sp.gammainc(2.0, 3.0),
        sp.gammaincc(2.0, 3.0),
        sp.betainc(2.0, 3.0, 0.5),
        sp.zeta(3.0, 2.0),
        sp.polygamma(1, 2.0),
        sp.i0(1.0),
        sp.i1(1.0),
        sp.i0e(1.0),
        sp.i1e(1.0),
        sp.ndtri(0.9),
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
