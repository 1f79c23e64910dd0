from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import pytest
import scipy.special

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import elementary as m
from laminar.engine.ops.math.arithmetic import sign

from ..harness import check_op

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4))
POSITIVE = rng.uniform(0.2, 3, size=(3, 4))
UNIT = rng.uniform(-0.9, 0.9, size=(3, 4))
HALF = ["float32", "float16", "bfloat16"]


UNARY = [
    pytest.param(m.sqrt, np.sqrt, POSITIVE, id="sqrt"),
    pytest.param(m.rsqrt, lambda x: 1 / np.sqrt(x), POSITIVE, id="rsqrt"),
    pytest.param(m.cbrt, np.cbrt, np.concatenate([POSITIVE, -POSITIVE]), id="cbrt"),
    pytest.param(m.exp, np.exp, X, id="exp"),
    pytest.param(m.exp2, np.exp2, X, id="exp2"),
    pytest.param(m.expm1, np.expm1, X, id="expm1"),
    pytest.param(m.log, np.log, POSITIVE, id="log"),
    pytest.param(m.log1p, np.log1p, UNIT, id="log1p"),
    pytest.param(m.log2, np.log2, POSITIVE, id="log2"),
    pytest.param(m.log10, np.log10, POSITIVE, id="log10"),
    pytest.param(m.sin, np.sin, X, id="sin"),
    pytest.param(m.cos, np.cos, X, id="cos"),
    pytest.param(m.tan, np.tan, UNIT, id="tan"),
    pytest.param(m.arcsin, np.arcsin, UNIT, id="arcsin"),
    pytest.param(m.arccos, np.arccos, UNIT, id="arccos"),
    pytest.param(m.arctan, np.arctan, X, id="arctan"),
    pytest.param(m.sinh, np.sinh, X, id="sinh"),
    pytest.param(m.cosh, np.cosh, X, id="cosh"),
    pytest.param(m.tanh, np.tanh, X, id="tanh"),
    pytest.param(m.arcsinh, np.arcsinh, X, id="arcsinh"),
    pytest.param(m.arccosh, np.arccosh, 1.5 + POSITIVE, id="arccosh"),
    pytest.param(m.arctanh, np.arctanh, UNIT, id="arctanh"),
    pytest.param(m.sigmoid, scipy.special.expit, 3 * X, id="sigmoid"),
    pytest.param(m.sinc, np.sinc, 2 * X, id="sinc"),
    pytest.param(m.erf, scipy.special.erf, X, id="erf"),
    pytest.param(m.erfc, scipy.special.erfc, X, id="erfc"),
    pytest.param(m.erfinv, scipy.special.erfinv, UNIT, id="erfinv"),
    pytest.param(m.lgamma, scipy.special.gammaln, POSITIVE, id="lgamma"),
    pytest.param(m.lgamma, scipy.special.gammaln, UNIT - 2, id="lgamma-negative"),
    pytest.param(m.digamma, scipy.special.digamma, POSITIVE, id="digamma"),
    pytest.param(m.i0, scipy.special.i0, X, id="i0"),
    pytest.param(m.i1, scipy.special.i1, X, id="i1"),
    pytest.param(m.exp, np.exp, np.float64(0.5), id="scalar"),
    pytest.param(m.exp, np.exp, np.zeros((0, 3)), id="empty"),
    pytest.param(m.erf, scipy.special.erf, np.float64(0.5), id="scalar-special"),
    pytest.param(m.lgamma, scipy.special.gammaln, np.zeros((0, 3)), id="empty-special"),
]


@pytest.mark.parametrize(("fn", "reference", "x"), UNARY)
def test_of_one_number(fn: Any, reference: Any, x: Any) -> None:
    check_op(fn, reference, [x], dtypes=HALF)


@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_polygamma(n: int) -> None:
    def reference(x: Any) -> Any:
        return scipy.special.polygamma(n, x)

    check_op(lambda x: m.polygamma(n, x), reference, [POSITIVE], dtypes=["float32"])


BINARY = [
    pytest.param(m.power, np.power, POSITIVE, X, id="power"),
    pytest.param(m.power, np.power, POSITIVE, np.float64(2.5), id="power-scalar"),
    pytest.param(m.power, np.power, POSITIVE, rng.normal(size=(4,)), id="power-broadcast"),
    pytest.param(m.logaddexp, np.logaddexp, X, X[::-1], id="logaddexp"),
    pytest.param(m.logaddexp2, np.logaddexp2, X, X[::-1], id="logaddexp2"),
    pytest.param(m.logaddexp, np.logaddexp, X, X[:, :1] + 1, id="logaddexp-broadcast"),
    pytest.param(m.xlogy, scipy.special.xlogy, X, POSITIVE, id="xlogy"),
    pytest.param(m.xdivy, np.divide, X, POSITIVE, id="xdivy"),
    pytest.param(m.divide_no_nan, np.divide, X, POSITIVE, id="divide-no-nan"),
    pytest.param(m.multiply_no_nan, np.multiply, X, POSITIVE, id="multiply-no-nan"),
    pytest.param(m.arctan2, np.arctan2, X, X[::-1], id="arctan2"),
    pytest.param(m.hypot, np.hypot, X, X[::-1], id="hypot"),
    pytest.param(
        partial(m.root_quotient, epsilon=0.1),
        lambda a, x: a / (np.sqrt(x) + 0.1),
        X,
        POSITIVE,
        id="root-quotient",
    ),
    pytest.param(m.hypot, np.hypot, X, np.zeros((0, 1, 1)), id="empty"),
]


