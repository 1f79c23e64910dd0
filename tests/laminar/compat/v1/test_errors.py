"""`tf.errors`: made as TensorFlow makes them, with status, operation and message."""

from __future__ import annotations

import pytest

import laminar.compat.v1 as tf
from laminar.engine import errors


@pytest.mark.parametrize("code", range(1, 17))
def test_a_class_for_each_status(code: int) -> None:
    kind = tf.errors.exception_type_from_error_code(code)
    error = kind(None, None, "what came")
    assert (error.message, error.error_code, error.op, error.node_def) == (
        "what came",
        code,
        None,
        None,
    )
    assert "what came" in str(error)
    assert isinstance(error, tf.errors.OpError)
    assert tf.errors.error_code_from_exception_type(kind) == code


def test_an_error_of_a_step_has_its_operation() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder_with_default(-1.0, [])
        checked = tf.check_numerics(tf.log(x), "bad", name="check")
        with pytest.raises(tf.errors.InvalidArgumentError, match="bad") as caught:
            session.run(checked)
        assert caught.value.op is checked.op
        assert caught.value.node_def.name == "check"
        assert caught.value.error_code == tf.errors.INVALID_ARGUMENT == 3


def test_a_file_that_is_missing_is_not_found() -> None:
    with pytest.raises(tf.errors.NotFoundError) as caught:
        list(tf.python_io.tf_record_iterator("no such file"))
    assert isinstance(caught.value, FileNotFoundError)
    assert isinstance(caught.value, errors.MissingFileError)
