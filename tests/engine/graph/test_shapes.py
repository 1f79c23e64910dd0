"""Static shapes: the three states, merging, compatibility, broadcasting."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import ops
from laminar.engine.errors import DTypeError, ShapeError
from laminar.engine.graph import (
    TensorShape,
    TensorSpec,
    broadcast_shapes,
    canonical_axes,
    canonical_axis,
    tensor_like,
)
from laminar.engine.graph.shapes import unknown_shape

UNKNOWN = TensorShape(None)

MADE = [
    pytest.param((), (), id="scalar"),
    pytest.param(3, (3,), id="one-number"),
    pytest.param([2, None], (2, None), id="partial"),
    pytest.param(np.array([2, 3]), (2, 3), id="array"),
    pytest.param((np.int64(2), True + 1), (2, 2), id="index-like"),
    pytest.param(TensorShape([4]), (4,), id="shape"),
]


@pytest.mark.parametrize(("value", "dims"), MADE)
def test_construction(value: Any, dims: tuple[int | None, ...]) -> None:
    shape = TensorShape(value)
    assert shape == dims
    assert shape.dims == dims
    assert shape.rank == shape.ndims == len(dims)
    assert all(d is None or type(d) is int for d in shape)


@pytest.mark.parametrize("value", [[-1], [1.5], ["a"], "ab", [True], [[1]]], ids=repr)
def test_what_is_no_dimension(value: Any) -> None:
    with pytest.raises(ShapeError, match="a dimension"):
        TensorShape(value)


def test_three_states() -> None:
    full, partial = TensorShape([2, 3]), TensorShape([2, None])
    assert full.is_fully_defined  # with or without a call
    assert not partial.is_fully_defined
    assert not UNKNOWN.is_fully_defined
    assert repr(full.is_fully_defined) == "True"
    assert (full.is_fully_defined(), full.num_elements(), full.as_list()) == (True, 6, [2, 3])
    assert (partial.is_fully_defined(), partial.num_elements()) == (False, None)
    assert partial.as_list() == [2, None]
    assert (UNKNOWN.is_fully_defined(), UNKNOWN.num_elements(), UNKNOWN.rank) == (False, None, None)
    assert (UNKNOWN.dims, UNKNOWN.ndims) == (None, None)
    assert TensorShape([0, None]).num_elements() is None
    assert TensorShape(()).num_elements() == 1


def test_a_slice_of_a_shape_is_one() -> None:
    shape = TensorShape([None, 3, 4])
    assert shape[1:].num_elements() == 12
    assert shape[:2].as_list() == [None, 3]
    assert (shape[-1], shape[1:] == (3, 4), repr(shape[1:])) == (4, True, "(3, 4)")
    assert (2,) + shape[1:] == (2, 3, 4)
    assert (-1,) + shape[1:] == (-1, 3, 4)


def test_messages() -> None:
    for shape in (UNKNOWN, TensorShape([None, 3]), TensorShape([])):
        message = shape.to_proto()
        assert message.unknown_rank == (shape is UNKNOWN)
        assert list(message.dim) == [-1 if d is None else d for d in shape.dims or ()]
        assert TensorShape.from_proto(message) == shape == TensorShape(shape.as_proto())


def test_what_is_known_can_be_asserted() -> None:
    shape = TensorShape([None, 3])
    shape.assert_has_rank(2)
    shape.assert_same_rank([1, 1])
    shape.assert_same_rank(UNKNOWN)
    UNKNOWN.assert_has_rank(7)
    TensorShape([]).assert_is_fully_defined()
    calls: list[Callable[[], Any]] = [
        lambda: shape.assert_has_rank(1),
        lambda: shape.assert_same_rank([1]),
        lambda: shape.assert_is_compatible_with([1, 4]),
        shape.assert_is_fully_defined,
        UNKNOWN.assert_is_fully_defined,
    ]
    for refused in calls:
        with pytest.raises(ShapeError):
            refused()
    assert unknown_shape(ndims=2) == (None, None)


REFUSED: list[Callable[[TensorShape], Any]] = [
    len,
    list,
    lambda s: 3 in s,
    lambda s: (1, *s),
    TensorShape.as_list,
]


@pytest.mark.parametrize("use", REFUSED)
def test_unknown_rank_has_no_dimensions(use: Callable[[TensorShape], Any]) -> None:
    with pytest.raises(ShapeError, match="unknown rank"):
        use(UNKNOWN)


def test_parts_of_unknown_rank_are_unknown() -> None:
    assert UNKNOWN[0] is None
    for shape in (UNKNOWN[1:], UNKNOWN + (1,), (1,) + UNKNOWN, TensorShape([1]) + UNKNOWN):
        assert shape is UNKNOWN


def test_unknown_rank_is_one_value() -> None:
    assert TensorShape(UNKNOWN) is UNKNOWN
    assert TensorShape(None) == UNKNOWN
    empty: tuple[int, ...] = ()
    assert (empty != UNKNOWN, empty == UNKNOWN) == (True, False)
    assert TensorShape([]) != UNKNOWN
    assert UNKNOWN
    assert len({UNKNOWN, TensorShape(()), TensorShape(None)}) == 2


@pytest.mark.parametrize("shape", [UNKNOWN, TensorShape(()), TensorShape([2, None])], ids=str)
def test_shapes_can_be_copied(shape: TensorShape) -> None:
    for twin in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape)):
        assert isinstance(twin, TensorShape)
        assert twin == shape
        assert twin.rank == shape.rank


MERGED: list[Any] = [
    pytest.param([None, 3], [2, None], [2, 3], id="both"),
    pytest.param(None, [2], [2], id="unknown-rank"),
    pytest.param([2], None, [2], id="with-unknown-rank"),
    pytest.param(None, None, None, id="unknown"),
    pytest.param([], [], [], id="scalars"),
]


@pytest.mark.parametrize(("a", "b", "merged"), MERGED)
def test_merge(a: Any, b: Any, merged: Any) -> None:
    assert TensorShape(a).merge_with(b) == TensorShape(merged)
    assert TensorShape(a).is_compatible_with(b)


@pytest.mark.parametrize(("a", "b"), [([2], [3]), ([2], [2, 2]), ([], [1])], ids=str)
def test_merge_refuses(a: Any, b: Any) -> None:
    assert not TensorShape(a).is_compatible_with(b)
    with pytest.raises(ShapeError, match="do not agree"):
        TensorShape(a).merge_with(b)


def test_text() -> None:
    assert str(TensorShape([2, None])) == "[2, ?]"
    assert str(UNKNOWN) == "[...]"
    assert repr(UNKNOWN) == "TensorShape(None)"
    assert unknown_shape(2) == (None, None)
    assert unknown_shape().rank is None


SHAPES = st.lists(st.sampled_from([1, 2, 3]), max_size=4)


@given(SHAPES, SHAPES, st.data())
def test_broadcasting_is_numpys(a: list[int], b: list[int], data: st.DataObject) -> None:
    try:
        expected = np.broadcast_shapes(tuple(a), tuple(b))
    except ValueError:
        with pytest.raises(ShapeError, match="Add: the shapes"):
            broadcast_shapes("Add", TensorShape(a), TensorShape(b))
        return
    assert broadcast_shapes("Add", TensorShape(a), TensorShape(b)) == expected
    # With dimensions hidden, what is still said is true.
    hidden = [[None if data.draw(st.booleans()) else d for d in s] for s in (a, b)]
    found = broadcast_shapes("Add", TensorShape(hidden[0]), TensorShape(hidden[1]))
    assert found.is_compatible_with(expected)


def test_broadcasting_unknown_sizes() -> None:
    unknown = TensorShape([None])
    assert broadcast_shapes("f", unknown, TensorShape([3])) == (3,)
    assert broadcast_shapes("f", unknown, TensorShape([1])) == (None,)
    assert broadcast_shapes("f", unknown, TensorShape(())) == (None,)
    assert broadcast_shapes("f", UNKNOWN, TensorShape([3])) == UNKNOWN
    assert broadcast_shapes("f") == ()
    with pytest.raises(ShapeError, match=r"Add: the shapes \[2\] and \[3\] do not broadcast"):
        broadcast_shapes("Add", TensorShape([2]), TensorShape([3]))


def test_an_axis_is_a_whole_number() -> None:
    last: Any = np.int64(-1)
    assert canonical_axis("f", last, 3) == 2
    assert canonical_axes("f", (0, last), 3) == (0, 2)
    wrong: list[Any] = [(0,), "0", 0.0, 1.5, [1]]
    for axis in wrong:
        with pytest.raises(DTypeError, match="f: an axis must be a whole number, got") as raised:
            canonical_axis("f", axis, 3)
        assert isinstance(raised.value, TypeError)
    with pytest.raises(DTypeError, match="f: an axis must be a whole number, got 1.5"):
        canonical_axes("f", wrong[3], 3)
    for op in (ops.argmax, ops.sort, ops.cumsum, ops.diff, ops.stack, ops.trapezoid, ops.sum):
        with pytest.raises(TypeError, match="whole number|must be int"):
            op([[1.0, 2.0]], axis=wrong[1])
    with pytest.raises(TypeError, match="whole number|must be int"):
        ops.take([1, 2], [0], axis=wrong[0])
    with pytest.raises(ShapeError, match="diff: axis 2 does not exist"):
        ops.diff([[1, 2]], axis=2)


def test_spec() -> None:
    spec = TensorSpec([2, None], "float32", name="x")
    assert str(spec) == "float32[2, ?]"
    assert spec == TensorSpec((2, None))  # the name is not part of it
    assert hash(spec) == hash(TensorSpec((2, None)))
    assert spec != TensorSpec((2, None), "float64")
    assert spec != "float32[2, ?]"
    assert spec.is_compatible_with(TensorSpec((2, 5)))
    assert not spec.is_compatible_with(TensorSpec((2, 5), "int32"))
    assert not spec.is_compatible_with(TensorSpec((3, 5)))
    assert (spec.rank, TensorSpec(None).rank) == (2, None)


def test_tensor_like() -> None:
    assert tensor_like(np.ones((2, 3), np.float32)) == TensorSpec((2, 3), "float32")
    assert tensor_like([[1.0], [2.0]]) == TensorSpec((2, 1), "float32")
    assert tensor_like(3) == TensorSpec((), "int32")


def test_a_list_of_the_same_dimensions_is_the_same_shape() -> None:
    shape = TensorShape([2, None])
    assert shape == [2, None]
    assert [2, None] == shape  # noqa: SIM300  # either way round
    assert shape == (2, None)
    assert shape != [2, 3]
    assert not shape != [2, None]  # noqa: SIM202  # its own method
    assert shape != "2?"
    assert hash(shape) == hash((2, None))
    assert TensorShape(None) != []
