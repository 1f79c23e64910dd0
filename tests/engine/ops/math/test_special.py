from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

from laminar.engine.ops.math import bessel, gamma, special

rng = np.random.default_rng(0)
INF, NAN = math.inf, math.nan

FUNCTIONS: dict[str, Any] = {
    "erf": lambda x: special.erf(np, x),
    "erfc": lambda x: special.erfc(np, x),
    "erfinv": lambda x: special.erfinv(np, x),
    "lgamma": lambda x: gamma.lgamma(np, x),
    "digamma": lambda x: gamma.digamma(np, x),
    "polygamma 1": lambda x: gamma.polygamma(np, 1, x),
    "polygamma 2": lambda x: gamma.polygamma(np, 2, x),
    "polygamma 5": lambda x: gamma.polygamma(np, 5, x),
    "bessel 0": lambda x: bessel.bessel_i(np, 0, x),
    "bessel 1": lambda x: bessel.bessel_i(np, 1, x),
    "bessel 3": lambda x: bessel.bessel_i(np, 3, x),
}


def compute(name: str, x: Any) -> Any:
    with np.errstate(all="ignore"):
        return FUNCTIONS[name](x)


# Correctly rounded values, computed with 40 digits (mpmath), at x as float64 holds it.
EXACT = {
    "erf": [
        (5e-324, 5e-324),
        (1e-300, 1.1283791670955126e-300),
        (1e-10, 1.1283791670955126e-10),
        (0.3, 0.3286267594591274),
        (0.46875, 0.49261347321793797),
        (0.5, 0.5204998778130465),
        (1.0, 0.8427007929497149),
        (2.5, 0.999593047982555),
        (-3.75, -0.9999998862727434),
        (5.5, 0.9999999999999927),
    ],
    "erfc": [
        (-2.0, 1.9953222650189528),
        (-0.3, 1.3286267594591274),
        (0.25, 0.7236736098317631),
        (0.47, 0.5062549491139179),
        (1.0, 0.15729920705028513),
        (3.9, 3.4792248597231765e-08),
        (4.1, 6.700027654084918e-09),
        (10.0, 2.088487583762545e-45),
        (20.0, 5.395865611607901e-176),
        (26.5, 2.2109076642637343e-307),
    ],
    "erfinv": [
        (1e-300, 8.86226925452758e-301),
        (1e-10, 8.862269254527581e-11),
        (0.3, 0.2724627147267543),
        (-0.84, -0.9935356283473041),
        (0.86, 1.0435418436397588),
        (0.9999, 2.75106390571208),
        (-0.99999999999, -4.812924058944833),
        (0.9999999999999999, 5.8635847487551676),
    ],
    "lgamma": [
        (5e-324, 744.4400719213812),
        (1e-10, 23.025850929882736),
        (0.25, 1.2880225246980774),
        (0.5, 0.5723649429247001),
        (0.75, 0.20328095143129538),
        (0.999999, 5.772164873855652e-07),
        (1.000001, -5.772148423874147e-07),
        (1.4616321449683622, -0.12148629053584961),
        (1.75, -0.08440112102048555),
        (1.9999, -4.227520877215346e-05),
        (2.0001, 4.2281658112919945e-05),
        (2.5, 0.2846828704729192),
        (3.0, 0.6931471805599453),
        (9.99, 12.779315214350193),
        (10.0, 12.801827480081469),
        (171.5, 709.1431630309282),
        (-0.25, 1.589575312551186),
        (-0.75, 1.5757045971498584),
        (-1.5, 0.860047015376481),
        (-10.25, -14.20399790093109),
        (-1e-300, 690.7755278982137),
        (10000000000.0, 220258509288.81058),
        (1e300, 6.897755278982137e302),
    ],
    "digamma": [
        (1e-300, -9.999999999999999e299),
        (1e-05, -100000.57719921567),
        (0.5, -1.9635100260214235),
        (1.0, -0.5772156649015329),
        (1.4616321449683622, -9.241265521729427e-17),
        (1.4616, -3.110625123034165e-05),
        (1.99, 0.41631470604541493),
        (2.0, 0.42278433509846713),
        (5.5, 1.6110931485817512),
        (10.0, 2.251752589066721),
        (10000000000.0, 23.025850929890456),
        (-0.25, 2.9141391202135276),
        (-1.5, 0.7031566406452432),
        (-10.75, -0.7208957601671612),
    ],
    "polygamma 1": [
        (1e-10, 1e20),
        (0.5, 4.934802200544679),
        (1.0, 1.6449340668482264),
        (7.25, 0.14787923315893217),
        (1000000.0, 1.0000005000001667e-06),
        (-0.5, 8.934802200544679),
        (-1.25, 19.181879647671607),
        (-7.5, 9.744766282170433),
    ],
    "polygamma 2": [
        (1e-10, -1.9999999999999998e30),
        (0.5, -16.82879664423432),
        (1.0, -2.4041138063191885),
        (7.25, -0.02182895229519774),
        (1000000.0, -1.0000010000005e-12),
        (-0.5, -0.82879664423432),
        (-1.25, 123.72136678366236),
        (-7.5, -0.015564511795903924),
    ],
    "polygamma 5": [
        (1e-10, 1.1999999999999998e62),
        (0.5, 7691.113548602436),
        (1.0, 122.0811674381339),
        (7.25, 0.001667357519228256),
        (1000000.0, 2.400006000006e-29),
        (-0.5, 15371.113548602436),
        (-1.25, 492230.21062287455),
        (-7.5, 15382.226378735899),
    ],
    "bessel 0": [
        (1e-10, 1.0),
        (0.5, 1.0634833707413236),
        (-3.0, 4.8807925858650245),
        (19.9, 39513376.52006682),
        (20.1, 48017874.1071365),
        (-300.0, 4.475847367935052e128),
        (713.0, 6.705128263670996e307),
    ],
    "bessel 1": [
        (1e-10, 5e-11),
        (0.5, 0.2578943053908963),
        (-3.0, -3.9533702174026093),
        (19.9, 38507423.87486228),
        (20.1, 46807739.533029884),
        (-300.0, -4.468381385036955e128),
        (713.0, 6.700424559186402e307),
    ],
    "bessel 3": [
        (1e-10, 2.0833333333333336e-32),
        (0.5, 0.002645111968990286),
        (-3.0, -0.9597536294960078),
        (19.9, 31342944.745551355),
        (20.1, 38178806.68000759),
        (-300.0, -4.409100609587602e128),
        (713.0, 6.66291357324604e307),
    ],
}


