from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.special

from laminar.engine.gradients import GradientTape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.nn import activations as a

from ..harness import check_op

rng = np.random.default_rng(0)
X = 3 * rng.normal(size=(3, 4))


def expm1_below_zero(x: Any) -> Any:
    return np.expm1(np.minimum(x, 0))


def softplus(x: Any) -> Any:
    return np.logaddexp(x, 0)


def gelu(x: Any, approximate: bool = True) -> Any:
    if approximate:
        return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return x * scipy.special.ndtr(x)


def selu(x: Any) -> Any:
    scale, alpha = 1.0507009873554805, 1.6732632423543772
    return scale * np.where(x > 0, x, alpha * expm1_below_zero(x))


def elu(x: Any, alpha: float = 1.0) -> Any:
    return np.where(x > 0, x, alpha * expm1_below_zero(x))


def celu(x: Any, alpha: float = 1.0) -> Any:
    return np.maximum(x, 0) + alpha * expm1_below_zero(x / alpha)


def hard_sigmoid(x: Any) -> Any:
    return np.clip(x + 3, 0, 6) / 6


def sparse_plus(x: Any) -> Any:
    return np.select([x <= -1, x < 1], [0 * x, (x + 1) ** 2 / 4], x)


CASES = [
    pytest.param(a.relu, lambda x: np.maximum(x, 0), {}, id="relu"),
    pytest.param(a.relu6, lambda x: np.clip(x, 0, 6), {}, id="relu6"),
    pytest.param(a.hard_tanh, lambda x: np.clip(x, -1, 1), {}, id="hard-tanh"),
    pytest.param(a.hard_sigmoid, hard_sigmoid, {}, id="hard-sigmoid"),
    pytest.param(a.sparse_sigmoid, lambda x: np.clip((x + 1) / 2, 0, 1), {}, id="sparse-sigmoid"),
    pytest.param(a.leaky_relu, lambda x: np.where(x > 0, x, 0.2 * x), {}, id="leaky-relu"),
    pytest.param(
        a.leaky_relu,
        lambda x, negative_slope: np.where(x > 0, x, negative_slope * x),
        {"negative_slope": 1.5},
        id="leaky-relu-steep",
    ),
    pytest.param(a.hard_shrink, lambda x: x * (np.abs(x) > 0.5), {}, id="hard-shrink"),
    pytest.param(
        a.soft_shrink,
        lambda x, threshold: np.sign(x) * np.maximum(np.abs(x) - threshold, 0),
        {"threshold": 1.25},
        id="soft-shrink",
    ),
    pytest.param(
        a.threshold,
        lambda x, threshold, value: np.where(x > threshold, x, value),
        {"threshold": 0.5, "value": -2.0},
        id="threshold",
    ),
    pytest.param(a.elu, elu, {}, id="elu"),
    pytest.param(a.elu, elu, {"alpha": 0.3}, id="elu-alpha"),
    pytest.param(a.elu, elu, {"alpha": -0.5}, id="elu-negative-alpha"),
    pytest.param(a.celu, celu, {}, id="celu"),
    pytest.param(a.celu, celu, {"alpha": 2.5}, id="celu-alpha"),
    pytest.param(a.selu, selu, {}, id="selu"),
    pytest.param(a.softplus, softplus, {}, id="softplus"),
    pytest.param(a.log_sigmoid, lambda x: -softplus(-x), {}, id="log-sigmoid"),
    pytest.param(a.softsign, lambda x: x / (1 + np.abs(x)), {}, id="softsign"),
    pytest.param(a.tanh_shrink, lambda x: x - np.tanh(x), {}, id="tanh-shrink"),
    pytest.param(a.silu, lambda x: x * scipy.special.expit(x), {}, id="silu"),
    pytest.param(a.gelu, gelu, {}, id="gelu"),
    pytest.param(a.gelu, gelu, {"approximate": False}, id="gelu-exact"),
    pytest.param(a.squareplus, lambda x: (x + np.sqrt(x * x + 4)) / 2, {}, id="squareplus"),
    pytest.param(
        a.squareplus, lambda x, b: (x + np.sqrt(x * x + b)) / 2, {"b": 0.5}, id="squareplus-b"
    ),
    pytest.param(a.hard_silu, lambda x: x * hard_sigmoid(x), {}, id="hard-silu"),
    pytest.param(a.sparse_plus, sparse_plus, {}, id="sparse-plus"),
]


@pytest.mark.slow
@pytest.mark.parametrize(("fn", "reference", "attrs"), CASES)
@pytest.mark.parametrize("x", [X, X[0, 0], X[:0]], ids=["matrix", "scalar", "empty"])
def test_value_and_derivatives(fn: Any, reference: Any, attrs: Any, x: Any) -> None:
    check_op(fn, reference, [x], attrs=attrs, dtypes=["float32", "float16", "bfloat16"])


