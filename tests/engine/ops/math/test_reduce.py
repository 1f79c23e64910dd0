from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import scipy.special

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import reduce as r

from ..harness import check_op

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4))
HALF = ["float32", "float16", "bfloat16"]


def with_zeros(*places: tuple[int, ...]) -> Any:
    x = X.copy()
    for place in places:
        x[place] = 0
    return x


def norm(x: Any, axis: Any, keepdims: bool) -> Any:
    return np.sqrt(np.sum(x * x, axis=axis, keepdims=keepdims))


def logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    return x if axis == () else scipy.special.logsumexp(x, axis=axis, keepdims=keepdims)


FUNCTIONS = [
    pytest.param(r.reduce_sum, np.sum, id="sum"),
    pytest.param(r.reduce_mean, np.mean, id="mean"),
    pytest.param(r.reduce_variance, np.var, id="variance"),
    pytest.param(r.reduce_prod, np.prod, id="prod"),
    pytest.param(r.reduce_max, np.max, id="max"),
    pytest.param(r.reduce_min, np.min, id="min"),
    pytest.param(r.logsumexp, logsumexp, id="logsumexp"),
    pytest.param(r.euclidean_norm, norm, id="norm"),
]


@pytest.mark.slow
@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [None, 0, -1, (0, 2), (-1, 1), ()], ids=str)
@pytest.mark.parametrize(("fn", "reference"), FUNCTIONS)
def test_axes(fn: Any, reference: Any, axis: Any, keepdims: bool) -> None:
    attrs = {"axis": axis, "keepdims": keepdims}
    check_op(fn, reference, [X], attrs=attrs, dtypes=HALF)


CASES = [
    pytest.param(r.reduce_std, np.std, X, (0, 2), id="std"),
    pytest.param(r.reduce_std, np.std, X, None, id="std-all"),
    pytest.param(r.reduce_sum, np.sum, np.float64(2.5), None, id="sum-scalar"),
    pytest.param(r.reduce_prod, np.prod, np.float64(2.5), None, id="prod-scalar"),
    pytest.param(r.reduce_max, np.max, np.float64(2.5), (), id="max-scalar"),
    pytest.param(r.reduce_sum, np.sum, np.zeros((0, 3)), 0, id="sum-of-none"),
    pytest.param(r.reduce_sum, np.sum, np.zeros((0, 3)), None, id="sum-of-none-at-all"),
    pytest.param(r.reduce_sum, np.sum, np.zeros((0, 3)), 1, id="no-sums"),
    pytest.param(r.reduce_prod, np.prod, np.zeros((0, 3)), 0, id="prod-of-none"),
    pytest.param(r.reduce_mean, np.mean, np.zeros((0, 3)), 1, id="no-means"),
    pytest.param(r.reduce_max, np.max, np.zeros((0, 3)), 1, id="no-maxima"),
    pytest.param(r.reduce_prod, np.prod, with_zeros((0, 1, 2)), 2, id="prod-one-zero"),
    pytest.param(r.reduce_prod, np.prod, with_zeros((0, 1, 2), (0, 1, 0)), 2, id="prod-two-zeros"),
    pytest.param(r.reduce_prod, np.prod, with_zeros((0, 1, 2)), (0, 2), id="prod-zero-two-axes"),
    pytest.param(r.reduce_prod, np.prod, with_zeros((0, 1, 2)), None, id="prod-zero-all-axes"),
]


@pytest.mark.parametrize(("fn", "reference", "x", "axis"), CASES)
def test_special_inputs(fn: Any, reference: Any, x: Any, axis: Any) -> None:
    check_op(fn, reference, [x], attrs={"axis": axis})


@pytest.mark.parametrize("axis", [None, 0, (0, 1)], ids=str)
@pytest.mark.parametrize("keepdims", [False, True])
def test_counting_and_logic(axis: Any, keepdims: bool) -> None:
    x = rng.integers(0, 2, size=(3, 4, 2))
    attrs = {"axis": axis, "keepdims": keepdims}
    check_op(r.count_nonzero, np.count_nonzero, [x], attrs=attrs, grad=False)
    check_op(r.reduce_any, np.any, [x > 0], attrs=attrs, grad=False)
    check_op(r.reduce_all, np.all, [x > 0], attrs=attrs, grad=False)