@pytest.mark.parametrize("name", EXACT)
def test_against_exact_values(name: str) -> None:
    x, y = np.array(EXACT[name]).T
    np.testing.assert_allclose(compute(name, x), y, rtol=1.5e-15)


@pytest.mark.parametrize("name", EXACT)
def test_float32_is_rounded_once(name: str) -> None:
    with np.errstate(over="ignore"):
        x = np.array(EXACT[name])[:, 0].astype(np.float32)
    wide = compute(name, x.astype(np.float64))
    with np.errstate(all="ignore"):
        expected = wide.astype(np.float32)
        ulp = np.abs(np.spacing(expected))
    found = compute(name, x)
    assert found.dtype == np.float32
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite])
    assert np.all(np.abs(found[finite] - wide[finite]) <= 0.6 * ulp[finite])


AT_THE_EDGES = {
    "erf": [(0.0, 0.0), (-0.0, -0.0), (INF, 1.0), (-INF, -1.0), (NAN, NAN)],
    "erfc": [(0.0, 1.0), (INF, 0.0), (-INF, 2.0), (30.0, 0.0), (NAN, NAN)],
    "erfinv": [(0.0, 0.0), (1.0, INF), (-1.0, -INF), (1.5, NAN), (-INF, NAN), (NAN, NAN)],
    "lgamma": [(1.0, 0.0), (2.0, 0.0), (0.0, INF), (-0.0, INF), (-3.0, INF), (-1e17, INF)]
    + [(INF, INF), (-INF, INF), (NAN, NAN), (1e308, INF)],
    "digamma": [(0.0, -INF), (-0.0, INF), (-2.0, NAN), (INF, INF), (-INF, NAN), (NAN, NAN)],
    "polygamma 1": [(0.0, INF), (-3.0, INF), (INF, 0.0), (NAN, NAN)],
    "polygamma 2": [(0.0, -INF), (-3.0, -INF), (INF, -0.0), (NAN, NAN)],
    "bessel 0": [(0.0, 1.0), (INF, INF), (-INF, INF), (800.0, INF), (NAN, NAN)],
    "bessel 1": [(0.0, 0.0), (INF, INF), (-INF, -INF), (-800.0, -INF), (NAN, NAN)],
}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", AT_THE_EDGES)
def test_edges(name: str, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        x, y = np.array(AT_THE_EDGES[name]).astype(dtype).T
    found = compute(name, x)
    np.testing.assert_array_equal(found, y)
    zeros = y == 0
    assert np.array_equal(np.signbit(found[zeros]), np.signbit(y[zeros]))


def spread(low: float, high: float) -> Any:
    return np.concatenate([rng.uniform(low, high, 2000), np.linspace(low, high, 501)])


# SciPy loses digits of erfc in the tail, of lgamma near its zeros, of digamma near its poles.
RANGES = [
    pytest.param("erf", scipy.special.erf, spread(-7, 7), 1e-15, 0.0, id="erf"),
    pytest.param("erfc", scipy.special.erfc, spread(-7, 26), 1e-13, 0.0, id="erfc"),
    pytest.param("erfinv", scipy.special.erfinv, spread(-0.999, 0.999), 2e-15, 0.0, id="erfinv"),
    pytest.param("lgamma", scipy.special.gammaln, spread(-30, 50), 3e-15, 3e-15, id="lgamma"),
    pytest.param("lgamma", scipy.special.gammaln, spread(50, 1e5), 3e-15, 0.0, id="lgamma-large"),
    pytest.param("digamma", scipy.special.digamma, spread(0.01, 50), 5e-15, 5e-15, id="digamma"),
    pytest.param(
        "polygamma 1",
        lambda x: scipy.special.polygamma(1, x),
        spread(-10, 50),
        3e-15,
        0.0,
        id="polygamma",
    ),
    pytest.param("bessel 0", scipy.special.i0, spread(-50, 50), 5e-15, 0.0, id="i0"),
    pytest.param("bessel 1", scipy.special.i1, spread(-50, 50), 5e-15, 0.0, id="i1"),
]


@pytest.mark.parametrize(("name", "reference", "x", "rtol", "atol"), RANGES)
def test_against_scipy(name: str, reference: Any, x: Any, rtol: float, atol: float) -> None:
    with np.errstate(all="ignore"):
        expected = reference(x)
    np.testing.assert_allclose(compute(name, x), expected, rtol=rtol, atol=atol)


def test_erfinv_inverts() -> None:
    x = 1 - 10.0 ** -np.linspace(0.5, 15, 200)
    np.testing.assert_allclose(compute("erfc", compute("erfinv", x)), 1 - x, rtol=2e-14)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes(name: str) -> None:
    for shape in [(), (0,), (2, 0, 3), (2, 3)]:
        x = np.full(shape, 0.75)
        y = compute(name, x)
        assert np.shape(y) == shape
        assert np.all(y == compute(name, np.array([0.75]))[0])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_input_is_left_alone(name: str) -> None:
    x = np.linspace(-0.9, 0.9, 7)
    before = x.copy()
    compute(name, x)
    np.testing.assert_array_equal(x, before)


def test_complex_of_infinite_parts() -> None:
    z = special.complex_of(np, np.array([INF, 1.0]), np.array([2.0, -INF]))
    assert z.real.tolist() == [INF, 1.0]
    assert z.imag.tolist() == [2.0, -INF]


def test_piecewise_leaves_nan() -> None:
    x = np.array([1.0, 2.0, 3.0])
    y = special.piecewise(np, x, (x < 2, lambda v: v + 10), (x > 2, lambda v: -v))
    np.testing.assert_array_equal(y, [11.0, NAN, -3.0])


def test_polynomial() -> None:
    assert special.polynomial(np.array([2.0]), [1.0, -3.0, 0.5]).tolist() == [-3.0]
    assert special.polynomial(np.array([2.0]), [1.0, 4.0]).tolist() == [9.0]