@pytest.mark.parametrize(("fn", "reference", "x", "y"), BINARY)
def test_of_two_numbers(fn: Any, reference: Any, x: Any, y: Any) -> None:
    check_op(fn, reference, [x, y], dtypes=["float32"])


@pytest.mark.parametrize(
    ("fn", "reference"),
    [
        (m.sqrt, np.sqrt),
        (m.rsqrt, lambda z: 1 / np.sqrt(z)),
        (m.exp, np.exp),
        (m.expm1, np.expm1),
        (m.log, np.log),
        (m.log1p, np.log1p),
        (m.sin, np.sin),
        (m.cos, np.cos),
        (m.tan, np.tan),
        (m.arcsin, np.arcsin),
        (m.arccos, np.arccos),
        (m.arctan, np.arctan),
        (m.sinh, np.sinh),
        (m.cosh, np.cosh),
        (m.tanh, np.tanh),
        (m.arcsinh, np.arcsinh),
        (m.arccosh, np.arccosh),
        (m.arctanh, np.arctanh),
        (sign, lambda z: z / np.abs(z)),
        (m.sigmoid, lambda z: 1 / (1 + np.exp(-z))),
        (lambda z: m.power(z, z), lambda z: z**z),
        (lambda z: m.divide_no_nan(z * z, z + 1), lambda z: z * z / (z + 1)),
    ],
)
def test_gradient_for_a_complex_number(fn: Any, reference: Any) -> None:
    z = np.array([0.4 + 0.3j, -0.2 + 0.7j, 0.6 - 0.5j])
    x = convert_to_tensor(z)
    with GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    np.testing.assert_allclose(y.numpy(), reference(z), rtol=1e-12)
    seed = np.array([1.0 - 2.0j, 0.5 + 1.0j, -1.0 + 0.3j])
    found = tape.gradient(y, x, convert_to_tensor(seed)).numpy()
    # L = Re(conj(seed) * f(z)); the gradient is dL/da + i dL/db of z = a + i b.
    step = 1e-6

    def loss_slope(direction: complex) -> Any:
        change = reference(z + step * direction) - reference(z - step * direction)
        return (np.conj(seed) * change).real / (2 * step)

    np.testing.assert_allclose(found, loss_slope(1) + 1j * loss_slope(1j), rtol=1e-7)


def test_the_sign_of_a_complex_zero() -> None:
    x = convert_to_tensor(np.array([0j, 2j]))
    with GradientTape() as tape:
        tape.watch(x)
        y = sign(x)
    np.testing.assert_array_equal(y.numpy(), [0, 1j])
    found = tape.gradient(y, x, convert_to_tensor(np.array([1 + 1j, 1 + 1j]))).numpy()
    np.testing.assert_array_equal(found, [0, 0.5])  # across 2j, over its length


def test_sigmoid_of_a_large_complex_number() -> None:
    found = m.sigmoid(convert_to_tensor(np.array([900 + 1j, -900 + 1j]))).numpy()
    np.testing.assert_array_equal(found, [1, 0])


def values(op: Any, *inputs: Any) -> list[Any]:
    found: list[Any] = op(*(convert_to_tensor(np.asarray(x)) for x in inputs)).numpy().tolist()
    return found


def slopes(op: Any, *inputs: Any) -> list[list[float]]:
    tensors = [convert_to_tensor(np.asarray(x, np.float64)) for x in inputs]
    with GradientTape() as tape:
        tape.watch(tensors)
        y = op(*tensors)
    return [g.numpy().tolist() for g in tape.gradient(y, tensors)]


def same(found: Any, expected: Any) -> None:
    np.testing.assert_array_equal(np.array(found), np.array(expected))


def test_power_of_integers() -> None:
    assert values(m.power, [2, -3, 0], [5, 3, 0]) == [32, -27, 1]
    with pytest.raises(InvalidArgumentError) as caught:
        values(m.power, [2], [-1])
    assert caught.value.message.startswith("Pow(int64[1], int64[1]): Integers to negative")


