"""Nested structures under Keras's names."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest

from laminar import tree
from laminar.engine.errors import InvalidArgumentError

Point = namedtuple("Point", "x y")
STRUCTURE = {"b": [1, (2, 3)], "a": Point(4, None)}


def test_flatten_and_pack() -> None:
    assert tree.flatten(STRUCTURE) == [4, None, 1, 2, 3]
    assert tree.pack_sequence_as(STRUCTURE, [1, 2, 3, 4, 5]) == {
        "b": [3, (4, 5)],
        "a": Point(1, 2),
    }
    assert tree.flatten_with_path([{"k": 1}, 2]) == [((0, "k"), 1), ((1,), 2)]
    assert tree.is_nested([])
    assert not tree.is_nested("text")


def test_map_structure() -> None:
    assert tree.map_structure(lambda a, b: a + b, [1, (2,)], [10, (20,)]) == [11, (22,)]
    assert tree.map_structure(lambda x: 0 if x is None else x, [None, 1]) == [0, 1]
    assert tree.map_structure(lambda x: x + 1, [None, 1], none_is_leaf=False) == [None, 2]
    with pytest.raises(InvalidArgumentError, match="at least one structure"):
        tree.map_structure(abs)


def test_map_structure_up_to() -> None:
    found = tree.map_structure_up_to([0, (0,)], lambda a, b: (a, b), [[1, 2], (3,)], ["x", ("y",)])
    assert found == [([1, 2], "x"), ((3, "y"),)]
    assert tree.map_structure_up_to(0, len, [1, 2, 3]) == 3
    with pytest.raises(InvalidArgumentError, match="has nothing at"):
        tree.map_structure_up_to([0, 0], abs, [1])


def test_same_structure() -> None:
    tree.assert_same_structure(STRUCTURE, {"a": Point(0, 0), "b": [0, (0, 0)]})
    with pytest.raises(InvalidArgumentError, match="the structures differ"):
        tree.assert_same_structure([1], [1, 2])
    tree.assert_same_paths([1, {"a": 2}], (1, {"a": 2}))
    with pytest.raises(InvalidArgumentError, match="in one only"):
        tree.assert_same_paths([1], [1, 2])


def test_traverse() -> None:
    seen: list[Any] = []
    tree.traverse(lambda x: seen.append(x), [1, (2,)])
    assert seen == [[1, (2,)], 1, (2,), 2]
    seen.clear()
    tree.traverse(lambda x: seen.append(x), [1, (2,)], top_down=False)
    assert seen == [1, 2, (2,), [1, (2,)]]
    assert tree.traverse(lambda x: sum(x) if isinstance(x, tuple) else None, [1, (2, 3)]) == [1, 5]
    gone = tree.traverse(lambda x: tree.MAP_TO_NONE if x == 2 else None, OrderedDict(a=2, b=3))
    assert gone == OrderedDict(a=None, b=3)
    assert tree.traverse(lambda x: None, Point(1, [2])) == Point(1, [2])
    doubled = tree.traverse(lambda x: 2 * x if isinstance(x, int) else None, [1, [2]], False)
    assert doubled == [2, [4]]


def test_shapes_and_lists() -> None:
    shapes = {"a": (None, 3), "b": [(2,), [4, 5]]}
    found = tree.map_shape_structure(lambda shape: len(shape), shapes)
    assert found == {"a": 2, "b": [1, 2]}
    assert tree.lists_to_tuples([1, [2, {"k": [3]}], (4, [5])]) == (1, (2, {"k": (3,)}), (4, (5,)))
    with pytest.raises(InvalidArgumentError, match="expected shapes"):
        tree.map_shape_structure(len, "text")