SMOOTH = [case for case in CASES if case.id in ("gelu", "gelu-exact", "silu", "softplus", "elu")]


@pytest.mark.parametrize(("fn", "reference", "attrs"), SMOOTH)
def test_third_derivative(fn: Any, reference: Any, attrs: Any) -> None:
    def second(value: Any) -> tuple[Any, Any]:
        x = convert_to_tensor(value)
        with GradientTape() as third:
            third.watch(x)
            with GradientTape() as outer:
                outer.watch(x)
                with GradientTape() as inner:
                    inner.watch(x)
                    y = fn(x, **attrs)
                slope = inner.gradient(y, x)
            bend = outer.gradient(slope, x)
        return bend.numpy(), third.gradient(bend, x).numpy()

    step = 1e-6
    numeric = (second(X + step)[0] - second(X - step)[0]) / (2 * step)
    np.testing.assert_allclose(second(X)[1], numeric, rtol=1e-5, atol=1e-8)


EXTREMES = {
    # value at -1e4, at 1e4, and the slopes there
    "relu": (a.relu, 0.0, 1e4, 0.0, 1.0),
    "elu": (a.elu, -1.0, 1e4, 0.0, 1.0),
    "celu": (a.celu, -1.0, 1e4, 0.0, 1.0),
    "softplus": (a.softplus, 0.0, 1e4, 0.0, 1.0),
    "log_sigmoid": (a.log_sigmoid, -1e4, 0.0, 1.0, 0.0),
    "silu": (a.silu, 0.0, 1e4, 0.0, 1.0),
    "gelu": (a.gelu, 0.0, 1e4, 0.0, 1.0),
    "hard_silu": (a.hard_silu, 0.0, 1e4, 0.0, 1.0),
    "sparse_plus": (a.sparse_plus, 0.0, 1e4, 0.0, 1.0),
}


@pytest.mark.parametrize(
    ("fn", "low", "high", "slope_low", "slope_high"), EXTREMES.values(), ids=EXTREMES
)
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_large_inputs(
    fn: Any, low: float, high: float, slope_low: float, slope_high: float, dtype: str
) -> None:
    x = convert_to_tensor([-1e4, 1e4], dtype)
    with GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    assert y.numpy().tolist() == [low, high]
    assert tape.gradient(y, x).numpy().tolist() == [slope_low, slope_high]


def test_gelu_slope_does_not_overflow_in_float32() -> None:
    x = convert_to_tensor([-1e30, 1e30], "float32")
    for approximate in (True, False):
        with GradientTape() as tape:
            tape.watch(x)
            y = a.gelu(x, approximate=approximate)
        assert y.numpy().tolist() == [0.0, float(np.float32(1e30))]
        assert tape.gradient(y, x).numpy().tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("fn", "x", "expected"),
    [
        # x * the normal distribution function, from its asymptotic series, where 1 + erf is 0
        (lambda x: a.gelu(x, approximate=False), -10.0, -7.6198530241605255e-23),
        (a.silu, -60.0, -60 * 8.756510762696520e-27),
        (a.softplus, -60.0, 8.756510762696520e-27),
        (a.log_sigmoid, 60.0, -8.756510762696520e-27),
        (a.squareplus, -1e9, 1e-9),
    ],
    ids=["gelu", "silu", "softplus", "log-sigmoid", "squareplus"],
)
def test_nothing_cancels_in_the_tail(fn: Any, x: float, expected: float) -> None:
    np.testing.assert_allclose(
        fn(convert_to_tensor(x, "float64")).numpy().item(), expected, rtol=1e-13
    )


@pytest.mark.parametrize(("fn", "reference", "attrs"), CASES)
def test_nan_stays(fn: Any, reference: Any, attrs: Any) -> None:
    assert np.isnan(fn(convert_to_tensor(np.nan), **attrs).numpy().item())


def test_relu_of_integers() -> None:
    y = a.relu(convert_to_tensor(np.array([-2, 3], np.int8)))
    assert y.dtype == "int8"
    assert y.numpy().tolist() == [0, 3]


def test_relu_gradient_ignores_what_it_cuts() -> None:
    x = convert_to_tensor([-1.0, 0.0, 2.0])
    with GradientTape() as tape:
        tape.watch(x)
        y = a.relu(x)
    dx = tape.gradient(y, x, convert_to_tensor([np.inf, np.nan, 3.0]))
    assert dx.numpy().tolist() == [0, 0, 3]
