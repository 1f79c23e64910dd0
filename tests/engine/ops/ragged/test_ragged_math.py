"""Ragged tensors computed with, against NumPy row by row; and as dense and sparse tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine, ops
from laminar.engine.errors import InvalidArgumentError, ShapeError
from tests.engine.ops.ragged.test_ragged_structure import DEEP, FLAT, both_ways, lists

TABLE = [
    ("sum", np.sum, 0),
    ("prod", np.prod, 1),
    ("max", np.max, np.iinfo(np.int32).min),
    ("min", np.min, np.iinfo(np.int32).max),
]


@pytest.mark.parametrize(("kind", "fn", "empty"), TABLE)
def test_reductions(kind: str, fn: Callable[..., Any], empty: int) -> None:
    def over(values: list[int]) -> int:
        return int(fn(values)) if values else empty

    def reduce(axis: Any) -> Callable[[Any], Any]:
        return lambda x: engine.ragged_reduce(kind, x, axis)

    assert both_ways(reduce(None), FLAT) == over(sum(FLAT, []))
    assert both_ways(reduce(1), FLAT) == [over(r) for r in FLAT]
    columns = [[r[i] for r in FLAT if len(r) > i] for i in range(3)]
    assert both_ways(reduce(0), FLAT) == [over(c) for c in columns]
    assert both_ways(reduce(-1), DEEP) == [[over(r) for r in x] for x in DEEP]
    across = [[x[i] for x in DEEP if len(x) > i] for i in range(3)]
    expected = [
        [over([r[k] for r in rows if len(r) > k]) for k in range(max(map(len, rows)))]
        for rows in across
    ]
    assert both_ways(reduce(0), DEEP) == expected


def test_means_and_truths() -> None:
    given = [[1.0, 2.0], [6.0]]
    reduce = engine.ragged_reduce
    assert both_ways(lambda x: reduce("mean", x, 1), given) == [1.5, 6]
    assert both_ways(lambda x: reduce("mean", x, 0), given) == [3.5, 2]
    deep = [[[1.0, 2.0], [6.0]], [[4.0]]]
    assert both_ways(lambda x: reduce("mean", x, (1, 2)), deep) == [3, 4]
    assert both_ways(lambda x: reduce("any", x > 3, 1), FLAT) == [
        any(n > 3 for n in r) for r in FLAT
    ]
    assert both_ways(lambda x: reduce("all", x > 3, 1), FLAT) == [
        all(n > 3 for n in r) for r in FLAT
    ]
    kept = reduce("sum", engine.ragged_constant(FLAT), 1, keepdims=True)
    assert lists(kept.to_tensor() if isinstance(kept, engine.RaggedTensor) else kept) == [
        [sum(r)] for r in FLAT
    ]
    with pytest.raises(InvalidArgumentError, match="axis 2"):
        reduce("sum", engine.ragged_constant(FLAT), 2)


def test_elementwise() -> None:
    assert both_ways(lambda x: x * 2 + x, FLAT) == [[3 * n for n in r] for r in FLAT]
    assert both_ways(lambda x: 1 - x, DEEP) == [[[1 - n for n in r] for r in x] for x in DEEP]
    column = engine.constant([[10], [20], [30], [40]])
    assert both_ways(lambda x: x + column, FLAT) == [
        [n + 10 * (i + 1) for n in r] for i, r in enumerate(FLAT)
    ]
    square = engine.ragged_constant([[1, 2], [3, 4]])
    assert lists(square + engine.constant([[10, 20], [30, 40]])) == [[11, 22], [33, 44]]
    with pytest.raises(InvalidArgumentError, match="sizes of an axis differ"):
        engine.ragged_constant(FLAT) + engine.constant([[1, 2, 3]])
    with pytest.raises(InvalidArgumentError, match="different rows"):
        engine.ragged_constant([[1], [2, 3]]) + engine.ragged_constant([[1, 2], [3]])
    with pytest.raises(ShapeError, match="do not have the same rows"):
        engine.map_flat_values(lambda x, y: x, *map(engine.ragged_constant, (FLAT, DEEP)))


def test_dense() -> None:
    def filled(rows: Any, width: int, value: int = 0) -> Any:
        return [r + [value] * (width - len(r)) for r in rows]

    assert both_ways(lambda x: x.to_tensor(), FLAT) == filled(FLAT, 3)
    assert both_ways(lambda x: x.to_tensor(-1), FLAT) == filled(FLAT, 3, -1)
    assert both_ways(lambda x: x.to_tensor(shape=[5, 2]), FLAT) == [
        *[r[:2] + [0] * (2 - len(r[:2])) for r in FLAT],
        [0, 0],
    ]
    assert both_ways(lambda x: x.to_tensor(), DEEP) == [
        filled(x, 3) + [[0] * 3] * (3 - len(x)) for x in DEEP
    ]
    make, x = engine.RaggedTensor.from_tensor, engine.constant([[5, 7, 0], [0, 3, 0], [6, 0, 0]])
    assert lists(make(x)) == [[5, 7, 0], [0, 3, 0], [6, 0, 0]]
    assert lists(make(x, padding=0)) == [[5, 7], [0, 3], [6]]
    assert lists(make(x, lengths=[1, 0, 3])) == [[5], [], [6, 0, 0]]
    deep = engine.constant([[[5, 7], [0, 3]], [[1, 2], [3, 4]]])
    assert lists(make(deep, lengths=([1, 2], [1, 2, 0]))) == [[[5]], [[1, 2], []]]
    assert make(deep, ragged_rank=2).ragged_rank == 2
    with pytest.raises(InvalidArgumentError, match="not both"):
        make(x, lengths=[1, 0, 3], padding=0)
    with pytest.raises(ShapeError, match="no 2 axes"):
        make(x, ragged_rank=2)


def test_sparse() -> None:
    found = engine.sparse_tensor_to_dense(engine.ragged_constant(DEEP).to_sparse())
    assert lists(found) == lists(engine.ragged_constant(DEEP).to_tensor())
    inner = engine.ragged_constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1)
    dense = engine.sparse_tensor_to_dense(inner.to_sparse())
    assert lists(dense) == [[[1, 2], [3, 4]], [[5, 6], [0, 0]]]
    sparse = engine.SparseValues([[0, 0], [2, 0], [2, 1]], [1, 2, 3], [4, 9])
    assert lists(engine.RaggedTensor.from_sparse(sparse)) == [[1], [], [2, 3], []]
    with pytest.raises(InvalidArgumentError, match="without gaps"):
        engine.RaggedTensor.from_sparse(engine.SparseValues([[0, 1]], [1], [1, 2]))


def test_gradients_are_those_of_the_flat_values() -> None:
    x = engine.ragged_constant([[1.0, 2.0], [], [3.0]])
    with engine.GradientTape() as tape:
        tape.watch(x.flat_values)
        y = ops.sum((x * x)[:, :1].to_tensor())
    assert lists(tape.gradient(y, x.flat_values)) == [2, 0, 6]


def test_functions_and_branches_take_it() -> None:
    @engine.function
    def double(x: Any) -> Any:
        return {"twice": x * 2, "longest": engine.cond(x.nrows() > 1, lambda: x, lambda: x[:0])}

    for rows in (FLAT, FLAT[:1]):
        found = double(engine.ragged_constant(rows))
        assert lists(found["twice"]) == [[2 * n for n in r] for r in rows]
        assert lists(found["longest"]) == (rows if len(rows) > 1 else [])
