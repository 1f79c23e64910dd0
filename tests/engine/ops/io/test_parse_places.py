"""Features whose places are features themselves."""

from __future__ import annotations

from typing import Any

import pytest

from laminar.engine import (
    FixedLenFeature,
    Graph,
    Session,
    SparseFeature,
    VarLenFeature,
    encode_example,
    parse_example,
    parse_single_example,
    placeholder,
)
from laminar.engine.errors import InvalidArgumentError, ShapeError

FIRST = encode_example({"v": [3.0, 4.0], "i": [5, 2], "j": [0, 1]})
SECOND = encode_example({"v": [1.0], "i": [0], "j": [2]})


def lists(sparse: Any) -> Any:
    return [part.tolist() for part in sparse]


def test_a_batch_in_a_session() -> None:
    with Graph().as_default(), Session() as session:
        serialized = placeholder("string", [None])
        parsed = parse_example(
            serialized,
            {
                "one": SparseFeature("i", "v", "float32", 6),
                "as it is": SparseFeature(["i"], "v", "float32", [6], already_sorted=True),
                "two": SparseFeature(["j", "i"], "v", "float32", [3, 6]),
                "i": VarLenFeature("int64"),
            },
        )
        found = session.run(parsed, {serialized: [FIRST, SECOND]})
    assert list(found) == ["one", "as it is", "two", "i"]
    assert lists(found["one"]) == [[[0, 2], [0, 5], [1, 0]], [4.0, 3.0, 1.0], [2, 6]]
    assert lists(found["as it is"]) == [[[0, 5], [0, 2], [1, 0]], [3.0, 4.0, 1.0], [2, 6]]
    assert lists(found["two"]) == [[[0, 0, 5], [0, 1, 2], [1, 2, 0]], [3.0, 4.0, 1.0], [2, 3, 6]]
    assert found["i"].values.tolist() == [5, 2, 0]


def test_one_example_at_once() -> None:
    found = parse_single_example(FIRST, {"s": SparseFeature("i", "v", "float32", 6)})["s"]
    assert [part.numpy().tolist() for part in found] == [[[2], [5]], [4.0, 3.0], [6]]


MISTAKES: list[Any] = [
    pytest.param(SparseFeature(["i", "j"], "v", "float32", 6), {}, "a size for each", id="sizes"),
    pytest.param(SparseFeature([], "v", "float32", []), {}, "a size for each", id="no axis"),
    pytest.param(
        SparseFeature("i", "v", "float32", 6),
        {"v": VarLenFeature("int64")},
        "as float32",
        id="type",
    ),
    pytest.param(
        SparseFeature("i", "v", "float32", 6),
        {"i": FixedLenFeature((2,), "int64")},
        "part of a SparseFeature",
        id="kind",
    ),
]


@pytest.mark.parametrize(("feature", "others", "message"), MISTAKES)
def test_mistakes(feature: Any, others: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        parse_example([FIRST], {"s": feature, **others})


def test_places_without_values() -> None:
    broken = encode_example({"v": [3.0, 4.0], "i": [5]})
    with pytest.raises((InvalidArgumentError, ShapeError)):
        parse_example([broken], {"s": SparseFeature("i", "v", "float32", 6)})
