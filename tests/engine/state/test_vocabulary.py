"""Tables of words: numbers, buckets for other words, and the way back; keys that are vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DTypeError, FailedPreconditionError, InvalidArgumentError

WORDS = ["brain", "salad", "surgery"]


@pytest.fixture
def vocabulary(tmp_path: Path) -> str:
    path = tmp_path / "words.txt"
    path.write_text("\n".join(WORDS) + "\n")
    return str(path)


def in_session(build: Any) -> Any:
    """What a graph gives once its tables are filled; before, it must refuse."""
    with engine.Graph().as_default(), engine.Session() as session:
        y = build()
        with pytest.raises(FailedPreconditionError, match="before it is initialised"):
            session.run(y)
        session.run(engine.tables_initializer())
        return session.run(y)


def test_words_of_a_file(vocabulary: str) -> None:
    words = ["salad", "tarkus", "surgery"]
    plain = in_session(lambda: engine.index_table_from_file(vocabulary).lookup(words))
    assert plain.tolist() == [1, -1, 2]
    found = in_session(lambda: engine.index_table_from_file(vocabulary, 5).lookup(words))
    assert found.tolist() == [1, found[1], 2]
    assert 3 <= found[1] < 8
    cut = in_session(lambda: engine.index_table_from_file(vocabulary, 0, 2).lookup(words))
    assert cut.tolist() == [1, -1, -1]
    back = in_session(lambda: engine.index_to_string_table_from_file(vocabulary)[[2, 0, 9]])
    assert back.tolist() == [b"surgery", b"brain", b"UNK"]


def test_words_of_a_list() -> None:
    table = engine.index_table_from_tensor(WORDS, num_oov_buckets=1)
    assert table.lookup(["surgery", "x", "brain"]).numpy().tolist() == [2, 3, 0]
    assert table.size().numpy() == 4
    numbers = engine.index_table_from_tensor([42, 1, -1000], dtype="int32", default_value=7)
    assert numbers.lookup(np.array([1, -1000, 5], "int32")).numpy().tolist() == [1, 2, 7]
    back = engine.index_to_string_table_from_tensor(WORDS, default_value="?")
    assert back.lookup(np.array([1, 5])).numpy().tolist() == [b"salad", b"?"]


def test_buckets_are_those_of_the_fingerprint() -> None:
    """The numbers are those of TensorFlow: FarmHash's Fingerprint64 modulo 5."""
    table = engine.StaticVocabularyTable(None, 5)
    assert table.lookup(WORDS).numpy().tolist() == [3, 1, 4]
    assert (table.size().numpy(), table.resource_handle) == (5, None)
    strong = engine.IdTableWithHashBuckets(
        None, 9, hasher_spec=engine.StrongHashSpec([1, 2])
    ).lookup(WORDS)
    other = engine.IdTableWithHashBuckets(
        None, 9, hasher_spec=engine.StrongHashSpec([5, 2])
    ).lookup(WORDS)
    assert strong.numpy().tolist() != other.numpy().tolist()


def test_sparse_words() -> None:
    table = engine.index_table_from_tensor(WORDS, num_oov_buckets=1)
    keys = engine.SparseValues([[0, 1], [2, 0]], ["salad", "?"], [3, 2])
    found = table.lookup(keys)
    assert found.values.numpy().tolist() == [1, 3]
    assert found.indices.numpy().tolist() == [[0, 1], [2, 0]]


def test_refusals(vocabulary: str) -> None:
    with pytest.raises(InvalidArgumentError, match="num_oov_buckets"):
        engine.IdTableWithHashBuckets(None, 0)
    with pytest.raises(InvalidArgumentError, match="at least 1"):
        engine.StaticVocabularyTable(engine.TextFileIdTableInitializer(vocabulary), 0)
    with pytest.raises(InvalidArgumentError, match="vocabulary_file is missing"):
        engine.index_table_from_file("")
    with pytest.raises(InvalidArgumentError, match="vocab_size"):
        engine.index_table_from_file(vocabulary, vocab_size=0)
    with pytest.raises(InvalidArgumentError, match="vocabulary_list is missing"):
        engine.index_table_from_tensor(None)
    with pytest.raises(DTypeError, match="the words are string"):
        engine.index_table_from_tensor([1, 2])
    with pytest.raises(DTypeError, match="strings or integers"):
        engine.index_table_from_file(vocabulary, key_dtype="float32")
    with pytest.raises(DTypeError, match="HasherSpec"):
        engine.IdTableWithHashBuckets(None, 1, hasher_spec=1)  # type: ignore[arg-type]  # wrong
    with pytest.raises(InvalidArgumentError, match="two numbers"):
        engine.StrongHashSpec([1, 2, 3])
    table = engine.IdTableWithHashBuckets(None, 2, engine.HasherSpec("own", None))
    with pytest.raises(InvalidArgumentError, match="stronghash"):
        table.lookup(["a"])
    with pytest.raises(DTypeError, match="the keys are string"):
        table.lookup(engine.constant([1]))


def test_dense_table_of_vectors() -> None:
    table = engine.DenseHashTable("int64", "float32", [-1.0, -2.0], [0, 3], [-1, -1])
    table.insert(np.array([[0, 1], [1, 2]]), np.array([[1, 2], [3, 4]], "float32"))
    found = table.lookup(np.array([[1, 2], [5, 5]]))
    assert found.numpy().tolist() == [[3, 4], [-1, -2]]
    table.remove(np.array([[0, 1], [7, 7]]))
    keys, values = table.export()
    assert (keys.numpy().tolist(), values.numpy().tolist()) == ([[1, 2]], [[3, 4]])
    with pytest.raises(InvalidArgumentError, match="empty or deleted key"):
        table.lookup(np.array([[0, 3]]))
    with pytest.raises(InvalidArgumentError, match="empty or deleted key"):
        table.insert(np.array([[-1, -1]]), np.array([[0, 0]], "float32"))
    with pytest.raises(engine.errors.ShapeError, match="a key of the table has shape"):
        table.lookup(np.array([1, 2, 3]))


def test_dense_table_of_scalars_in_a_graph() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        table = engine.DenseHashTable("string", "int64", -1, "", "$")
        session.run(table.insert(["a", "b"], [1, 2]))
        found = table.lookup(["b", "c"])
        assert found.shape == (2,)
        assert session.run([found, table.size()])[0].tolist() == [2, -1]
        with pytest.raises(InvalidArgumentError, match="two scalars or vectors"):
            engine.DenseHashTable("int64", "int64", -1, 42, 42)


def test_tables_are_saved_with_their_graph(tmp_path: Path) -> None:
    path = str(tmp_path / "tables")
    with engine.Graph().as_default(), engine.Session() as session:
        table = engine.DenseHashTable("int64", "int64", 0, [0, 0], [9, 9], name="t")
        engine.MutableHashTable("int64", "int64", 0, name="not_saved", checkpoint=False)
        session.run(table.insert([[1, 2], [3, 4]], [10, 20]))
        saved = engine.Saver().save(session, path)
    with engine.Graph().as_default(), engine.Session() as session:
        table = engine.DenseHashTable("int64", "int64", 0, [0, 0], [9, 9], name="t")
        session.run(table.insert([[5, 5]], [1]))
        engine.Saver().restore(session, saved)
        assert session.run(table.lookup([[3, 4], [5, 5]])).tolist() == [20, 0]
