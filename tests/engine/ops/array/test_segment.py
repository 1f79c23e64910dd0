from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.graph import Graph
from laminar.engine.ops.array import segment as g
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(0)
X = rng.normal(size=(7, 2))
IDS = np.array([2, 0, 2, 4, 0, 2, 4])
HALF = ["float32", "float16", "bfloat16"]


def by_segment(combine: Any, empty: float) -> Any:
    def fn(data: Any, ids: Any, num_segments: int | None = None, is_sorted: bool = False) -> Any:
        count = max(ids.tolist(), default=-1) + 1 if num_segments is None else num_segments
        y = np.full((count, *data.shape[1:]), empty, data.dtype)
        for k in range(count):
            if np.any(ids == k):
                y[k] = combine(data[ids == k], 0)
        return y

    return fn


FUNCTIONS = [
    pytest.param(g.segment_sum, by_segment(np.sum, 0), id="sum"),
    pytest.param(g.segment_prod, by_segment(np.prod, 1), id="prod"),
    pytest.param(g.segment_max, by_segment(np.max, -math.inf), id="max"),
    pytest.param(g.segment_min, by_segment(np.min, math.inf), id="min"),
]
CASES = [
    pytest.param(X, IDS, {"num_segments": 5}, id="unsorted"),
    pytest.param(X, IDS // 2, {"num_segments": 3}, id="full"),
    pytest.param(X, np.sort(IDS), {"num_segments": 5, "is_sorted": True}, id="sorted"),
    pytest.param(X, IDS, {}, id="counted"),
    pytest.param(X[:, 0], IDS, {"num_segments": 5}, id="vector"),
    pytest.param(X[:, :, None], IDS - 2, {"num_segments": 2}, id="out-of-range"),
    pytest.param(X[:, :0], IDS, {"num_segments": 3}, id="no-columns"),
    pytest.param(X[:0], IDS[:0], {"num_segments": 3}, id="no-rows"),
    pytest.param(X[:0], IDS[:0], {}, id="no-rows-counted"),
    pytest.param(X, IDS, {"num_segments": 0}, id="no-segments"),
    pytest.param(X, IDS.astype(np.uint8), {"num_segments": 5}, id="unsigned"),
]


@pytest.mark.parametrize(("x", "ids", "attrs"), CASES)
@pytest.mark.parametrize(("fn", "reference"), FUNCTIONS)
def test_segments(fn: Any, reference: Any, x: Any, ids: Any, attrs: Any) -> None:
    bounded = fn in (g.segment_sum, g.segment_prod)
    # -inf and inf of empty segments have no differences to compare with
    grad = bounded or set(ids) >= set(
        range(attrs.get("num_segments", max(ids.tolist(), default=-1) + 1))
    )
    check_op(fn, reference, [x, ids], attrs=attrs, dtypes=HALF, grad=grad)


@pytest.mark.parametrize("op", ["SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin"])
@pytest.mark.parametrize("rows", [0, 1, 2, 3, 17, 64, 100])
def test_portable_kernel_agrees(op: str, rows: int) -> None:
    definition = lookup(op)
    assert definition.reference_kernel is not None
    for x in (rng.normal(size=(rows, 3)), rng.integers(0, 5, size=rows)):
        ids = rng.integers(-1, 6, size=rows)
        attrs: dict[str, Any] = {"num_segments": 5, "is_sorted": False}
        with np.errstate(all="ignore"):
            found = definition.reference_kernel(np, x, ids, **attrs)
        np.testing.assert_allclose(found, definition.kernels["cpu"](x, ids, **attrs), rtol=1e-12)


def gradient(fn: Any, x: Any, ids: Any) -> Any:
    data = convert_to_tensor(np.array(x))
    with GradientTape() as tape:
        tape.watch(data)
        y = fn(data, convert_to_tensor(np.array(ids)))
    return tape.gradient(y, data).numpy().tolist()


def test_gradient_of_a_product_with_zeros() -> None:
    x, ids = [0.0, 2.0, 3.0, 0.0, 0.0, 5.0], [0, 0, 0, 1, 1, 2]
    assert gradient(g.segment_prod, x, ids) == [6, 0, 0, 0, 0, 1]


def test_equal_extremes_share_the_gradient() -> None:
    assert gradient(g.segment_max, [1.0, 1.0, 0.0, 7.0], [0, 0, 0, 1]) == [0.5, 0.5, 0, 1]
    assert gradient(g.segment_min, [1.0, 1.0, 0.0, 7.0], [0, 0, 0, 1]) == [0, 0, 1, 1]


def test_rows_left_out_get_no_gradient() -> None:
    for fn in (g.segment_sum, g.segment_max):
        assert gradient(lambda x, ids, fn=fn: fn(x, ids, 1), [1.0, 2.0, 3.0], [0, 1, -1]) == [
            1,
            0,
            0,
        ]


def test_integers() -> None:
    x, ids = convert_to_tensor(np.array([3, 4, 5], np.int16)), convert_to_tensor([1, 1, 0])
    assert g.segment_sum(x, ids, 3).numpy().tolist() == [5, 7, 0]
    assert g.segment_max(x, ids, 3).numpy().tolist() == [5, 4, -32768]
    assert g.segment_min(x, ids, 3).numpy().tolist() == [5, 3, 32767]
    assert g.segment_sum(x, ids, 3).numpy().dtype == np.int16


def test_number_of_segments_known_at_run_time() -> None:
    graph = Graph()
    with graph.as_default():
        x, ids, count = (
            placeholder("float64", [None]),
            placeholder("int32", [None]),
            placeholder("int32", []),
        )
        y = g.segment_sum(x, ids, count)
    assert y.shape == (None,)
    with Session(graph=graph) as session:
        found = session.run(y, {x: np.array([1.0, 2.0]), ids: np.array([1, 1], np.int32), count: 3})
    assert found.tolist() == [0, 3, 0]


@pytest.mark.parametrize("size", [None, 3, 8])
def test_bincount(size: int | None) -> None:
    x = np.array([[1, 5, 1], [0, 1, 5]])
    length = 6 if size is None else size

    def counts(x: Any) -> Any:
        return np.bincount(x.ravel(), minlength=length)[:length].astype(np.int32)

    check_op(lambda x: g.bincount(x, size=size), counts, [x], grad=False)

    def sums(x: Any, w: Any) -> Any:
        return np.bincount(x.ravel(), w.ravel(), minlength=length)[:length]

    weights = rng.normal(size=x.shape)
    check_op(lambda x, w: g.bincount(x, w, size), sums, [x, weights], dtypes=["float32"])


@pytest.mark.parametrize(
    ("data", "ids", "message"),
    [
        (
            (3, 2),
            (2,),
            "SegmentSum: there must be one id for each row, got 2 ids for 3 rows "
            "(data is float64[3, 2], segment_ids is int64[2])",
        ),
        ((3, 2), (3, 2), "SegmentSum: segment_ids must be a vector, got int64[3, 2]"),
        ((), (1,), "SegmentSum: data has no axis of rows, got float64[]"),
    ],
)
def test_errors(data: Any, ids: Any, message: str) -> None:
    with pytest.raises(ShapeError) as caught:
        g.segment_sum(convert_to_tensor(np.zeros(data)), convert_to_tensor(np.zeros(ids, int)), 4)
    assert caught.value.message == message
