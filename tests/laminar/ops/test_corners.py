"""Arguments at the edge of what an op takes: as NumPy and SciPy have them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import special

import laminar
from laminar import layers, ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError

rng = np.random.default_rng(0)
X = rng.normal(size=(2, 3, 4)).astype("float32")
THREE: Any = ops.array(3)
BYTES = np.array([4, 8], "uint8")
EMPTY = np.zeros((1, 0), "float32")
PADDED: list[Any] = [
    (X, ((1, 4), (0, 2), (3, 0))),
    (np.arange(12).reshape(3, 4), (2, 1)),
    (X[0, 0], 5),
]
CASES: list[Any] = [
    pytest.param(lambda: ops.max(EMPTY, initial=1), np.max(EMPTY, initial=1), id="max-empty"),
    pytest.param(lambda: ops.min(EMPTY, axis=1, keepdims=True, initial=2), [[2.0]], id="min-empty"),
    pytest.param(lambda: ops.max(X, axis=1, initial=0), X.max(1, initial=0), id="max-initial"),
    pytest.param(lambda: ops.nanmax(X > 0, axis=0), (X > 0).any(0), id="nanmax-bool"),
    pytest.param(lambda: ops.nanmin(X > 0, axis=0), (X > 0).all(0), id="nanmin-bool"),
    pytest.param(lambda: ops.softmax(X, axis=None), special.softmax(X), id="softmax-all"),
    pytest.param(
        lambda: ops.log_softmax(X, axis=None), special.log_softmax(X), id="log-softmax-all"
    ),
    pytest.param(
        lambda: ops.unique([1.0, np.nan, 0.0, np.nan]), [0, 1, np.nan, np.nan], id="unique-nan"
    ),
    *[
        pytest.param(
            lambda m=m, x=x, w=w: ops.pad(x, w, mode=m), np.pad(x, w, mode=m), id=f"pad-{m}-{i}"
        )
        for m in ("wrap", "linear_ramp", "maximum", "minimum", "mean", "median")
        for i, (x, w) in enumerate(PADDED)
    ],
    pytest.param(lambda: ops.histogram(3.0, 5)[0], np.histogram(3.0, 5)[0], id="histogram-of-one"),
    pytest.param(
        lambda: ops.linspace(1, -4.2, 9, dtype="int32"),
        np.linspace(1, -4.2, 9, dtype="int32"),
        id="linspace-down",
    ),
    pytest.param(lambda: ops.roll(X, (1, 2), 1), np.roll(X, (1, 2), 1), id="roll-twice"),
    pytest.param(lambda: ops.clip(X, None, 0.5), X.clip(None, 0.5), id="clip-above"),
    pytest.param(lambda: ops.clip(BYTES, 5, None), [5, 8], id="clip-below"),
    pytest.param(lambda: ops.divide(BYTES, -4), [-1.0, -2.0], id="divide-bytes"),
    pytest.param(lambda: ops.arctan2(-1, BYTES), np.arctan2(-1, [4, 8]), id="arctan2-bytes"),
    pytest.param(lambda: ops.linspace(0, 1, THREE), [0, 0.5, 1], id="linspace-tensor"),
    pytest.param(
        lambda: ops.meshgrid(X[0], X[1])[1],
        np.meshgrid(X[0].ravel(), X[1].ravel())[1],
        id="meshgrid-of-matrices",
    ),
    pytest.param(
        lambda: ops.rms_normalization(X, scale=X),
        X / np.sqrt((X**2).mean(-1, keepdims=True) + 1e-7) * X,
        id="rms-scale-broadcasts",
    ),
    pytest.param(
        lambda: ops.layer_normalization(X, gamma=X, beta=1 - X),
        (X - X.mean(-1, keepdims=True)) / np.sqrt(X.var(-1, keepdims=True) + 1e-7) * X + 1 - X,
        id="layer-scale-broadcasts",
    ),
    pytest.param(lambda: ops.reshape(X, (None, 2)), X.reshape(-1, 2), id="reshape-none"),
]


@pytest.mark.parametrize(("call", "expected"), CASES)
def test_values(call: Any, expected: Any) -> None:
    found = call().numpy()
    np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
    assert found.shape == np.shape(expected)


def test_types() -> None:
    bits, small = np.ones((2, 2), bool), np.ones((2, 2), "int8")
    assert ops.matmul(bits, small).dtype == "int8"
    assert ops.matmul(small, small).dtype == "int32"
    assert ops.nanmax(bits).dtype == "bool"
    hot = ops.multi_hot([[0, 2]], 3, dtype="bool")
    assert hot.dtype == "bool"
    np.testing.assert_array_equal(hot, [[True, False, True]])
    assert laminar.backend.is_float_dtype(None)
    assert not laminar.backend.is_int_dtype(None)
    wrong: list[Any] = [3.0, np.float32(3), ops.array(3.0)]
    for bad in wrong:
        with pytest.raises(DTypeError, match="whole number"):
            ops.eye(bad)


def test_powers_of_a_vector_of_unknown_length() -> None:
    x = layers.Input((), dtype="float32")
    powers = ops.vander(x)
    assert powers.shape == (None, None)
    given = np.array([2.0, 3.0, 4.0], "float32")
    np.testing.assert_array_equal(laminar.Model(x, powers)(given), np.vander(given))
    found = laminar.Model(x, ops.vander(x, increasing=True))(given)
    np.testing.assert_array_equal(found, np.vander(given, increasing=True))


def test_stretches_without_a_window_are_only_added() -> None:
    options: dict[str, Any] = {"window": None, "center": False}
    x = rng.normal(size=(64,)).astype("float32")
    parts = ops.stft(x, 16, 4, 16, **options)
    found = ops.istft(parts, 16, 4, 16, **options).numpy()
    expected = np.zeros(64)
    for start in range(0, 49, 4):
        expected[start : start + 16] += x[start : start + 16]
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("stride", [0, -5, 1.5])
def test_bad_strides(stride: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="sequence_stride"):
        ops.stft(X[0, 0], 2, stride, 4)
    with pytest.raises(InvalidArgumentError, match="sequence_stride"):
        ops.istft((X[0], X[1]), 2, stride, 4)


def test_no_name_of_another_module_stands_in_the_package() -> None:
    """`laminar.Any` would be taken for a name of Keras's by what looks names up."""
    assert not hasattr(laminar, "Any")


