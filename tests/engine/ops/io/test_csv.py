"""Lines of comma-separated values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine import Graph, Session, constant, convert_to_tensor, decode_csv, placeholder
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError

NEEDED = np.zeros(0, np.float32)


def test_columns() -> None:
    lines = convert_to_tensor([b'1,2.5,"a, ""b""",9', b"3,,c,\xff"])
    a, b, c, d = decode_csv(lines, [[0], [7.0], [b""], [b""]])
    assert (a.dtype, b.dtype, c.dtype) == ("int32", "float32", "string")
    assert a.numpy().tolist() == [1, 3]
    assert b.numpy().tolist() == [2.5, 7.0]
    assert c.numpy().tolist() == [b'a, "b"', b"c"]
    assert d.numpy().tolist() == [b"9", b"\xff"]


def test_options() -> None:
    (x,) = decode_csv(constant(b'a|"b|NA'), [[5]], "|", False, "NA", [2])
    assert x.shape == ()
    assert x.numpy() == 5
    big, real = decode_csv(constant([b"9007199254740993,1e3"]), [np.int64(0), np.float64(0)])
    assert big.numpy().tolist() == [9007199254740993]
    assert real.numpy().tolist() == [1000.0]
    (none,) = decode_csv(convert_to_tensor(np.zeros((0,), object)), [[1]])
    assert none.shape == (0,)


def test_in_a_session() -> None:
    graph = Graph()
    with graph.as_default():
        line = placeholder("string", (None,))
        columns = decode_csv(line, [[0.0], [b""]])
    with Session(graph=graph) as session:
        numbers, words = session.run(columns, {line: np.array([b"1,a", b"2,b"], object)})
    assert numbers.tolist() == [1, 2]
    assert words.tolist() == [b"a", b"b"]


MISTAKES: list[tuple[bytes, list[Any], dict[str, Any], type[Exception], str]] = [
    (b"1,2", [[1]], {}, InvalidArgumentError, "expected 1 fields, record 0 has 2"),
    (b"x", [[1]], {}, InvalidArgumentError, "column 0 must hold int32"),
    (b"99999999999", [[1]], {}, InvalidArgumentError, "column 0"),
    (b'"x', [[b""]], {}, InvalidArgumentError, "no line of CSV"),
    (b"", [NEEDED], {}, InvalidArgumentError, "expected 1 fields|no default|no line"),
    (b",1", [NEEDED, [1]], {}, InvalidArgumentError, "has no default"),
    (b"1", [[1]], {"select_cols": [1]}, InvalidArgumentError, "column 1 is asked for"),
    (b"1", [[1]], {"select_cols": [1, 0]}, InvalidArgumentError, "must rise"),
    (b"1", [[1]], {"field_delim": ",,"}, InvalidArgumentError, "delimiter"),
    (b"1", [], {}, InvalidArgumentError, "default for each"),
    (b"1", [[True]], {}, DTypeError, "must be one of"),
    (b"1", [[1, 2]], {}, ShapeError, "is a scalar"),
]


@pytest.mark.parametrize(("line", "defaults", "options", "kind", "text"), MISTAKES)
def test_mistakes(
    line: bytes, defaults: list[Any], options: dict[str, Any], kind: type[Exception], text: str
) -> None:
    with pytest.raises(kind, match=text):
        decode_csv(constant(line), defaults, **options)
