"""What assertions of TensorFlow 1 refuse when the graph is built, and what when it runs."""

from __future__ import annotations

from typing import Any

import pytest

import laminar.compat.v1 as tf
from laminar import errors

AT_ONCE: list[Any] = [
    pytest.param(lambda: tf.assert_equal(tf.constant([1, 2]), [1, 3]), "x == y", id="equal"),
    pytest.param(lambda: tf.assert_less(tf.constant([1, 2]), 2), "x < y", id="less"),
    pytest.param(lambda: tf.assert_positive(tf.constant([0.0])), "x > 0", id="positive"),
    pytest.param(lambda: tf.assert_rank(tf.zeros([2]), 2), "of rank 2", id="rank"),
    pytest.param(lambda: tf.assert_rank_in(tf.zeros([2]), [0, 2]), "ranks", id="ranks"),
]


@pytest.mark.parametrize(("make", "message"), AT_ONCE)
def test_what_is_known_is_refused_at_once(make: Any, message: str) -> None:
    with tf.Graph().as_default(), pytest.raises(errors.InvalidArgumentError, match=message):
        make()


def test_a_rank_is_a_number() -> None:
    with tf.Graph().as_default(), pytest.raises(TypeError, match="whole number"):
        tf.assert_rank(tf.zeros([2]), 1.0)


CHECKS: list[Any] = [
    pytest.param(lambda x: tf.assert_rank(x, 1), 1.0, id="rank"),
    pytest.param(lambda x: tf.assert_rank_at_least(x, 1), 1.0, id="at least"),
    pytest.param(lambda x: tf.assert_rank_in(x, [1, 2]), 1.0, id="in"),
    pytest.param(lambda x: tf.assert_less(x, 5.0), [6.0], id="less"),
]


@pytest.mark.parametrize(("make", "wrong"), CHECKS)
def test_what_is_not_known_is_refused_in_the_step(make: Any, wrong: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32)
        with tf.control_dependencies([make(x)]):
            y = tf.identity(x)
        assert session.run(y, {x: [4.0]}) == 4.0
        with pytest.raises(errors.InvalidArgumentError):
            session.run(y, {x: wrong})


def test_what_holds_is_an_operation_to_wait_for() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.zeros([2])
        with tf.control_dependencies([tf.assert_rank(x, 1), tf.assert_rank_in(x, [0, 1])]):
            assert session.run(tf.identity(x)).shape == (2,)
