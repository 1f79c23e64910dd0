"""Nonzero and searchsorted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.graph import Graph
from laminar.engine.ops.array.index import boolean_mask
from laminar.engine.ops.array.search import find_sorted, nonzero, searchsorted
from laminar.engine.ops.core.basic import constant, placeholder

from ..harness import check_op

rng = np.random.default_rng(8)


@pytest.mark.parametrize("shape", [(5,), (3, 4), (2, 0, 3), (2, 3, 2)])
def test_nonzero(shape: tuple[int, ...]) -> None:
    x = rng.integers(0, 2, size=shape)
    for value in (x, x.astype(bool), x * 0.5):
        check_op(nonzero, np.nonzero, [value], grad=False)


def test_nonzero_of_a_scalar() -> None:
    with pytest.raises(ShapeError, match="NonZero: expected .* at least one; got float64"):
        nonzero(constant(np.array(1.0)))
    with Graph().as_default(), pytest.raises(ShapeError, match="known number of axes"):
        nonzero(placeholder("float32", None))


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float32", "float64"])
def test_nan_stands_last(dtype: str) -> None:
    sequence = constant(np.array([1, 2, 3, np.nan, np.nan]), dtype)
    values = constant(np.array([np.nan, 3, 9, 0]), dtype)
    assert searchsorted(sequence, values).numpy().tolist() == [3, 2, 3, 0]
    assert searchsorted(sequence, values, "right").numpy().tolist() == [5, 3, 3, 0]
    assert find_sorted(sequence, values).numpy().tolist() == [-1, 2, -1, -1]


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize(
    ("sequence", "values"),
    [
        ([1.0, 2.0, 2.0, 5.0], [0.0, 1.0, 2.0, 3.0, 9.0]),
        ([1, 2, 2, 5], [[2, 5], [1, -1]]),
        ([1.0, 2.0], 1.5),
        ([], [1.0, 2.0]),
        ([3.0], [[2.0], [3.0], [np.nan]]),
        ([-np.inf, 0.0, np.inf, np.nan, np.nan], [np.nan, np.inf, -np.inf, -0.0, 1.0]),
        (np.arange(300), np.arange(-5, 400, 3)),
    ],
)
def test_searchsorted(sequence: Any, values: Any, side: Any) -> None:
    arrays = [np.asarray(sequence, type(np.ravel(values)[0])), np.asarray(values)]
    check_op(
        lambda s, v: searchsorted(s, v, side),
        lambda s, v: np.asarray(np.searchsorted(s, v, side), np.int32),
        arrays,
        grad=False,
    )


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("rows", [(3,), (2, 3), (0,), (2, 0)])
def test_searchsorted_row_by_row(rows: tuple[int, ...], side: Any) -> None:
    sequence = np.sort(rng.integers(0, 9, (*rows, 7)))
    values = rng.integers(-1, 10, (*rows, 5))

    def reference(s: Any, v: Any) -> Any:
        found = [np.searchsorted(s[row], v[row], side) for row in np.ndindex(rows)]
        return np.reshape(np.asarray(found, np.int32), v.shape)

    check_op(lambda s, v: searchsorted(s, v, side), reference, [sequence, values], grad=False)


def test_searchsorted_refuses() -> None:
    with pytest.raises(ShapeError, match="each row of the sorted sequences"):
        searchsorted(constant(np.zeros((2, 2))), constant(np.zeros(2)))
    with pytest.raises(ShapeError, match="must have an axis"):
        searchsorted(constant(np.zeros(())), constant(np.zeros(2)))
    with pytest.raises(DTypeError, match="one dtype"):
        searchsorted(constant(np.zeros(2)), constant(np.zeros(2, np.int32)))
    with pytest.raises(ValueError, match='side must be "left" or "right"'):
        searchsorted(constant(np.zeros(2)), constant(np.zeros(2)), "middle")


MASKS = [
    pytest.param((4, 3), [True, False, True, False], 0, id="rows"),
    pytest.param((4, 3), [True, False, True], 1, id="columns"),
    pytest.param((4, 3), np.eye(4, 3) > 0, 0, id="elements"),
    pytest.param((2, 4, 3), np.eye(4, 3) > 0, 1, id="inside"),
    pytest.param((4, 3), [False] * 4, 0, id="none"),
]


@pytest.mark.parametrize(("shape", "mask", "axis"), MASKS)
def test_boolean_mask(shape: tuple[int, ...], mask: Any, axis: int) -> None:
    check_op(
        lambda x, m: boolean_mask(x, m, axis),
        lambda x, m: x[(slice(None),) * axis + (m,)],
        [rng.normal(size=shape), np.asarray(mask)],
    )
