"""Dimensions as values, and what shapes do with them."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from laminar.engine import Dimension, TensorShape, as_shape
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph.shapes import matrix, scalar, unknown_shape, vector

ARITHMETIC = [operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod]
ORDER = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("op", ARITHMETIC)
def test_arithmetic(op: Callable[[Any, Any], Any]) -> None:
    for a, b in ((Dimension(7), Dimension(3)), (Dimension(7), 3), (7, Dimension(3))):
        assert repr(op(a, b)) == f"Dimension({op(7, 3)})"
    for a, b in ((Dimension(None), 3), (7, Dimension(None)), (Dimension(None), Dimension(None))):
        assert op(a, b).value is None
    with pytest.raises(TypeError):
        op(Dimension(7), 1.5)


@pytest.mark.parametrize("op", ORDER)
def test_order(op: Callable[[Any, Any], Any]) -> None:
    for a, b in ((2, 3), (3, 3), (4, 3)):
        assert op(Dimension(a), b) is op(Dimension(a), Dimension(b)) is op(a, b)
    assert op(Dimension(None), 3) is None
    assert op(Dimension(3), Dimension(None)) is None


def test_what_two_say_together() -> None:
    assert Dimension(None).merge_with(3).value == Dimension(3).merge_with(None).value == 3
    assert Dimension(3).is_compatible_with(None)
    assert not Dimension(3).is_compatible_with(4)
    with pytest.raises(ShapeError, match="the dimensions 3 and 4 do not agree"):
        Dimension(3).merge_with(Dimension(4))


def test_as_a_number() -> None:
    assert int(Dimension(3)) == [10, 11, 12, 13][Dimension(3)] - 10 == 3
    assert len({Dimension(3), Dimension(3), Dimension(None)}) == 2
    assert repr(pickle.loads(pickle.dumps(Dimension(None)))) == "Dimension(None)"
    with pytest.raises(ShapeError, match="is unknown"):
        int(Dimension(None))
    for bad in (-1, 2.5, True, "3"):
        with pytest.raises(ShapeError, match="dimension"):
            Dimension(bad)
    with pytest.raises(InvalidArgumentError, match="does not change"):
        Dimension(3).value = 4


# Shapes


def test_shapes_are_made_of_them() -> None:
    assert TensorShape([Dimension(2), Dimension(None), 3]) == (2, None, 3)
    assert (scalar(), vector(None), matrix(2, None)) == ((), (None,), (2, None))
    assert as_shape(5) == (5,)


@pytest.mark.parametrize("shape", [(), (2, None, 0), None])
def test_shapes_as_messages(shape: Any) -> None:
    message = TensorShape(shape).as_proto()
    assert message.unknown_rank == (shape is None)
    assert list(message.dim) == [-1 if d is None else d for d in shape or ()]
    assert TensorShape(message) == TensorShape(shape)


def test_shapes_joined() -> None:
    shape = TensorShape([2, None])
    for joined in (shape + [3], shape + (3,), shape + TensorShape([3]), shape.concatenate(3)):
        assert type(joined) is TensorShape
        assert joined == (2, None, 3)
    assert [3] + shape == (3,) + shape == (3, 2, None)
    assert shape.concatenate(None).rank is None
    assert unknown_shape().concatenate(3).rank is None
    assert shape + (-1,) == (2, None, -1)
    assert (-1,) + shape == (-1, 2, None)


def test_ranks() -> None:
    shape = TensorShape([2, 3])
    assert shape.with_rank(2) is not None
    assert unknown_shape().with_rank(2) == (None, None)
    assert shape.with_rank_at_least(2) == shape.with_rank_at_most(2) == shape
    for call in (
        lambda: shape.with_rank(3),
        lambda: shape.with_rank_at_least(3),
        lambda: shape.with_rank_at_most(1),
        lambda: shape.assert_is_compatible_with([2, 4]),
    ):
        with pytest.raises(ShapeError):
            call()
    assert shape.most_specific_compatible_shape([2, 4]) == (2, None)
    assert shape.most_specific_compatible_shape([2]).rank is None
