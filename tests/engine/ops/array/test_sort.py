"""Sort, argsort, top_k, in_top_k, unique, quantile, median."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, TensorShape
from laminar.engine.ops.array.quantile import median, quantile
from laminar.engine.ops.array.sort import argsort, in_top_k, sort, top_k
from laminar.engine.ops.array.unique import unique
from laminar.engine.ops.core.basic import constant, placeholder

from ..harness import check_op

rng = np.random.default_rng(14)

TYPES = ["float16", "bfloat16", "float32", "int8", "uint8", "bool"]

SHAPES = [
    pytest.param((7,), -1, id="vector"),
    pytest.param((3, 5), -1, id="last"),
    pytest.param((3, 5), 0, id="first"),
    pytest.param((2, 3, 4), 1, id="inside"),
    pytest.param((3, 0), 1, id="empty"),
    pytest.param((1,), 0, id="one"),
]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_sort(shape: tuple[int, ...], axis: int, descending: bool) -> None:
    def reference(x: Any) -> Any:
        return np.flip(np.sort(x, axis), axis) if descending else np.sort(x, axis)

    check_op(lambda x: sort(x, axis, descending), reference, [rng.normal(size=shape)], dtypes=TYPES)


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize(("shape", "axis"), SHAPES)
def test_argsort_keeps_the_order_of_equals(
    shape: tuple[int, ...], axis: int, descending: bool
) -> None:
    def reference(x: Any) -> Any:
        key = -x if descending else x
        return np.argsort(key, axis, kind="stable").astype(np.int32)

    x = rng.integers(0, 3, size=shape)
    check_op(lambda x: argsort(x, axis, descending), reference, [x], grad=False)
    check_op(lambda x: argsort(x, axis, descending), reference, [x * 0.5], grad=False)


def test_argsort_without_order_of_equals() -> None:
    x = rng.integers(0, 9, size=(4, 50))
    order = argsort(constant(x), stable=False).numpy()
    np.testing.assert_array_equal(np.take_along_axis(x, order, -1), np.sort(x))
    assert (np.sort(order) == np.arange(50)).all()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_nan_counts_as_the_greatest(dtype: str) -> None:
    x = constant(np.array([np.nan, 1.0, np.inf, -1.0]), dtype)
    assert repr(sort(x).numpy().tolist()) == "[-1.0, 1.0, inf, nan]"
    values, first, inverse, counts = unique(constant(np.array([1, np.nan, 0, np.nan, 1]), dtype))
    assert repr(values.numpy().tolist()) == "[0.0, 1.0, nan, nan]"  # no NaN equals another
    assert values.dtype == dtype
    assert [first.numpy().tolist(), inverse.numpy().tolist()] == [[2, 0, 1, 3], [1, 2, 0, 3, 1]]
    assert counts.numpy().tolist() == [1, 2, 1, 1]
    assert argsort(x).numpy().tolist() == [3, 1, 2, 0]
    assert argsort(x, descending=True).numpy().tolist() == [0, 2, 1, 3]
    assert top_k(x, 2)[1].numpy().tolist() == [0, 2]


def reference_top_k(x: Any, k: int, is_sorted: bool) -> tuple[Any, Any]:
    order = np.argsort(-x.astype(float), -1, kind="stable")[..., :k]
    if not is_sorted:
        order = np.sort(order, -1)
    return np.take_along_axis(x, order, -1), order.astype(np.int32)


TOP = [
    pytest.param((6,), 3, id="vector"),
    pytest.param((3, 6), 1, id="one"),
    pytest.param((3, 6), 6, id="all"),
    pytest.param((3, 6), 0, id="none"),
    pytest.param((0, 6), 2, id="empty"),
    pytest.param((2, 3, 100), 7, id="long-lines"),
    pytest.param((2, 100), 99, id="nearly-all"),
]


@pytest.mark.parametrize("is_sorted", [True, False])
@pytest.mark.parametrize(("shape", "k"), TOP)
def test_top_k(shape: tuple[int, ...], k: int, is_sorted: bool) -> None:
    check_op(
        lambda x: top_k(x, k, is_sorted),
        lambda x: reference_top_k(x, k, is_sorted),
        [rng.normal(size=shape)],
        dtypes=["float16", "bfloat16", "int32"],
    )
    ties = rng.integers(0, 4, size=shape)
    check_op(
        lambda x: top_k(x, k, is_sorted),
        lambda x: reference_top_k(x, k, is_sorted),
        [ties],
        grad=False,
    )


def test_top_k_of_long_lines_with_nan_and_infinity() -> None:
    x = rng.normal(size=(3, 200))
    x[0, 5] = np.nan
    x[1, 7] = np.inf
    x[2, :] = -np.inf
    values, indices = (t.numpy() for t in top_k(constant(x), 3))
    assert indices[0, 0] == 5
    assert indices[1, 0] == 7
    assert indices[2].tolist() == [0, 1, 2]
    np.testing.assert_array_equal(values, np.take_along_axis(x, indices, -1))


IN_TOP = [
    pytest.param([1, 0, 2], [[0.1, 0.9, 0.3], [0.1, 0.9, 0.3], [0.5, 0.5, 0.5]], id="ties"),
    pytest.param([3, -1], [[0.1, 0.9, 0.3], [0.1, 0.9, 0.3]], id="no-class"),
    pytest.param([1, 0], [[0.1, np.nan, 0.3], [np.inf, 0.9, 0.3]], id="not-finite"),
    pytest.param([[1], [0]], [[[0.1, 0.9]], [[0.1, 0.9]]], id="two-axes"),
    pytest.param(1, [0.1, 0.2], id="one-row"),
    pytest.param(np.zeros(0, np.int32), np.zeros((0, 3)), id="empty"),
    pytest.param([0, 1], np.zeros((2, 0)), id="no-classes"),
]


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize(("targets", "predictions"), IN_TOP)
def test_in_top_k(targets: Any, predictions: Any, k: int) -> None:
    def reference(t: Any, p: Any) -> Any:
        out = np.zeros(t.shape, bool)
        for place in np.ndindex(t.shape):
            row = p[place].tolist()
            if 0 <= t[place] < len(row) and np.isfinite(row[t[place]]):
                out[place] = sum(v > row[t[place]] for v in row) < k
        return out

    arrays = [np.asarray(targets), np.asarray(predictions, float)]
    check_op(lambda t, p: in_top_k(t, p, k), reference, arrays, grad=False, dtypes=["float32"])


UNIQUES = [
    pytest.param([3, 1, 3, 2, 1], None, id="vector"),
    pytest.param([[3, 1], [3, 2]], None, id="matrix"),
    pytest.param([[3, 1], [3, 1], [0, 9]], 0, id="rows"),
    pytest.param([[3, 1, 3], [3, 1, 3]], 1, id="columns"),
    pytest.param(np.zeros(0, np.int64), None, id="empty"),
    pytest.param([0.5, -1.0, 0.5], None, id="floats"),
]


@pytest.mark.parametrize(("values", "axis"), UNIQUES)
def test_unique(values: Any, axis: int | None) -> None:
    def reference(x: Any) -> Any:
        found, first, inverse, counts = np.unique(
            x, return_index=True, return_inverse=True, return_counts=True, axis=axis
        )
        inverse = inverse.reshape(x.shape if axis is None else -1)
        return found, *(i.astype(np.int32) for i in (first, inverse, counts))

    check_op(lambda x: unique(x, axis), reference, [np.asarray(values)], grad=False)


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 9])
        assert sort(x).shape == TensorShape([None, 9])
        assert [t.shape for t in top_k(x, 4)] == [TensorShape([None, 4])] * 2
        assert [t.shape for t in unique(x, 0)] == [
            TensorShape([None, 9]),
            TensorShape([None]),
            TensorShape([None]),
            TensorShape([None]),
        ]
        assert in_top_k(placeholder("int32", [5]), x, 2).shape == TensorShape([5])
        assert quantile(x, [0.1, 0.2], 0).shape == TensorShape([2, 9])
        assert quantile(x, 0.1, 1, keepdims=True).shape == TensorShape([None, 1])


QUANTILES = [
    pytest.param((7,), 0.3, None, False, id="vector"),
    pytest.param((4, 5), [0.0, 0.25, 0.5, 1.0], 1, False, id="several"),
    pytest.param((4, 5), [[0.1, 0.9]], 0, True, id="keepdims"),
    pytest.param((2, 3, 4), [0.1, 0.6], (0, -1), False, id="two-axes"),
    pytest.param((2, 3, 4), 0.77, (2, 0), True, id="two-axes-keepdims"),
    pytest.param((2, 3), 0.5, None, True, id="all-keepdims"),
    pytest.param((1,), [0.3, 0.9], 0, False, id="one-element"),
    pytest.param((0, 3), [0.3], 1, False, id="empty"),
]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["linear", "lower", "higher", "midpoint", "nearest"])
@pytest.mark.parametrize(("shape", "q", "axis", "keepdims"), QUANTILES)
def test_quantile(shape: tuple[int, ...], q: Any, axis: Any, keepdims: bool, method: Any) -> None:
    check_op(
        lambda x: quantile(x, q, axis, method, keepdims),
        lambda x: np.quantile(x, q, axis=axis, method=method, keepdims=keepdims),
        [rng.normal(size=shape)],
        dtypes=["float32", "float16"],
    )


def test_a_fraction_known_at_run_time() -> None:
    check_op(
        lambda x, q: quantile(x, q, 0),
        lambda x, q: np.quantile(x, q, axis=0),
        [rng.normal(size=(5, 2)), np.array([0.1, 0.83])],
    )


@pytest.mark.parametrize("axis", [None, 0, -1, (0, 1)])
@pytest.mark.parametrize("shape", [(4, 5), (3, 2)])
def test_median(shape: tuple[int, ...], axis: Any) -> None:
    check_op(
        lambda x: median(x, axis),
        lambda x: np.median(x, axis=axis),
        [rng.normal(size=shape)],
        dtypes=["float32", "bfloat16"],
    )


def test_quantile_of_nan_and_infinity() -> None:
    x = constant(np.array([[1.0, np.nan, 2.0], [np.inf, np.inf, 1.0], [-np.inf, 0.0, np.inf]]))
    assert np.isnan(quantile(x, [0.0, 0.5], 1).numpy()[:, 0]).all()
    np.testing.assert_array_equal(quantile(x, 0.75, 1).numpy()[1:], [np.inf, np.inf])
    np.testing.assert_array_equal(median(x, 1).numpy()[1:], [np.inf, 0])


ERRORS = [
    pytest.param(lambda x: sort(x, 2), ShapeError, "Sort: axis 2 does not exist", id="sort"),
    pytest.param(lambda x: top_k(x, 4), ShapeError, r"\[2, 3\] does not hold 4 elements", id="k"),
    pytest.param(lambda x: top_k(x, -1), InvalidArgumentError, "negative, got -1", id="minus-k"),
    pytest.param(
        lambda x: in_top_k(constant([0, 1, 2]), x, 1),
        ShapeError,
        r"InTopK: the targets int32\[3\] do not stand for rows",
        id="in-top-k",
    ),
    pytest.param(
        lambda x: in_top_k(constant([0.0, 1.0]), x, 1), DTypeError, "InTopK: targets", id="targets"
    ),
    pytest.param(
        lambda x: quantile(x, 0.5, method="cubic"),
        InvalidArgumentError,
        "method must be one of .* got 'cubic'",
        id="method",
    ),
    pytest.param(lambda x: quantile(x, 0.5, 2), ShapeError, "quantile: axis 2", id="axis"),
    pytest.param(lambda x: unique(x, 5), ShapeError, "Unique: axis 5", id="unique"),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((2, 3))))
