"""Partitioners, critical sections and versions under TensorFlow 1's names."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

# (partitioner, shape, dtype, parts), as TensorFlow's documentation and tests have them.
PARTS: list[tuple[Any, Any, Any, list[int]]] = [
    (tf.fixed_size_partitioner(4), [10, 3], tf.float32, [4, 1]),
    (tf.fixed_size_partitioner(4, axis=1), [10, 3], tf.float32, [1, 3]),
    (tf.variable_axis_size_partitioner(4096), [4, 8, 16, 32], tf.float32, [4, 1, 1, 1]),
    (tf.variable_axis_size_partitioner(2000, axis=3), [4, 8, 16, 32], tf.float32, [1, 1, 1, 32]),
    (tf.variable_axis_size_partitioner(8192), [4, 8, 16, 32], tf.float32, [4, 1, 1, 1]),
    (tf.variable_axis_size_partitioner(32768), [4, 8, 16, 32], tf.float32, [2, 1, 1, 1]),
    (tf.variable_axis_size_partitioner(1024, max_shards=3), [1024], tf.float32, [3]),
    (tf.variable_axis_size_partitioner(1024), [1024], tf.string, [16]),
    (tf.min_max_variable_partitioner(100, min_slice_size=2 << 10), [2048], tf.float32, [4]),
    (tf.min_max_variable_partitioner(2, min_slice_size=2 << 10), [2048], tf.float32, [2]),
    (tf.min_max_variable_partitioner(100, 0, 256 << 10), [2048, 1024], tf.float32, [32, 1]),
    (tf.min_max_variable_partitioner(100, 1, 256 << 10), [2048, 1024], tf.float32, [1, 32]),
    (tf.min_max_variable_partitioner(100), [3], tf.float32, [1]),
]


@pytest.mark.parametrize(("partitioner", "shape", "dtype", "expected"), PARTS)
def test_parts(partitioner: Any, shape: Any, dtype: Any, expected: list[int]) -> None:
    assert partitioner(shape=tf.TensorShape(shape), dtype=dtype) == expected


def test_numbers_that_are_not_positive() -> None:
    with pytest.raises(ValueError, match="max_shard_bytes must be positive, got 0"):
        tf.variable_axis_size_partitioner(0)
    with pytest.raises(ValueError, match="max_shards must be positive, got 0"):
        tf.variable_axis_size_partitioner(1, max_shards=0)
    with pytest.raises(ValueError, match="max_partitions must be positive, got 0"):
        tf.min_max_variable_partitioner(0)


def test_a_variable_in_parts() -> None:
    with tf.Graph().as_default():
        with tf.variable_scope("a", partitioner=tf.fixed_size_partitioner(3)):
            v = tf.get_variable("v", [5, 2], initializer=tf.ones_initializer())
        assert [p.shape for p in v] == [(2, 2), (2, 2), (1, 2)]
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            np.testing.assert_array_equal(session.run(tf.convert_to_tensor(v)), np.ones((5, 2)))


def test_one_at_a_time() -> None:
    """Reading and then storing loses no update."""
    with tf.Graph().as_default():
        v = tf.Variable(0, use_resource=True)
        section = tf.CriticalSection(name="section")

        def increase() -> Any:
            found = tf.identity(v)
            with tf.control_dependencies([found]):
                return tf.assign(v, found + 1)

        increased = section.execute(increase)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            threads = [
                threading.Thread(target=lambda: [session.run(increased) for _ in range(10)])
                for _ in range(4)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert session.run(v) == 40
        assert section.name == "section"
        with pytest.raises(NotImplementedError, match="messages"):
            tf.CriticalSection(critical_section_def=b"")


def test_versions() -> None:
    assert tf.__version__ == tf.VERSION
    assert int(tf.__version__.split(".")[0]) < 2
    assert tf.GRAPH_DEF_VERSION >= tf.GRAPH_DEF_VERSION_MIN_CONSUMER


def test_rows_or_a_tensor() -> None:
    with tf.Graph().as_default():
        rows = tf.IndexedSlices(tf.ones([2, 3]), [0, 1], [4, 3])
        assert tf.convert_to_tensor_or_indexed_slices(rows) is rows
        assert tf.convert_to_tensor_or_indexed_slices([1, 2], tf.int64).dtype == "int64"
        assert tf.convert_to_tensor_or_indexed_slices([1.0]).dtype == "float32"
        with pytest.raises(ValueError, match="asked for int32"):
            tf.convert_to_tensor_or_indexed_slices(rows, tf.int32)
    assert tf.Dimension(None).value is None


def test_parts_are_along_an_axis_that_there_is() -> None:
    for partitioner in (
        tf.fixed_size_partitioner(2, axis=5),
        tf.variable_axis_size_partitioner(64, axis=5),
        tf.min_max_variable_partitioner(2, axis=5),
    ):
        with pytest.raises(ValueError, match="axis 5 does not exist"):
            partitioner(shape=tf.TensorShape([4, 2]), dtype=tf.float32)
    with pytest.raises(ValueError, match="num_shards must be positive"):
        tf.fixed_size_partitioner(0)