@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_positions(axis: Any, keepdims: bool) -> None:
    x = rng.integers(0, 4, size=(3, 4, 2))  # with equal ones: the first counts
    attrs = {"axis": axis, "keepdims": keepdims}
    check_op(r.argmax, np.argmax, [x], attrs=attrs, grad=False)
    check_op(r.argmin, np.argmin, [x], attrs=attrs, grad=False)
    assert r.argmax(convert_to_tensor(x)).dtype == "int32"
    assert r.argmax(convert_to_tensor(x), dtype="int64").dtype == "int64"


def test_nan_wins() -> None:
    x = convert_to_tensor(np.array([1.0, math.nan, 3.0]))
    assert math.isnan(r.reduce_max(x).numpy().item())
    assert math.isnan(r.reduce_min(x).numpy().item())
    assert r.argmax(x).numpy().item() == r.argmin(x).numpy().item() == 1


def test_nothing_to_average() -> None:
    assert math.isnan(r.reduce_mean(convert_to_tensor(np.zeros(0))).numpy().item())
    assert math.isnan(r.reduce_variance(convert_to_tensor(np.zeros(0))).numpy().item())
    assert r.logsumexp(convert_to_tensor(np.zeros(0))).numpy().item() == -math.inf
    assert r.euclidean_norm(convert_to_tensor(np.zeros(0))).numpy().item() == 0


def gradient(fn: Any, x: Any) -> Any:
    x = convert_to_tensor(x)
    with GradientTape() as tape:
        tape.watch(x)
        y = fn(x)
    ones = convert_to_tensor(np.ones_like(y.numpy()))
    return tape.gradient(y, x, ones).numpy().tolist()


def test_equal_extremes_share_the_gradient() -> None:
    x = np.array([[3.0, 1.0, 3.0], [2.0, 2.0, 2.0]])
    third = 1 / 3
    assert gradient(lambda x: r.reduce_max(x, 1), x) == [[0.5, 0, 0.5], [third, third, third]]
    assert gradient(lambda x: r.reduce_min(x, 1), x) == [[0, 1, 0], [third, third, third]]


def test_gradients_of_many_in_float16() -> None:
    x = np.ones(70000, np.float16)  # their number is not a float16
    assert gradient(r.reduce_mean, x)[0] == float(np.float16(1 / 70000))
    assert gradient(r.reduce_max, x)[0] == float(np.float16(1 / 70000))


def test_infinities_in_logsumexp() -> None:
    inf = math.inf
    x = np.array([[-inf, -inf], [inf, 1.0], [-inf, 2.0], [1e308, 1e308], [math.nan, 1.0]])
    found = r.logsumexp(convert_to_tensor(x), 1).numpy()
    np.testing.assert_array_equal(found, [-inf, inf, 2.0, 1e308, math.nan])
    assert gradient(lambda x: r.logsumexp(x, 1), x)[:3:2] == [[0, 0], [0, 1]]


def test_norm_does_not_overflow() -> None:
    x = np.array([[3e200, 4e200], [3e-200, 4e-200], [0.0, 0.0], [math.inf, 1.0], [math.nan, 1.0]])
    found = r.euclidean_norm(convert_to_tensor(x), 1).numpy()
    np.testing.assert_allclose(found, [5e200, 5e-200, 0, math.inf, math.nan], rtol=1e-15)
    assert gradient(lambda x: r.euclidean_norm(x, 1), x[2:3]) == [[0, 0]]


def test_norm_of_integers_is_cut_off() -> None:
    """A whole root stays whole; the others are cut off, and squares do not wrap around."""
    x = np.array([[2, 3, 6], [1, 1, 1], [90, 90, 90]])
    expected = np.floor(np.sqrt(np.sum(x.astype("float64") ** 2, axis=1)))
    for dtype in ("int8", "int32", "int64", "uint16"):
        rows = x[:2] if dtype == "int8" else x
        found = r.euclidean_norm(convert_to_tensor(rows.astype(dtype)), 1)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found.numpy(), expected[: len(rows)])


