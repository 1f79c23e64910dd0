"""`tf.data.experimental`: data sets of others, of tables and of records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

E = tf.data.experimental
Dataset = tf.data.Dataset


def listed(dataset: Any) -> Any:
    def plain(x: Any) -> Any:
        if isinstance(x, tuple):
            return tuple(map(plain, x))
        if isinstance(x, dict):
            return {k: plain(v) for k, v in x.items()}
        return x.tolist() if hasattr(x, "tolist") else x

    return [plain(x) for x in dataset.as_numpy_iterator()]


def test_numbers() -> None:
    assert listed(E.Counter(3, 2).take(3)) == [3, 5, 7]
    again = [listed(E.RandomDataset(seed=4).take(5)) for _ in range(2)]
    assert again[0] == again[1]
    assert len(set(again[0])) == 5


def test_walks_that_remember() -> None:
    running = Dataset.range(5).apply(E.scan(np.int64(0), lambda s, x: (s + x, s + x)))
    assert listed(running) == [0, 1, 3, 6, 10]
    assert listed(running) == [0, 1, 3, 6, 10]
    assert listed(Dataset.range(9).apply(E.take_while(lambda x: x < 4))) == [0, 1, 2, 3]
    assert listed(Dataset.from_tensor_slices([1, 2, 1, 3, 2]).apply(E.unique())) == [1, 2, 3]
    iterator = running.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert [session.run(iterator) for _ in range(3)] == [0, 1, 3]


def test_groups() -> None:
    windows = E.group_by_window(lambda x: x % 2, lambda key, group: group.batch(4), window_size=3)
    assert listed(Dataset.range(8).apply(windows)) == [[0, 2, 4], [1, 3, 5], [6], [7]]
    with pytest.raises(ValueError, match="window_size or"):
        E.group_by_window(lambda x: x, lambda key, group: group)
    reducer = E.Reducer(lambda key: np.int64(0), lambda s, x: s + x, lambda s: s)
    assert listed(Dataset.range(6).apply(E.group_by_reducer(lambda x: x % 2, reducer))) == [6, 9]
    rows = Dataset.from_generator(lambda: iter([[1], [2, 3, 4], [5], [6, 7, 8]]), tf.int32, [None])
    buckets = E.bucket_by_sequence_length(lambda x: tf.size(x), [2], [2, 2])
    assert listed(rows.apply(buckets)) == [[[1], [5]], [[2, 3, 4], [6, 7, 8]]]


def test_choices() -> None:
    parts = [Dataset.range(3), Dataset.range(10, 13)]
    order = Dataset.from_tensor_slices(np.array([0, 1, 1, 0, 1, 1, 0], "int64"))
    assert listed(E.choose_from_datasets(parts, order)) == [0, 10, 11, 1, 12, 2]
    mixed = listed(E.sample_from_datasets(parts, [0.5, 0.5], seed=1))
    assert sorted(mixed) == [0, 1, 2, 10, 11, 12]
    assert [x for x in mixed if x < 5] == [0, 1, 2]
    with pytest.raises(ValueError, match="2 weights"):
        E.sample_from_datasets(parts, [1.0])
    skewed = Dataset.from_tensor_slices(np.array([0] * 900 + [1] * 100, "int64")).shuffle(1000, 3)
    even = E.rejection_resample(lambda x: x, [0.5, 0.5], [0.9, 0.1], seed=5)
    labels = [label for label, _ in listed(skewed.apply(even))]
    assert 80 <= labels.count(1) <= 100
    assert 0.35 < np.mean(labels) < 0.65


def test_tables(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text('x,y,z\n1,2.5,"a,b"\n,NA,c\n')
    rows = E.CsvDataset(str(path), [[7], [0.5], tf.string], header=True, na_value="NA")
    assert listed(rows) == [(1, 2.5, b"a,b"), (7, 0.5, b"c")]
    chosen = E.CsvDataset(str(path), [tf.string], header=True, select_cols=[2])
    assert listed(chosen) == [(b"a,b",), (b"c",)]
    with pytest.raises(tf.errors.InvalidArgumentError, match="is empty"):
        listed(E.CsvDataset(str(path), [tf.int32, tf.float32, tf.string], header=True))
    batches = E.make_csv_dataset(
        str(tmp_path / "*.csv"), 2, label_name="x", num_epochs=1, shuffle=False, na_value="NA"
    )
    ((features, label),) = list(batches.as_numpy_iterator())
    assert label.dtype == np.int32
    assert label.tolist() == [1, 0]
    assert features["y"].tolist() == [2.5, 0]
    assert features["z"].tolist() == [b"a,b", b"c"]


def test_records(tmp_path: Path) -> None:
    path = str(tmp_path / "a.bin")
    Path(path).write_bytes(b"HHabcdF")
    found = tf.data.FixedLengthRecordDataset(path, 2, header_bytes=2, footer_bytes=1)
    assert listed(found) == [b"ab", b"cd"]
    with pytest.raises(tf.errors.DataLossError, match="no records of 3"):
        listed(tf.data.FixedLengthRecordDataset(path, 3, 2, 1))
    examples = [tf.train.Example(tf.train.Features({
        "n": tf.train.Feature(int64_list=tf.train.Int64List([i]))})).SerializeToString()
        for i in range(4)]  # fmt: skip
    file = str(tmp_path / "a.tfrecord")
    with tf.Session() as session:
        session.run(E.TFRecordWriter(file).write(Dataset.from_tensor_slices(examples)))
    batches = E.make_batched_features_dataset(
        file, 2, {"n": tf.FixedLenFeature([], tf.int64)}, num_epochs=1, shuffle=False
    )
    assert listed(batches) == [{"n": [0, 1]}, {"n": [2, 3]}]


def test_settings() -> None:
    options = tf.data.Options()
    options.experimental_threading.private_threadpool_size = 4
    assert options.merge(tf.data.Options()).experimental_deterministic is None
    assert listed(Dataset.range(2).with_options(options)) == [0, 1]
    with pytest.raises(AttributeError, match="no setting 'experimental_speed'"):
        options.experimental_speed = True
    with pytest.raises(TypeError, match="expected Options"):
        Dataset.range(2).with_options(3)
    assert E.get_structure(Dataset.range(2)) == tf.TensorSpec([], tf.int64)
    assert E.TensorStructure(tf.int32, [2]) == tf.TensorSpec([2], tf.int32)
