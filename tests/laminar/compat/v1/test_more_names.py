"""Names of the smaller modules, with the values that TensorFlow's documentation states."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError, MissingFileError, ShapeError


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        return session.run(x, feed)


def sparse(rows: list[list[str]], shape: list[int]) -> Any:
    places = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    values = [item for row in rows for item in row]
    return tf.SparseTensor(np.reshape(places, (-1, 2)), np.array(values, object), shape)


def test_edit_distances() -> None:
    ours = sparse([list("kitten"), list("b"), [], list("ab")], [4, 6])
    true = sparse([list("sitting"), [], [], list("ab")], [4, 7])
    found = run([tf.edit_distance(ours, true), tf.edit_distance(ours, true, normalize=False)])
    np.testing.assert_allclose(found[0], [3 / 7, np.inf, 0, 0], rtol=1e-6)
    np.testing.assert_array_equal(found[1], [3, 1, 0, 0])


def test_shapes_broadcast_in_graphs() -> None:
    x = tf.placeholder(tf.int32, [3])
    found = tf.broadcast_dynamic_shape(x, [5, 1])
    np.testing.assert_array_equal(run(found, {x: [2, 1, 4]}), [2, 5, 4])
    with pytest.raises(InvalidArgumentError, match="broadcast"):
        run(found, {x: [2, 3, 4]})
    with pytest.raises(ShapeError, match="axes must be known"):
        tf.broadcast_dynamic_shape(tf.placeholder(tf.int32, [None]), [1])


def test_variables_in_parts() -> None:
    parts = tf.create_partitioned_variables([4, 6], [1, 3], tf.ones_initializer(), name="whole")
    assert [v.shape for v in parts] == [[4, 2]] * 3
    assert [v.name for v in tf.global_variables()] == [v.name for v in parts]


def test_the_same_seeds_give_the_same_numbers() -> None:
    def drawn(seed: Any) -> list[Any]:
        return [
            tf.random.stateless_uniform([1000], seed),
            tf.random.stateless_uniform([1000], seed, 3, 9, tf.int32),
            tf.random.stateless_normal([1000], seed, 2.0, 0.5),
            tf.random.stateless_truncated_normal([1000], seed),
            tf.random.stateless_categorical(np.log([[0.25, 0.75, 1e-30]]), 1000, seed),
        ]

    seed = tf.placeholder(tf.int32, [2])
    with tf.Session() as session:
        first = session.run(drawn(seed), {seed: [1, 2]})
        again = session.run(drawn([1, 2]))
        other = session.run(drawn(seed), {seed: [2, 1]})
    for a, b, c in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a != c).any()
    uniform, whole, normal, truncated, classes = first
    assert 0 <= uniform.min() < 0.05 < 0.95 < uniform.max() < 1
    assert sorted(set(whole.tolist())) == [3, 4, 5, 6, 7, 8]
    assert abs(normal.mean() - 2) < 0.1
    assert abs(normal.std() - 0.5) < 0.05
    assert np.abs(truncated).max() <= 2
    assert 0.7 < (classes == 1).mean() < 0.8
    assert not (classes == 2).any()
    with pytest.raises(ShapeError, match="two whole numbers"):
        tf.random.stateless_uniform([2], [1, 2, 3])
    with pytest.raises(ValueError, match="need a maxval"):
        tf.random.stateless_uniform([2], [1, 2], dtype=tf.int32)


def test_devices_are_listed() -> None:
    (cpu,) = tf.config.experimental.list_physical_devices("CPU")
    assert (cpu.name, cpu.device_type) == ("/physical_device:CPU:0", "CPU")
    assert cpu in tf.config.list_physical_devices()
    tf.config.experimental.set_memory_growth(cpu, True)
    assert tf.config.experimental.get_memory_growth(cpu)
    with pytest.raises(InvalidArgumentError, match="at once"):
        tf.config.experimental.set_memory_growth(cpu, False)
    with pytest.raises(InvalidArgumentError, match="no device"):
        tf.config.experimental.set_memory_growth("tpu", True)
    gpus = tf.config.list_physical_devices("GPU")
    assert tf.test.is_gpu_available() == bool(gpus)
    assert bool(tf.test.gpu_device_name()) == bool(gpus)


def test_structures_types_and_versions() -> None:
    assert tf.nest.flatten({"b": [1, 2], "a": 0}) == [0, 1, 2]
    assert tf.nest.map_structure(lambda x: x + 1, (1, [2])) == (2, [3])
    assert tf.dtypes.as_dtype("int32") == tf.dtypes.int32
    assert run(tf.dtypes.cast(1.9, tf.int32)) == 1
    assert tf.version.VERSION == tf.VERSION
    assert isinstance(3, tf.compat.integral_types)
    assert isinstance(np.float32(3), tf.compat.real_types)
    assert tf.compat.path_to_str(Path("a") / "b") == "a/b"
    assert tf.compat.forward_compatible(2019, 1, 1)
    assert run(tf.arg_max([[1, 3], [4, 2]], 1)).tolist() == [1, 0]
    assert run(tf.arg_min([[1, 3], [4, 2]], 0)).tolist() == [0, 1]
    assert run(tf.math.is_strictly_increasing([1, 2, 2])) == np.False_


def test_files(tmp_path: Path) -> None:
    files = tf.io.gfile
    folder = f"{tmp_path}/a/b"
    files.makedirs(folder)
    with files.GFile(f"{folder}/c", "w") as file:
        file.write("text")
    assert files.stat(f"{folder}/c").length == 4
    assert tf.gfile.Stat(folder).is_directory
    assert files.glob(f"{folder}/*") == [f"{folder}/c"]
    assert tf.gfile.Exists(filename=f"{folder}/c")
    files.rmtree(f"{tmp_path}/a")
    with pytest.raises(MissingFileError):
        files.stat(folder)


def test_logs_by_number(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, logger="laminar"):
        for i in range(5):
            tf.logging.log_every_n(tf.logging.INFO, "every %d", 2, i)
            tf.logging.log_first_n(tf.logging.INFO, "first %d", 2, i)
            tf.logging.log_if(tf.logging.INFO, "odd %d", i % 2, i)
        tf.logging.log(tf.logging.WARN, "once")
    found = [record.getMessage() for record in caplog.records]
    assert [t for t in found if t.startswith("every")] == ["every 0", "every 2", "every 4"]
    assert [t for t in found if t.startswith("first")] == ["first 0", "first 1"]
    assert [t for t in found if t.startswith("odd")] == ["odd 1", "odd 3"]
    assert found[-1] == "once"
    assert tf.get_logger().name == "laminar"