def test_norm_of_complex_numbers() -> None:
    z = rng.normal(size=(3, 4)) + 1j * rng.normal(size=(3, 4))
    x = convert_to_tensor(z)
    with GradientTape() as tape:
        tape.watch(x)
        y = r.euclidean_norm(x, 1)
    expected = np.linalg.norm(z, axis=1)
    np.testing.assert_allclose(y.numpy(), expected, rtol=1e-14)
    seed = np.array([1.0 - 2.0j, 0.5 + 1.0j, -1.0])
    found = tape.gradient(y, x, convert_to_tensor(seed)).numpy()
    np.testing.assert_allclose(found, (seed.real / expected)[:, None] * z, rtol=1e-13)


def test_strings_that_are_not_empty_are_counted() -> None:
    x = convert_to_tensor(np.array([["", "a", "bc"], ["", "", "0"]]))
    assert r.count_nonzero(x, 1).numpy().tolist() == [2, 1]


def test_variance_does_not_cancel() -> None:
    x = convert_to_tensor(np.array([1e8, 1e8 + 1, 1e8 + 2]))
    np.testing.assert_allclose(r.reduce_variance(x).numpy().item(), 2 / 3)


def test_half_types_accumulate_in_float32() -> None:
    for dtype in ("float16", "bfloat16"):
        x = convert_to_tensor(np.full(4096, 1.0), dtype)
        assert r.reduce_sum(x).numpy().item() == 4096
        assert r.reduce_mean(x).numpy().item() == 1


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_integers_keep_their_type(dtype: str) -> None:
    x = convert_to_tensor(np.array([100, 100, 2], dtype))
    for fn in (r.reduce_sum, r.reduce_prod, r.reduce_max, r.reduce_min):
        assert fn(x).dtype == fn(x).numpy().dtype.name == dtype
    assert r.reduce_sum(x).numpy().item() == np.array([202]).astype(dtype)[0]


@pytest.mark.parametrize(("fn", "reference"), [(r.reduce_sum, np.sum), (r.reduce_prod, np.prod)])
def test_complex(fn: Any, reference: Any) -> None:
    z = rng.normal(size=(2, 3)) + 1j * rng.normal(size=(2, 3))
    np.testing.assert_allclose(fn(convert_to_tensor(z), 1).numpy(), reference(z, 1))
    others = np.conj([[z[i, 1] * z[i, 2], z[i, 0] * z[i, 2], z[i, 0] * z[i, 1]] for i in (0, 1)])
    expected = others if fn is r.reduce_prod else np.ones_like(z)
    np.testing.assert_allclose(gradient(lambda z: fn(z, 1), z), expected)


def test_unknown_rank() -> None:
    with Graph().as_default():
        x = placeholder("float32")
        assert r.reduce_sum(x).shape == ()
        assert r.reduce_sum(x, keepdims=True).shape.rank is None
        assert r.reduce_sum(x, -1).shape.rank is None
        assert r.argmax(x, -1).shape.rank is None
        y = placeholder("float32", [None, 3])
        assert r.reduce_sum(y, 1).shape == (None,)
        assert r.reduce_sum(y, 0, keepdims=True).shape == (1, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: r.reduce_sum(convert_to_tensor(X), 3),
            ShapeError,
            "Sum: axis 3 does not exist, the tensor has 3 axes",
        ),
        (
            lambda: r.reduce_sum(convert_to_tensor(X), (0, -3)),
            ShapeError,
            "Sum: an axis is named twice in (0, -3)",
        ),
        (
            lambda: r.reduce_max(convert_to_tensor(np.zeros((2, 0))), 1),
            InvalidArgumentError,
            "Max: there is no element to choose from in float64[2, 0]",
        ),
        (
            lambda: r.argmin(convert_to_tensor(np.zeros(0))),
            InvalidArgumentError,
            "ArgMin: there is no element to choose from in float64[0]",
        ),
        (
            lambda: r.argmax(convert_to_tensor(X), 4),
            ShapeError,
            "ArgMax: axis 4 does not exist, the tensor has 3 axes",
        ),
        (
            lambda: r.reduce_any(convert_to_tensor(np.zeros(2, np.int32))),
            DTypeError,
            "Any: x must be one of bool, got int32[2]",
        ),
    ],
)
def test_errors(call: Any, error: Any, message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert caught.value.message == message
