"""IndexedSlices: what they stand for, and where the gradients of lookups are some."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import ops
from laminar.engine import GradientTape, Graph, IndexedSlices, Session, Variable, grad, gradients
from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.functions import function
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.math.cast import cast

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 2)).astype("float32")
VALUES = rng.normal(size=(2, 2, 2)).astype("float32")
INDICES = np.array([[1, -1], [4, 1]])
WHOLE = np.zeros((5, 2), "float32")
np.add.at(WHOLE, INDICES, VALUES)


def slices() -> IndexedSlices:
    return IndexedSlices(VALUES, INDICES, (5, 2))


def test_they_stand_for_a_tensor() -> None:
    s = slices()
    np.testing.assert_array_equal(s.values, VALUES.reshape(4, 2))
    np.testing.assert_array_equal(s.indices, [1, 4, 4, 1])
    assert (s.dense_shape, s.shape, s.dtype, s.ndim, len(s)) == ((5, 2), (5, 2), "float32", 2, 5)
    assert repr(s) == "<IndexedSlices float32[5, 2]: rows float32[2, 2, 2] at int64[2, 2]>"
    np.testing.assert_array_equal(s, WHOLE)
    np.testing.assert_array_equal(s.numpy(), WHOLE)
    np.testing.assert_array_equal(s * 2.0 + X, WHOLE * 2 + X)
    np.testing.assert_array_equal(ops.sum(s, axis=0), WHOLE.sum(axis=0))


def test_combined_they_have_one_row_for_each_index() -> None:
    combined = slices().combined()
    np.testing.assert_array_equal(combined, WHOLE)
    np.testing.assert_array_equal(combined.places, [1, 4, -1, -1])
    np.testing.assert_array_equal(combined.values, [WHOLE[1], WHOLE[4], [0, 0], [0, 0]])
    assert combined.combined() is combined
    np.testing.assert_array_equal(combined.map(lambda v: v * 3), WHOLE * 3)


@pytest.mark.parametrize(
    ("values", "indices", "shape", "kind", "text"),
    [
        (VALUES, [0.5], (5, 2), DTypeError, "indices must be whole numbers"),
        (VALUES, [1, 2], (5, 2), ShapeError, r"need values of shape \[2, 2\]"),
        (VALUES, INDICES, (None, 2), ShapeError, "dense_shape must be known"),
    ],
)
def test_errors(values: Any, indices: Any, shape: Any, kind: Any, text: str) -> None:
    with pytest.raises(kind, match=text):
        IndexedSlices(values, indices, shape)


def gather(x: Any, indices: Any, axis: int = 0) -> Any:
    return ops.take(x, indices, axis=axis)


LOOKUPS = [
    pytest.param(lambda x: gather(x.value, INDICES), True, id="gather"),
    pytest.param(lambda x: gather(identity(x.value), INDICES), True, id="identity"),
    pytest.param(
        lambda x: cast(gather(cast(x.value, "float64"), INDICES), "float32"), True, id="cast"
    ),
    pytest.param(lambda x: gather(gather(x.value, [3, 4, 1]), [[0, 1], [2, 2]]), True, id="twice"),
    pytest.param(lambda x: gather(x.value, [[1], [0]], 1), False, id="columns"),
    pytest.param(lambda x: gather(x.value * 2.0, INDICES), False, id="made-of-all"),
]


def reference(look_up: Any) -> Any:
    """The gradient by a tape that records a tensor, not a variable."""

    class Held:
        value = ops.convert_to_tensor(X)

    with GradientTape() as tape:
        tape.watch(Held.value)
        loss = ops.sum(ops.square(look_up(Held)))
    return tape.gradient(loss, Held.value)


@pytest.mark.parametrize(("look_up", "by_rows"), LOOKUPS)
def test_tapes(look_up: Any, by_rows: bool) -> None:
    x = Variable(X)
    with GradientTape() as tape:
        loss = ops.sum(ops.square(look_up(x)))
    found = tape.gradient(loss, x)
    assert isinstance(found, IndexedSlices) == by_rows
    expected = reference(look_up)
    assert not isinstance(expected, IndexedSlices)
    np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(("look_up", "by_rows"), LOOKUPS)
def test_graphs(look_up: Any, by_rows: bool) -> None:
    with Graph().as_default():
        x = Variable(X)
        (found,) = gradients(ops.sum(ops.square(look_up(x))), [x])
        assert isinstance(found, IndexedSlices) == by_rows
        with Session() as session:
            session.run(x.initializer)
            value = session.run(found)
    np.testing.assert_allclose(value, reference(look_up), rtol=1e-6)


def test_several_lookups_are_one() -> None:
    x = Variable(X)
    with GradientTape(persistent=True) as tape:
        few = ops.sum(ops.square(ops.take(x, np.array([1, 2], "int32"), axis=0)))
        loss = few + ops.sum(ops.take(x, np.array([2, -1]), axis=0))
    found = tape.gradient(loss, x)
    assert isinstance(found, IndexedSlices)
    np.testing.assert_array_equal(np.sort(np.array(found.indices)), [1, 2, 2, 4])
    expected = np.zeros_like(X)
    expected[1:3] = 2 * X[1:3]
    expected[[2, 4]] += 1
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    np.testing.assert_allclose(tape.jacobian(few, x), expected - [[0], [0], [1], [0], [1]], 1e-6)


def test_they_are_differentiated_and_leave_functions_as_tensors() -> None:
    x = Variable(X)

    @function
    def slope() -> Any:
        with GradientTape() as tape:
            loss = ops.sum(ops.take(x, [1, 1, 3], axis=0) ** 3)
        return tape.gradient(loss, x)

    expected = np.zeros_like(X)
    np.add.at(expected, [1, 1, 3], 3 * X[[1, 1, 3]] ** 2)
    np.testing.assert_allclose(slope(), expected, rtol=1e-5)
    with GradientTape() as outer:
        with GradientTape() as inner:
            loss = ops.sum(ops.take(x, [1, 1, 3], axis=0) ** 3)
        first = inner.gradient(loss, x)
        assert isinstance(first, IndexedSlices)
        total = ops.sum(first)
    second = np.zeros_like(X)
    np.add.at(second, [1, 1, 3], 6 * X[[1, 1, 3]])
    np.testing.assert_allclose(outer.gradient(total, x), second, rtol=1e-5)
    plain = grad(lambda v: ops.sum(ops.take(v, [1, 1, 3], axis=0) ** 3))(x)
    assert not isinstance(plain, IndexedSlices)
    np.testing.assert_allclose(plain, expected, rtol=1e-5)
