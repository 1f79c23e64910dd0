"""Variables of TensorFlow 1's names: their methods, their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar
import laminar.compat.v1 as tf
from laminar import engine


@pytest.fixture(autouse=True)
def _own_graph() -> Any:
    with tf.Graph().as_default():
        yield


def test_value_and_name() -> None:
    with tf.variable_scope("scope"):
        w = tf.get_variable("w", [2], initializer=tf.ones_initializer())
    v = tf.Variable(3.0, name="v")
    assert (w.name, w.op.name, v.name) == ("scope/w:0", "scope/w", "v:0")
    assert isinstance(w, tf.Variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        np.testing.assert_array_equal(session.run(w.value() * v), [3.0, 3.0])
        np.testing.assert_array_equal(session.run("scope/w:0"), [1.0, 1.0])
        assert session.graph.get_tensor_by_name(v.name).shape == ()


def test_a_variable_that_is_reused_is_the_same() -> None:
    w = tf.get_variable("w", [2])
    with tf.variable_scope(tf.get_variable_scope(), reuse=True):
        assert tf.get_variable("w", [2]) is w


def test_what_a_creator_and_a_getter_make_has_these_names() -> None:
    made = []

    def creator(next_creator: Any, **arguments: Any) -> Any:
        made.append(next_creator(**arguments))
        return made[-1]

    def getter(getter: Any, name: str, *args: Any, **kwargs: Any) -> Any:
        return getter(f"{name}/0", *args, **kwargs) + getter(f"{name}/1", *args, **kwargs)

    with tf.variable_creator_scope(creator), tf.variable_scope("s", custom_getter=getter):
        tf.get_variable("v", [])
    assert [v.name for v in tf.global_variables()] == ["s/v/0:0", "s/v/1:0"]
    assert [v.op.name for v in made] == ["s/v/0", "s/v/1"]


def test_updates_take_the_arguments_of_that_time() -> None:
    v = tf.Variable([1.0, 2.0], name="v")
    set_it = v.assign([4.0, 5.0], False, "set", read_value=False)
    assert set_it.name == "set"
    added = v.assign_add([1.0, 1.0], use_locking=True)
    taken = v.assign_sub([1.0, 1.0], True, "take")
    with tf.Session() as session:
        session.run(v.initializer)
        assert session.run(set_it) is None
        np.testing.assert_array_equal(session.run(added), [5.0, 6.0])
        np.testing.assert_array_equal(session.run(taken), [4.0, 5.0])


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("scatter_add", [[1.0, 1.0], [11.0, 21.0]]),
        ("scatter_sub", [[1.0, 1.0], [-9.0, -19.0]]),
        ("scatter_update", [[1.0, 1.0], [10.0, 20.0]]),
        ("scatter_max", [[1.0, 1.0], [10.0, 20.0]]),
        ("scatter_min", [[1.0, 1.0], [1.0, 1.0]]),
        ("scatter_mul", [[1.0, 1.0], [10.0, 20.0]]),
        ("scatter_div", [[1.0, 1.0], [0.1, 0.05]]),
    ],
)
def test_rows(method: str, expected: Any) -> None:
    v = tf.Variable(np.ones((2, 2), np.float32))
    slices = tf.IndexedSlices(tf.constant([[10.0, 20.0]]), tf.constant([1]), (2, 2))
    update = getattr(v, method)(slices)
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(update)
        np.testing.assert_allclose(session.run(v), expected, rtol=1e-6)
    with pytest.raises(TypeError, match=r"expected tf\.IndexedSlices"):
        getattr(v, method)([1.0])


def test_slices_at_tuples() -> None:
    v = tf.Variable([1.0, 2.0, 3.0])
    steps = [
        v.scatter_nd_add([[0]], [10.0]),
        v.scatter_nd_sub([[1]], [1.0]),
        v.scatter_nd_update([[2]], [7.0]),
    ]
    with tf.Session() as session:
        session.run(v.initializer)
        session.run(steps)
        np.testing.assert_array_equal(session.run(v), [11.0, 1.0, 7.0])


def test_reads_of_rows() -> None:
    v = tf.Variable([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    rows = v.sparse_read([2, 0], name="rows")
    (slope,) = tf.gradients(rows, [v])
    assert rows.op.name == "rows"
    assert isinstance(slope, tf.IndexedSlices)
    with tf.Session() as session:
        session.run(v.initializer)
        np.testing.assert_array_equal(session.run(rows), [[5.0, 6.0], [1.0, 2.0]])
        np.testing.assert_array_equal(session.run(v.gather_nd([[1, 0], [2, 1]])), [3.0, 6.0])


def test_counts_up_to_a_limit() -> None:
    v = tf.Variable(0, name="count")
    count = v.count_up_to(2)
    with tf.Session() as session:
        session.run(v.initializer)
        assert [session.run(count), session.run(count)] == [0, 1]
        with pytest.raises(tf.errors.OutOfRangeError):
            session.run(count)


def test_they_are_saved_under_the_names_of_their_operations(tmp_path: Path) -> None:
    tf.get_variable("a/w", initializer=2.0)
    step = tf.train.get_or_create_global_step()
    assert step is tf.train.get_global_step()
    assert step.name == "global_step:0"
    saver = tf.train.Saver()
    with tf.Session() as session:
        assert set(session.run(tf.report_uninitialized_variables())) == {b"a/w", b"global_step"}
        session.run(tf.global_variables_initializer())
        path = saver.save(session, str(tmp_path / "model"))
    assert [name for name, _ in tf.train.list_variables(path)] == ["a/w", "global_step"]
    with tf.Graph().as_default():
        tf.train.import_meta_graph(path + ".meta")
        assert [v.name for v in tf.global_variables()] == ["a/w:0", "global_step:0"]


def test_an_optimizer_of_laminar_trains_them() -> None:
    with engine.eager_scope():
        v = tf.Variable(np.full((2, 2), 4.0, np.float32), constraint=lambda w: w * 0.5)
        assert v.name == "Variable:0" or v.name == "variable:0"
        for name in ("lamb", "adafactor", "sgd"):
            v.assign(np.full((2, 2), 4.0, np.float32))
            optimizer = laminar.optimizers.get(name)
            optimizer.apply([np.ones((2, 2), np.float32)], [v])
            assert 0.0 < float(v.numpy().max()) <= 2.0


def test_what_is_kept_apart_is_not_trained() -> None:
    on_read = tf.VariableSynchronization.ON_READ
    v = tf.get_variable("v", [], synchronization=on_read)
    w = tf.Variable(1.0, synchronization=on_read)
    u = tf.get_variable("u", [])
    assert [v.trainable, w.trainable, u.trainable] == [False, False, True]
    assert tf.trainable_variables() == [u]
    with pytest.raises(ValueError, match="ON_READ"):
        tf.get_variable("x", [], trainable=True, synchronization=on_read)


def test_collections_of_ones_own_come_beside_that_of_training() -> None:
    with tf.Graph().as_default():
        v = tf.Variable(1.0, collections=["mine"])
        w = tf.Variable(1.0, collections=["mine"], trainable=False)
        tf.Variable(1.0, collections=[])
        assert tf.get_collection("mine") == [v, w]
        assert tf.trainable_variables() == [v]
        assert tf.global_variables() == []
        with pytest.raises(TypeError, match=r"tf\.assign: expected a variable"):
            tf.assign(v + 1.0, 2.0)