@pytest.mark.parametrize("name", ["dot", "inner", "tensordot", "vdot"])
def test_products_of_booleans(name: str) -> None:
    """Whether any pair is both True."""
    a, b = np.array([[True, False], [False, True]]), np.array([[True, True], [False, False]])
    found = getattr(ops, name)(a, b)
    assert found.dtype == "bool"
    np.testing.assert_array_equal(found, getattr(np, name)(a, b))


@pytest.mark.parametrize("bins", [[1.0, 2.0, 2.0, 3.0], [3.0, 2.0, 2.0, 1.0], [2.0], [5, 5]])
def test_bins_rise_or_fall(bins: list[float]) -> None:
    x, edges = np.array([[0.5, 1.0, 1.5], [2.0, 3.0, 4.0]]), np.array(bins)
    wanted = np.digitize(x, edges)
    np.testing.assert_array_equal(ops.digitize(x, edges), wanted)
    when_run = laminar.function(ops.digitize)
    np.testing.assert_array_equal(when_run(ops.array(x), ops.array(edges)), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "uint32", "int64", "bool"])
def test_bincount_of_every_whole_type(dtype: str) -> None:
    x = np.array([0, 1, 1, 127]).astype(dtype)
    np.testing.assert_array_equal(ops.bincount(x), np.bincount(x))


def test_slices_leave_out_the_last_axes() -> None:
    np.testing.assert_array_equal(ops.slice(X, (1,), (1,)), X[1:])
    np.testing.assert_array_equal(ops.slice(X, [0, 1], [2, -1]), X[:, 1:])
    outputs = ops.slice(laminar.Input((3, 4)), (0, 1), (-1, 2))
    assert tuple(outputs.shape) == (None, 2, 4)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ops.digitize(X, [3.0, 1.0, 2.0]), InvalidArgumentError, "neither rise nor fall"),
        (lambda: ops.digitize(X, [[1.0, 2.0]]), ShapeError, "bins of one axis"),
        (lambda: ops.bincount([-1, 2]), InvalidArgumentError, "a number is negative: -1"),
        (lambda: ops.bincount([1, 2], minlength=-1), InvalidArgumentError, "minlength cannot be"),
        (lambda: ops.bincount([1.0, 2.0]), DTypeError, "expected whole numbers"),
        (lambda: ops.one_hot([1.0, 1.5], 3), InvalidArgumentError, "one_hot: .* got 1.5"),
        (lambda: ops.multi_hot([1.0, np.nan], 3), InvalidArgumentError, "multi_hot: .* got nan"),
        (lambda: ops.geomspace(0, 1), InvalidArgumentError, "got it as start"),
        (lambda: ops.geomspace(1.0, [2.0, 0.0]), InvalidArgumentError, "got it as stop"),
        (lambda: ops.take(X, [0.5]), DTypeError, "take: indices must be whole"),
        (lambda: ops.take_along_axis(X, X, 0), DTypeError, "take_along_axis: indices must be"),
        (lambda: ops.unravel_index([6], (2, 3)), InvalidArgumentError, "has 6 elements"),
        (lambda: ops.unravel_index([-7], (2, 3)), InvalidArgumentError, "has 6 elements"),
        (lambda: ops.unravel_index([1.0], (2, 3)), DTypeError, "unravel_index: indices must be"),
        (lambda: ops.quantile(X, 1.5), InvalidArgumentError, "quantile: q must be from 0 to 1"),
        (lambda: ops.percentile(X, [5, np.nan]), InvalidArgumentError, "from 0 to 100, got"),
        (lambda: ops.histogram([1.0, np.nan]), InvalidArgumentError, "not all finite"),
        (lambda: ops.histogram([1.0], [2.0, 0.0]), InvalidArgumentError, "do not rise"),
        (lambda: ops.slice(X, (1,), (1, 2)), ShapeError, "Slice: expected one number for each"),
    ],
)
def test_what_numpy_refuses(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_class_numbers_may_be_whole_floats() -> None:
    np.testing.assert_array_equal(ops.one_hot([2.0, -1.0], 3), [[0, 0, 1], [0, 0, 0]])