def test_slopes_of_power_at_the_edges() -> None:
    x, y = [0.0, 0.0, 0.0, 0.0, -2.0, 3.0], [0.0, 1.0, 2.0, 0.5, 3.0, 0.0]
    dx, dy = slopes(m.power, x, y)
    same(dx, [0.0, 1.0, 0.0, math.inf, 12.0, 0.0])
    same(dy, [0.0, 0.0, 0.0, 0.0, 0.0, math.log(3.0)])


def test_second_slope_of_a_square_at_zero() -> None:
    x = convert_to_tensor(np.array([0.0, -1.0]))
    two = convert_to_tensor(np.array(2.0))
    with GradientTape() as outer:
        outer.watch(x)
        with GradientTape() as inner:
            inner.watch(x)
            y = m.power(x, two)
        dx = inner.gradient(y, x)
    same(outer.gradient(dx, x).numpy(), [2.0, 2.0])


def test_infinities_in_logaddexp() -> None:
    x, y = (
        [-math.inf, math.inf, -math.inf, 1e300, 0.0],
        [-math.inf, math.inf, 0.0, -1e300, math.nan],
    )
    with np.errstate(all="ignore"):
        same(values(m.logaddexp, x, y), np.logaddexp(x, y))
        same(values(m.logaddexp2, x, y), np.logaddexp2(x, y))
    same(slopes(m.logaddexp, x[:4], y[:4])[0], [0.5, 0.5, 0.0, 1.0])


def test_zero_times_logarithm() -> None:
    assert values(m.xlogy, [0.0, 0.0, 2.0], [0.0, -1.0, 1.0]) == [0, 0, 0]
    assert values(m.xdivy, [0.0, 2.0], [0.0, 4.0]) == [0, 0.5]
    same(values(m.xlogy, [0.0], [math.nan]), [math.nan])
    same(slopes(m.xlogy, [0.0], [0.0]), [[0.0], [0.0]])


def test_division_by_zero_gives_zero() -> None:
    assert values(m.divide_no_nan, [1.0, 0.0, 3.0], [0.0, 0.0, 2.0]) == [0, 0, 1.5]
    same(slopes(m.divide_no_nan, [1.0, 0.0], [0.0, 0.0]), [[0.0, 0.0], [0.0, 0.0]])


def test_zero_times_anything_is_zero() -> None:
    wild = [0.0, 1.0, math.nan, math.inf, -math.inf]
    nothing = [0.0] * 5
    assert values(m.multiply_no_nan, wild, nothing) == nothing
    same(slopes(m.multiply_no_nan, wild, nothing), [nothing, wild])  # d(x y)/dy is x, as it is


def test_nothing_overflows_on_the_way() -> None:
    np.testing.assert_allclose(values(m.hypot, [3e200], [4e200]), [5e200], rtol=1e-15)
    same(slopes(m.hypot, [0.0], [0.0]), [[0.0], [0.0]])
    np.testing.assert_allclose(slopes(m.arctan2, [3e200], [4e200]), [[1.6e-201], [-1.2e-201]])
    x = np.array([-1e4, -90.0, 90.0, 1e4], np.float32)
    np.testing.assert_allclose(
        m.sigmoid(convert_to_tensor(x)).numpy(), [0.0, 8.1940126e-40, 1.0, 1.0], rtol=1e-4
    )


@pytest.mark.parametrize("order", [0, 1, 2, 3])
def test_derivatives_of_sinc_against_its_integral(order: int) -> None:
    # sinc(x) is the integral of cos(pi x t) over t from 0 to 1
    x = np.array([0.0, 1e-9, 1e-4, 0.3, 0.999, 1.0, 1.001, -1.5, 4.25, -0.7])
    t, w = np.polynomial.legendre.leggauss(60)
    t, w = (t + 1) / 2, w / 2
    angle = np.pi * x[:, None] * t + order * np.pi / 2
    expected = np.sum(w * (np.pi * t) ** order * np.cos(angle), axis=1)
    found = m.sinc(convert_to_tensor(x), order=order).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14 * np.pi**order)


def test_sinc_of_large_whole_numbers_is_zero() -> None:
    assert values(m.sinc, [1e6, -3.0, 1e15]) == [0, 0, 0]


def test_errors() -> None:
    with pytest.raises(DTypeError) as caught:
        m.exp(convert_to_tensor(np.array([1])))
    assert caught.value.message.startswith("Exp: x must be one of ")
    with pytest.raises(InvalidArgumentError) as refused:
        m.polygamma(-1, convert_to_tensor(1.0))
    assert refused.value.message == "polygamma: n must be at least 0, got -1"


def test_result_is_a_tensor_of_the_same_type() -> None:
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        y = m.erf(convert_to_tensor(1.0, dtype))
        assert isinstance(y, Tensor)
        assert y.dtype == dtype
        assert y.numpy().dtype == y.dtype.numpy
