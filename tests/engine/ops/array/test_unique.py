"""The distinct elements of a vector, in order of first occurrence."""

from __future__ import annotations

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import ShapeError


@pytest.mark.parametrize("x", [[3, 1, 3, 2, 1, 3], [], [2.5], ["b", "a", "b"], [True, False]])
def test_unique_with_counts(x: list[object]) -> None:
    given = engine.constant(x)
    values, indices, counts = (v.numpy() for v in engine.unique_with_counts(given, "int64"))
    seen = list(dict.fromkeys(given.numpy().tolist()))
    assert values.tolist() == seen
    assert indices.tolist() == [seen.index(v) for v in given.numpy().tolist()]
    assert counts.tolist() == [given.numpy().tolist().count(v) for v in seen]
    assert indices.dtype == counts.dtype == np.int64


def test_in_a_graph() -> None:
    with engine.Graph().as_default():
        x = engine.placeholder("int32", [None])
        found = engine.unique_with_counts(x, name="u")
        assert [str(t.spec) for t in found] == ["int32[?]"] * 3
        with engine.Session() as session:
            assert [v.tolist() for v in session.run(found, {x: [7, 7]})] == [[7], [0, 0], [2]]


def test_a_matrix_is_refused() -> None:
    with pytest.raises(ShapeError, match="expected a vector"):
        engine.unique_with_counts([[1]])
