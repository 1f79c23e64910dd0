"""Sets along the last axis of sparse arrays, against Python's."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.sparse.sparse_sets import sparse_set_size, sparse_sets

X = engine.SparseValues(
    np.array([[0, 0], [0, 1], [0, 2], [2, 0]]), np.array([5, 6, 5, 7]), np.array([3, 4])
)
Y = np.array([[6, 9], [1, 1], [7, 8]])


@pytest.mark.parametrize(
    ("operation", "wanted"),
    [
        ("intersection", [[6], [], [7]]),
        ("union", [[5, 6, 9], [1], [7, 8]]),
        ("difference", [[5], [], []]),
    ],
)
def test_values(operation: str, wanted: list[list[int]]) -> None:
    found = sparse_sets(operation, X, Y)
    assert found.values.tolist() == [v for row in wanted for v in row]
    places = [[i, k] for i, row in enumerate(wanted) for k in range(len(row))]
    assert found.indices.tolist() == places
    assert found.dense_shape.tolist() == [3, max(map(len, wanted))]


def test_sizes_and_errors() -> None:
    np.testing.assert_array_equal(sparse_set_size(X), [2, 0, 1])
    with pytest.raises(InvalidArgumentError, match="expected one of .* got product"):
        sparse_sets("product", X, Y)
