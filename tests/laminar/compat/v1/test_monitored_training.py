"""A script of version 1 whose training is watched."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import laminar.compat.v1 as tf


@pytest.fixture(autouse=True)
def default_graph() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()
    tf.summary.FileWriterCache.clear()


def test_training_goes_on_where_it_ended(tmp_path: Path) -> None:
    found = []
    for end in (2, 4):
        tf.reset_default_graph()
        x = tf.placeholder(tf.float32, [None, 2])
        w = tf.get_variable("w", [2, 1], initializer=tf.ones_initializer())
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w)))
        tf.summary.scalar("loss", loss)
        step = tf.train.get_or_create_global_step()
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
        hooks = [tf.train.StopAtStepHook(last_step=end), tf.train.NanTensorHook(loss)]
        with tf.train.MonitoredTrainingSession(
            checkpoint_dir=str(tmp_path), hooks=hooks, save_checkpoint_steps=1
        ) as session:
            while not session.should_stop():
                feeds = {x: np.array([[1.0, 0.5]], "float32")}
                found.append(float(session.run([loss, train], feeds)[0]))
    value, wanted = np.ones(2), []
    for _ in range(4):
        y = value @ [1, 0.5]
        wanted.append(y * y)
        value = value - 0.1 * 2 * y * np.array([1, 0.5])
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
    files = sorted(tmp_path.glob("events.*"))
    events = [e for path in files for e in tf.train.summary_iterator(str(path))]
    tags = {v.tag for e in events if e.summary for v in e.summary.value}
    assert "loss" in tags
