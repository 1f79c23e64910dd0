"""Lookup tables as ops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laminar.engine import (
    Graph,
    HashTable,
    KeyValueTensorInitializer,
    MutableHashTable,
    Session,
    TextFileInitializer,
    constant,
    function,
    tables_initializer,
)
from laminar.engine.errors import (
    DataLossError,
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    MissingFileError,
    ShapeError,
)
from laminar.engine.state.tables import LINE_NUMBER, WHOLE_LINE

ENTRIES = KeyValueTensorInitializer([b"a", b"b"], [1, 2], value_dtype="int64")


def test_a_fixed_table_eagerly() -> None:
    table = HashTable(ENTRIES, -1)
    assert table.lookup([[b"b"], [b"x"]]).numpy().tolist() == [[2], [-1]]
    assert int(table.size().numpy()) == 2
    keys, values = table.export()
    assert dict(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True)) == {
        b"a": 1,
        b"b": 2,
    }
    assert table[b"a"].numpy() == 1


def test_a_fixed_table_in_a_session_needs_its_initialiser() -> None:
    graph = Graph()
    with graph.as_default():
        table = HashTable(ENTRIES, -1)
        found, init = table.lookup([b"a", b"z"]), tables_initializer()
    assert found.shape == (2,)
    with Session(graph=graph) as session:
        with pytest.raises(FailedPreconditionError, match="tables_initializer"):
            session.run(found)
        session.run(init)
        session.run(init)
        assert session.run(found).tolist() == [1, -1]


def test_a_table_in_a_function() -> None:
    tables: list[HashTable] = []

    @function
    def find(x: Any) -> Any:
        if not tables:
            tables.append(HashTable(ENTRIES, -1))
        return tables[0].lookup(x)

    assert find(constant([b"b", b"q"])).numpy().tolist() == [2, -1]
    assert find(constant([b"a", b"q"])).numpy().tolist() == [1, -1]


@pytest.mark.parametrize(
    ("columns", "types", "key", "value"),
    [
        ((WHOLE_LINE, LINE_NUMBER), ("string", "int64"), b"y\t20", 1),
        ((0, 1), ("string", "float32"), b"y", 20.0),
        ((LINE_NUMBER, 0), ("int64", "string"), 2, b"z"),
        ((1, LINE_NUMBER), ("int64", "string"), 30, b"2"),
    ],
)
def test_from_a_file(
    tmp_path: Path, columns: tuple[int, int], types: tuple[str, str], key: Any, value: Any
) -> None:
    path = tmp_path / "vocabulary"
    path.write_text("x\t10\ny\t20\r\nz\t30")
    initializer = TextFileInitializer(str(path), types[0], columns[0], types[1], columns[1])
    default = b"?" if types[1] == "string" else 0
    table = HashTable(initializer, default)
    assert table.lookup(constant(key, types[0])).numpy() == value
    assert int(table.size().numpy()) == 3
    assert int(HashTable(initializer._replace(vocab_size=2), default).size().numpy()) == 2


def test_a_table_that_changes() -> None:
    table = MutableHashTable("int64", "float32", [0.0, 0.0])
    table.insert([1, 2], [[1.0, 1.0], [2.0, 2.0]])
    table.insert([2], [[5.0, 5.0]])
    table.remove([1, 9])
    assert table.lookup([2, 1]).numpy().tolist() == [[5, 5], [0, 0]]
    keys, values = table.export()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([2], [[5, 5]])
    graph = Graph()
    with graph.as_default():
        inner = MutableHashTable("string", "int32", 0)
        put, size = inner.insert([b"a"], [1]), inner.size()
    with Session(graph=graph) as session:
        session.run(put)
        assert session.run(size) == 1


def file_table(tmp: Path, text: str, **changes: Any) -> Callable[[], Any]:
    def make() -> Any:
        (tmp / "f").write_text(text)
        initializer = TextFileInitializer(str(tmp / "f"), "string", 0, "int64", 1)
        return HashTable(initializer._replace(**changes), 0)

    return make


def test_mistakes(tmp_path: Path) -> None:
    mistakes: list[tuple[Callable[[], Any], type[Exception], str]] = [
        (lambda: HashTable(KeyValueTensorInitializer([1.0], [1]), 0), DTypeError, "keys are"),
        (lambda: HashTable(KeyValueTensorInitializer([1], [[1, 2]]), 0), ShapeError, "values of"),
        (
            lambda: HashTable(KeyValueTensorInitializer([1, 1], [1, 2]), 0),
            InvalidArgumentError,
            "two values",
        ),
        (file_table(tmp_path, "a"), DataLossError, "line 1: expected at least 2 columns"),
        (file_table(tmp_path, "a\tb"), DataLossError, "int64"),
        (file_table(tmp_path, "a\t1", vocab_size=2), InvalidArgumentError, "has 1 lines"),
        (file_table(tmp_path, "a\t1", key_index=-3), InvalidArgumentError, "a column is"),
        (file_table(tmp_path, "a\t1", delimiter=""), InvalidArgumentError, "one byte"),
        (file_table(tmp_path, "", filename=str(tmp_path / "no")), MissingFileError, "no file"),
        (lambda: HashTable(ENTRIES, -1).lookup(constant([1])), DTypeError, "goes from"),
        (
            lambda: MutableHashTable("int64", "int64", 0).insert([1, 2], [1]),
            InvalidArgumentError,
            "must have",
        ),
        (
            lambda: MutableHashTable("int64", "int64", 0).remove(constant([b"a"])),
            DTypeError,
            "keys of the table",
        ),
    ]
    for call, kind, text in mistakes:
        with pytest.raises(kind, match=text):
            call()
