"""`tf.train.SyncReplicasOptimizer`, axes that a run gives, and sparse tensors as strings."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import DataLossError, InvalidArgumentError


@pytest.fixture(autouse=True)
def default_graph() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def test_a_worker_alone_makes_the_steps_of_its_optimizer() -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
    step = tf.train.get_or_create_global_step()
    averages = tf.train.ExponentialMovingAverage(0.75)
    inner = tf.train.MomentumOptimizer(0.1, 0.5)
    sync = tf.train.SyncReplicasOptimizer(
        inner, 1, variable_averages=averages, variables_to_average=[w]
    )
    train = sync.minimize(loss, global_step=step)
    hooks = [sync.make_session_run_hook(True), tf.train.StopAtStepHook(last_step=4)]
    given = np.array([[1.0, 0.5]], "float32")
    found, state = [], []

    def look(step_context: Any) -> Any:
        kept = [w, averages.average(w), sync.get_slot(w, "momentum")]
        return step_context.session.run(kept)

    with tf.train.MonitoredTrainingSession(hooks=hooks) as session:
        while not session.should_stop():
            found.append(float(session.run([loss, train], {x: given})[0]))
            state = session.run_step_fn(look)
    value, moment, average, wanted = np.ones(2), np.zeros(2), np.ones(2), []
    for _ in range(4):
        wanted.append(float((given[0] @ value) ** 2))
        moment = 0.5 * moment + 2 * (given[0] @ value) * given[0]
        value = value - 0.1 * moment
        average = 0.75 * average + 0.25 * value
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    for a, e in zip(state, (value, average, moment), strict=True):
        np.testing.assert_allclose(np.ravel(a), e, rtol=1e-5)
    assert sync.get_slot_names() == ["momentum"]


def test_what_it_refuses() -> None:
    inner = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(InvalidArgumentError, match="would wait for 3 gradients of 2 workers"):
        tf.train.SyncReplicasOptimizer(inner, 3, 2)
    with pytest.raises(InvalidArgumentError, match="go together"):
        tf.train.SyncReplicasOptimizer(inner, 1, variables_to_average=[])
    w = tf.get_variable("w", [2])
    with pytest.raises(ValueError, match="give global_step"):
        tf.train.SyncReplicasOptimizer(inner, 1).minimize(tf.reduce_sum(w))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_axes_that_a_run_gives(axis: int) -> None:
    x = np.arange(6, dtype="float32").reshape(2, 3)
    a = tf.placeholder(tf.int32, [])
    made = [
        tf.concat([x, x], a),
        tf.argmax(x, a),
        tf.cumsum(x, a),
        tf.gather(x, [1, 0], axis=a),
        tf.expand_dims(x, a),
        tf.reverse(x, [a]),
        tf.reverse(x, tf.stack([a])),
        tf.squeeze(tf.reduce_sum(x, a, keepdims=True), a),
        tf.squeeze(np.ones((1, 1, 3), "float32"), 0),
    ]
    wanted = [
        np.concatenate([x, x], axis),
        np.argmax(x, axis),
        np.cumsum(x, axis),
        np.take(x, [1, 0], axis),
        np.expand_dims(x, axis),
        np.flip(x, axis),
        np.flip(x, axis),
        np.sum(x, axis),
        np.ones((1, 3)),
    ]
    with tf.Session() as session:
        for y, e in zip(session.run(made, {a: axis}), wanted, strict=True):
            np.testing.assert_array_equal(y, e)


def test_sparse_tensors_as_strings() -> None:
    """Each as three strings, in shapes as TensorFlow has them."""
    x = tf.SparseTensor([[0, 1], [2, 0], [2, 2]], [1.0, 2.0, 3.0], [3, 4])
    one, many = tf.serialize_sparse(x), tf.serialize_many_sparse(x)
    assert (one.shape.rank, many.shape.rank) == (1, 2)
    back = tf.io.deserialize_many_sparse(many, tf.float32, rank=1)
    pair = tf.deserialize_many_sparse(tf.stack([one, one]), tf.float32)
    with tf.Session() as session:
        rows, two, size = session.run([back, pair, tf.shape(many)])
        assert size.tolist() == [3, 3]
        np.testing.assert_array_equal(rows.indices, [[0, 1], [2, 0], [2, 2]])
        np.testing.assert_array_equal(rows.values, [1, 2, 3])
        assert rows.dense_shape.tolist() == [3, 4]
        assert two.dense_shape.tolist() == [2, 3, 4]
        np.testing.assert_array_equal(two.values, [1, 2, 3, 1, 2, 3])
        with pytest.raises(DataLossError):
            session.run(tf.deserialize_many_sparse([["damaged", "", ""]], tf.float32))
