"""Optimizers of TensorFlow 1 against their formulas."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf

G = [np.array(g) for g in ([0.5, -2.0], [1.5, 0.25], [-1.0, 3.0])]
W = np.array([1.0, -1.0])


def momentum(nesterov: bool) -> Any:
    w, m = W.copy(), np.zeros(2)
    for g in G:
        m = 0.9 * m + g
        w = w - 0.1 * (g + 0.9 * m if nesterov else m)
    return w


def adam() -> Any:
    w, m, v = W.copy(), np.zeros(2), np.zeros(2)
    for t, g in enumerate(G, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
        rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        w = w - rate * m / (np.sqrt(v) + 1e-8)
    return w


def adagrad() -> Any:
    w, a = W.copy(), np.full(2, 0.1)
    for g in G:
        a = a + g**2
        w = w - 0.1 * g / np.sqrt(a)
    return w


def adadelta() -> Any:
    w, a, u = W.copy(), np.zeros(2), np.zeros(2)
    for g in G:
        a = 0.95 * a + 0.05 * g**2
        d = g * np.sqrt(u + 1e-3) / np.sqrt(a + 1e-3)
        u = 0.95 * u + 0.05 * d**2
        w = w - 0.1 * d
    return w


def rmsprop(centered: bool) -> Any:
    w, s, n, m = W.copy(), np.ones(2), np.zeros(2), np.zeros(2)
    for g in G:
        s, n = 0.9 * s + 0.1 * g**2, 0.9 * n + 0.1 * g
        m = 0.5 * m + 0.1 * g / np.sqrt(s - (n**2 if centered else 0) + 1e-10)
        w = w - m
    return w


def proximal() -> Any:
    w = W.copy()
    for g in G:
        p = w - 0.1 * g
        w = np.sign(p) * np.maximum(np.abs(p) - 0.1 * 0.5, 0) / (1 + 0.1 * 0.25)
    return w


T = tf.train
CASES: list[Any] = [
    pytest.param(lambda: T.GradientDescentOptimizer(0.1), lambda: W - 0.1 * sum(G), id="sgd"),
    pytest.param(lambda: T.MomentumOptimizer(0.1, 0.9), lambda: momentum(False), id="momentum"),
    pytest.param(
        lambda: T.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        lambda: momentum(True),
        id="nesterov",
    ),
    pytest.param(lambda: T.AdamOptimizer(0.1), adam, id="adam"),
    pytest.param(lambda: T.AdagradOptimizer(0.1), adagrad, id="adagrad"),
    pytest.param(lambda: T.AdadeltaOptimizer(0.1, epsilon=1e-3), adadelta, id="adadelta"),
    pytest.param(
        lambda: T.RMSPropOptimizer(0.1, momentum=0.5), lambda: rmsprop(False), id="rmsprop"
    ),
    pytest.param(
        lambda: T.RMSPropOptimizer(0.1, momentum=0.5, centered=True),
        lambda: rmsprop(True),
        id="centered",
    ),
    pytest.param(
        lambda: T.ProximalGradientDescentOptimizer(
            0.1, l1_regularization_strength=0.5, l2_regularization_strength=0.25
        ),
        proximal,
        id="proximal",
    ),
]


@pytest.mark.parametrize(("make", "expected"), CASES)
def test_three_steps(make: Callable[[], Any], expected: Callable[[], Any]) -> None:
    with tf.Graph().as_default():
        w = tf.Variable(W, name="w")
        g = tf.placeholder(tf.float64, [2])
        count = tf.train.create_global_step()
        step = make().apply_gradients([(g, w)], global_step=count)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            for value in G:
                assert sess.run(step, {g: value}) is None
            np.testing.assert_allclose(sess.run(w), expected(), rtol=1e-6)
            assert sess.run(count) == 3


def test_slots() -> None:
    with tf.Graph().as_default():
        w = tf.Variable(W, name="w")
        optimizer = tf.train.AdamOptimizer()
        optimizer.minimize(tf.reduce_sum(w * w), var_list=[w])
        assert optimizer.get_slot_names() == ["m", "v"]
        assert optimizer.get_slot(w, "m").name == "w/Adam:0"
        assert optimizer.get_slot(w, "other") is None
        assert len(optimizer.variables()) == 4
        with pytest.raises(ValueError, match="depends on none of the variables"):
            optimizer.minimize(tf.constant(1.0), var_list=[w])


def test_own_kind() -> None:
    class Sign(tf.train.Optimizer):  # type: ignore[misc]  # of a lazy name
        def __init__(self, rate: float) -> None:
            super().__init__(False, "Sign")
            self.rate = rate

        def _apply_dense(self, grad: Any, var: Any) -> Any:
            return tf.assign_sub(var, self.rate * tf.sign(grad))

    with tf.Graph().as_default():
        w = tf.Variable(W, name="w")
        step = Sign(0.5).minimize(tf.reduce_sum(w * w))
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(step)
            np.testing.assert_array_equal(sess.run(w), [0.5, -0.5])


def test_average() -> None:
    with tf.Graph().as_default():
        w = tf.Variable(1.0, name="w")
        averages = tf.train.ExponentialMovingAverage(0.9)
        update = averages.apply([w])
        change = tf.assign(w, 3.0)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(change)
            sess.run(update)
            np.testing.assert_allclose(sess.run(averages.average(w)), 0.9 * 1 + 0.1 * 3, rtol=1e-6)
        assert averages.variables_to_restore()["w/ExponentialMovingAverage"] is w


def test_averages_begin_without_the_tensors_that_they_are_of() -> None:
    """A loss comes from a queue that nobody fills before variables are initialised."""
    with tf.Graph().as_default(), tf.Session() as session:
        queue = tf.FIFOQueue(2, tf.float32, shapes=[[]])
        loss = queue.dequeue()
        averages = tf.train.ExponentialMovingAverage(0.5, zero_debias=True)
        update = averages.apply([loss])
        options = tf.RunOptions(timeout_in_ms=10_000)
        session.run(tf.global_variables_initializer(), options=options)
        session.run(queue.enqueue_many([[2.0, 4.0]]))
        session.run([update])
        session.run([update])
        # (0.25 * 2 + 0.5 * 4) / (1 - 0.5 ** 2)
        np.testing.assert_allclose(session.run(averages.average(loss)), 10 / 3, rtol=1e-6)


def test_averages_are_restored_into_a_graph_that_has_none() -> None:
    """As scripts that evaluate do."""
    with tf.Graph().as_default():
        w = tf.get_variable("w", [])
        frozen = tf.get_variable("frozen", [], trainable=False)
        averages = tf.train.ExponentialMovingAverage(0.5)
        found = averages.variables_to_restore()
        assert found == {"w/ExponentialMovingAverage": w, "frozen": frozen}


def test_the_operations_of_a_step() -> None:
    with tf.Graph().as_default() as graph, tf.Session() as session:
        w = tf.Variable([1.0, 2.0], name="w")
        step = tf.train.create_global_step()
        optimizer = tf.train.GradientDescentOptimizer(0.5)
        train = optimizer.minimize(tf.reduce_sum(w), global_step=step)
        assert (train.name, train.type) == ("GradientDescent", "AssignAdd")
        update = graph.get_operation_by_name("GradientDescent/update")
        assert (update.type, len(update.control_inputs)) == ("NoOp", 1)
        assert train.control_inputs == [update]
        assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train]
        session.run(tf.global_variables_initializer())
        session.run(train)
        assert session.run([w, step])[0].tolist() == [0.5, 1.5]
        assert session.run(step) == 1
        with pytest.raises(TypeError, match="expected a variable, got None"):
            optimizer.apply_gradients([(w, None)])
