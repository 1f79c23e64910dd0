"""Nested structures: flatten, pack, map, compare."""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.engine import TensorShape
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.tree import (
    assert_same_structure,
    flatten,
    flatten_with_path,
    is_nested,
    map_structure,
    pack_sequence_as,
)


class Pair(NamedTuple):
    left: Any
    right: Any


LEAVES = st.one_of(st.none(), st.integers(), st.text(max_size=3), st.floats(allow_nan=False))
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.text(max_size=2), inner, max_size=3),
        st.builds(Pair, inner, inner),
    ),
    max_leaves=12,
)

FLAT = [
    pytest.param(3, [3], id="leaf"),
    pytest.param(None, [None], id="none-is-a-leaf"),
    pytest.param([], [], id="empty"),
    pytest.param({"b": 1, "a": [2, (3,)]}, [2, 3, 1], id="dict-by-key"),
    pytest.param({2: "x", "a": "y"}, ["x", "y"], id="mixed-keys-keep-order"),
    pytest.param(Pair(1, {"k": 2}), [1, 2], id="named-tuple"),
    pytest.param(TensorShape([1, 2]), [TensorShape([1, 2])], id="a-shape-is-a-leaf"),
    pytest.param("text", ["text"], id="a-string-is-a-leaf"),
]


@pytest.mark.parametrize(("tree", "leaves"), FLAT)
def test_flatten(tree: Any, leaves: list[Any]) -> None:
    assert flatten(tree) == leaves


@given(TREES)
def test_pack_undoes_flatten(tree: Any) -> None:
    packed = pack_sequence_as(tree, flatten(tree))
    assert packed == tree
    assert type(packed) is type(tree)
    assert [leaf for _, leaf in flatten_with_path(tree)] == flatten(tree)
    assert_same_structure(tree, packed)


@given(TREES)
def test_paths_lead_to_their_leaves(tree: Any) -> None:
    for path, leaf in flatten_with_path(tree):
        found = tree
        for key in path:
            found = found[key]
        assert found is leaf


@pytest.mark.parametrize(
    "tree",
    [OrderedDict(b=1, a=2), defaultdict(int, b=1, a=2), {"b": 1, "a": 2}, Pair(1, 2), [1], (1,)],
    ids=lambda t: type(t).__name__,
)
def test_containers_keep_their_type_and_order(tree: Any) -> None:
    mapped = map_structure(lambda x: x * 10, tree)
    assert type(mapped) is type(tree)
    assert list(mapped) == (list(tree) if isinstance(tree, dict) else [x * 10 for x in tree])
    assert flatten(mapped) == [x * 10 for x in flatten(tree)]


def test_map_several_structures() -> None:
    found = map_structure(lambda a, b: a + b, {"x": [1, 2]}, {"x": [10, 20]})
    assert found == {"x": [11, 22]}


def test_a_default_dict_stays_one() -> None:
    table: defaultdict[str, Any] = defaultdict(list, a=1)
    mapped = map_structure(lambda x: x, table)
    assert mapped["missing"] == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param([1], 1, id="leaf"),
        pytest.param([1], [1, 2], id="length"),
        pytest.param({"a": 1}, {"b": 1}, id="keys"),
        pytest.param({0: 1}, [1], id="dict-against-list"),
        pytest.param([[1]], [1], id="depth"),
    ],
)
def test_structures_that_differ_are_refused(a: Any, b: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="the structures differ"):
        assert_same_structure(a, b)
    with pytest.raises(InvalidArgumentError, match="the structures differ"):
        map_structure(lambda x, y: x, a, b)


def test_pack_counts_the_leaves() -> None:
    with pytest.raises(InvalidArgumentError, match="the structure has 2 leaves, got 3"):
        pack_sequence_as([0, 0], [1, 2, 3])


def test_is_nested() -> None:
    assert is_nested(())
    assert is_nested({})
    assert not is_nested("ab")
    assert not is_nested(TensorShape([1]))
