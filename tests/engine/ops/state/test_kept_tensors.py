"""Tensors that stay between steps: fed by handle, fed directly, deleted, of another type."""

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import errors


@pytest.fixture
def session() -> Any:
    with tf.Graph().as_default(), tf.Session() as session:
        yield session


def test_a_handle_gives_its_value_to_later_steps(session: Any) -> None:
    x = tf.placeholder(tf.float32, [2])
    handle = session.run(tf.get_session_handle(x * 2.0), {x: [1.0, 3.0]})
    holder, kept = tf.get_session_tensor(handle.handle, tf.float32)
    np.testing.assert_array_equal(session.run(kept + 1.0, {holder: handle.handle}), [3.0, 7.0])
    np.testing.assert_array_equal(session.run(x + 1.0, {x: handle}), [3.0, 7.0])
    np.testing.assert_array_equal(handle.eval(), [2.0, 6.0])


def test_a_loop_over_steps(session: Any) -> None:
    holder, kept = tf.get_session_tensor(None, tf.int32)
    more = tf.get_session_handle(kept + 1)
    handle = session.run(tf.get_session_handle(tf.constant(0)))
    for _ in range(5):
        handle = session.run(more, {holder: handle.handle})
    assert handle.eval() == 5


def test_a_variable_that_changes_leaves_the_kept_value(session: Any) -> None:
    v = tf.Variable([1.0, 2.0])
    session.run(v.initializer)
    handle = session.run(tf.get_session_handle(v))
    session.run(v.assign_add([5.0, 5.0]))
    np.testing.assert_array_equal(handle.eval(), [1.0, 2.0])


def test_what_was_deleted_is_an_error(session: Any) -> None:
    handle = session.run(tf.get_session_handle(tf.constant([1.0])))
    holder, delete = tf.delete_session_tensor(handle.handle)
    session.run(delete, {holder: handle.handle})
    with pytest.raises(errors.FailedPreconditionError, match="was deleted"):
        handle.eval()
    holder, kept = tf.get_session_tensor(handle, tf.float32)
    with pytest.raises(errors.FailedPreconditionError, match="was deleted"):
        session.run(kept, {holder: handle})


def test_wrong_feeds_are_refused(session: Any) -> None:
    handle = session.run(tf.get_session_handle(tf.constant([1.0])))
    holder, kept = tf.get_session_tensor(handle, tf.int32)
    with pytest.raises(errors.DTypeError, match="another type than int32"):
        session.run(kept, {holder: handle})
    with pytest.raises(errors.InvalidArgumentError, match="expected the handle"):
        session.run(kept, {holder: "a"})
    y = tf.placeholder(tf.int32, [1])
    with pytest.raises(errors.DTypeError, match="must be int32"):
        session.run(y, {y: handle})
