"""Values as text, and the strings of segments."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.text.formatting import string_format, unsorted_segment_join


def text(template: str, *xs: Any, summarize: int = 3) -> str:
    found = string_format(
        *(convert_to_tensor(x) for x in xs),
        template=tuple(template.split("{}")),
        summarize=summarize,
    )
    return str(found.numpy().item().decode())


CASES: list[Any] = [
    pytest.param("no place", (), "no place", id="no tensor"),
    pytest.param("{}!", (np.arange(10),), "[0 1 2 ... 7 8 9]!", id="long"),
    pytest.param("{}", (np.arange(6),), "[0 1 2 3 4 5]", id="not longer than both ends"),
    pytest.param("{} and {}", (3.5, ["a"]), '3.5 and ["a"]', id="two"),
    pytest.param("{}", (np.array([True, False]),), "[1 0]", id="bools"),
    pytest.param("{}", (np.array([0, 0.1], "float32"),), "[0 0.1]", id="floats"),
    pytest.param("{}", (np.zeros((2, 0)),), "[[]\n []]", id="empty"),
    pytest.param("{}", ([[0, 1], [2, 3]],), "[[0 1]\n [2 3]]", id="matrix"),
    pytest.param("{}", (np.arange(8).reshape(2, 2, 2),), "[[[0 1]\n  [2 3]]\n\n [[4 5]\n  [6 7]]]"),
]


@pytest.mark.parametrize(("template", "xs", "expected"), CASES)
def test_format(template: str, xs: Any, expected: str) -> None:
    assert text(template, *xs) == expected


def test_format_ends() -> None:
    assert text("{}", np.arange(6), summarize=1) == "[0 ... 5]"
    assert text("{}", np.arange(9), summarize=-1) == "[0 1 2 3 4 5 6 7 8]"
    rows = text("{}", np.arange(25).reshape(5, 5), summarize=1)
    assert rows == "[[0 ... 4]\n ...\n [20 ... 24]]"


def test_format_of_another_number_of_tensors() -> None:
    with pytest.raises(InvalidArgumentError, match="2 places for 1"):
        text("{} {}", 1)


def test_segments() -> None:
    x = convert_to_tensor([["Y", "q"], ["Z", "6"], ["p", "G"]])
    ids, two = convert_to_tensor([1, 0, 1]), convert_to_tensor(2)
    found = unsorted_segment_join(x, ids, two, separator=":")
    assert found.numpy().tolist() == [[b"Z", b"6"], [b"Y:p", b"q:G"]]
    each = unsorted_segment_join(
        x, convert_to_tensor([[0, 2], [2, 0], [0, 0]]), convert_to_tensor(3)
    )
    assert each.numpy().tolist() == [b"Y6pG", b"", b"qZ"]


def test_segments_in_a_graph() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x, ids = engine.placeholder("string", [None]), engine.placeholder("int64", [None])
        y = unsorted_segment_join(x, ids, engine.constant(2))
        assert y.shape.as_list() == [None]
        assert session.run(y, {x: ["a", "b", "c"], ids: [1, 1, 0]}).tolist() == [b"c", b"ab"]


@pytest.mark.parametrize(
    ("ids", "count", "error"),
    [([0, 2], 2, InvalidArgumentError), ([0, -1], 2, InvalidArgumentError), ([0], 1, ShapeError)],
)
def test_wrong_segments(ids: Any, count: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="UnsortedSegmentJoin"):
        unsorted_segment_join(
            convert_to_tensor(["a", "b"]), convert_to_tensor(ids), convert_to_tensor(count)
        )
