"""Columns of features, against NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

F = tf.feature_column


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any) -> Any:
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        return session.run(x)


def test_numbers_and_intervals() -> None:
    price = F.numeric_column("price", normalizer_fn=lambda x: x / 10.0)
    size = F.numeric_column("size", shape=2, dtype=tf.int32)
    features = {"price": [[10.0], [35.0]], "size": [[1, 2], [3, 4]]}
    found = tf.feature_column.input_layer(features, [size, price])
    np.testing.assert_allclose(run(found), [[1.0, 1.0, 2.0], [3.5, 3.0, 4.0]])
    steps = F.bucketized_column(F.numeric_column("price"), [10.0, 20.0])
    assert run(F.input_layer(features, [steps])).tolist() == [[0, 1, 0], [0, 0, 1]]
    with pytest.raises(ValueError, match="must rise"):
        F.bucketized_column(F.numeric_column("price"), [2.0, 1.0])
    with pytest.raises(ValueError, match="no such feature"):
        F.input_layer({}, [price])


def test_categories(tmp_path: Path) -> None:
    words = F.categorical_column_with_vocabulary_list("w", ["a", "b"], num_oov_buckets=1)
    found = F.input_layer({"w": [["a", "z"], ["b", ""]]}, F.indicator_column(words))
    assert run(found).tolist() == [[1, 0, 1], [0, 1, 0]]
    path = tmp_path / "words.txt"
    path.write_text("a\nb\n")
    file = F.categorical_column_with_vocabulary_file("w", str(path))
    found = F.input_layer({"w": [["b", "b"], ["z", "a"]]}, F.indicator_column(file))
    assert run(found).tolist() == [[0, 2], [1, 0]]
    number = F.categorical_column_with_identity("n", 3, default_value=0)
    found = F.input_layer({"n": [[2], [9]]}, F.indicator_column(number))
    assert run(found).tolist() == [[0, 0, 1], [1, 0, 0]]
    strict = F.categorical_column_with_identity("n", 3)
    with pytest.raises(tf.errors.InvalidArgumentError, match="not below 3"):
        run(F.input_layer({"n": [[2], [9]]}, F.indicator_column(strict)))
    hashed = F.categorical_column_with_hash_bucket("w", 7)
    sums = run(F.input_layer({"w": [["a"], ["b"]]}, F.indicator_column(hashed)))
    bucket = run(tf.strings.to_hash_bucket_fast(["a", "b"], 7))
    assert sums.argmax(1).tolist() == bucket.tolist()
    heavy = F.weighted_categorical_column(number, "h")
    features = {"n": [[1, 2], [2, 2]], "h": [[0.5, 2.0], [1.0, 3.0]]}
    assert run(F.input_layer(features, F.indicator_column(heavy))).tolist() == [
        [0, 0.5, 2],
        [0, 0, 4],
    ]
    with pytest.raises(ValueError, match="is categorical"):
        F.input_layer({"w": [["a"]]}, [hashed])


def test_vectors() -> None:
    number = F.categorical_column_with_identity("n", 3)
    table = np.array([[1.0, 2], [3, 4], [5, 6]], np.float32)
    column = F.embedding_column(number, 2, initializer=tf.constant_initializer(table))
    made: dict[Any, Any] = {}
    found = F.input_layer({"n": [[0, 2], [1, -1]]}, [column], cols_to_vars=made)
    assert run(found).tolist() == [[3, 4], [3, 4]]
    (variable,) = made[column]
    assert variable.op.name == "input_layer/n_embedding/embedding_weights"


def test_linear_models_learn() -> None:
    price = F.numeric_column("price")
    word = F.categorical_column_with_vocabulary_list("w", ["a", "b"])
    features = {"price": [[1.0], [2.0], [3.0]], "w": [["a"], ["b"], ["a"]]}
    found = F.linear_model(features, [price, word])
    target = np.array([[2.0], [9.0], [4.0]], np.float32)  # price + 1 for a, + 7 for b
    loss = tf.reduce_mean(tf.square(found - target))
    step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with tf.Session() as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer()])
        assert session.run(found).tolist() == [[0], [0], [0]]
        for _ in range(400):
            session.run(step)
        np.testing.assert_allclose(session.run(found), target, atol=0.05)


def test_what_is_read_of_examples() -> None:
    columns = [F.numeric_column("x", 2), F.categorical_column_with_hash_bucket("w", 5)]
    spec = F.make_parse_example_spec(columns)
    assert sorted(spec) == ["w", "x"]
    feature = tf.train.Feature
    example = tf.train.Example(tf.train.Features({
        "x": feature(float_list=tf.train.FloatList([1.0, 2.0])),
        "w": feature(bytes_list=tf.train.BytesList([b"a"])),
    }))  # fmt: skip
    features = tf.parse_example([example.SerializeToString()], spec)
    found = F.input_layer(features, [columns[0], F.indicator_column(columns[1])])
    assert run(found).shape == (1, 7)
