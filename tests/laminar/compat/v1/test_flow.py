"""Python functions, critical sections and blocks outside of functions, as TensorFlow 1 has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf


def _raising(kind: type[Exception]) -> Any:
    def fn() -> Any:
        raise kind("blah")

    return fn


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (ValueError, tf.errors.InvalidArgumentError),
        (TypeError, tf.errors.InvalidArgumentError),
        (StopIteration, tf.errors.OutOfRangeError),
        (MemoryError, tf.errors.ResourceExhaustedError),
        (NotImplementedError, tf.errors.UnimplementedError),
    ],
)
def test_what_a_python_function_raises(kind: Any, expected: Any) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        y = tf.py_func(_raising(kind), [], tf.float32)
        with pytest.raises(expected, match="blah"):
            session.run(y)


def test_what_a_python_function_gives() -> None:
    records = np.array([], dtype=[("foo", np.float32)])
    with tf.Graph().as_default(), tf.Session() as session:
        with pytest.raises(tf.errors.InvalidArgumentError, match="gave records"):
            session.run(tf.py_func(lambda: records, [], [tf.float32]))
        with pytest.raises(tf.errors.InvalidArgumentError, match="gave 2 arrays, expected 1"):
            session.run(tf.py_func(lambda: (1.0, 2.0), [], [tf.float32]))


def test_a_variable_belongs_to_one_critical_section() -> None:
    with tf.Graph().as_default():
        first, second = tf.CriticalSection(), tf.CriticalSection()
        v, w = (tf.get_variable(name, initializer=0.0) for name in "vw")
        first.execute(lambda: v + 1)
        first.execute(lambda: v - 1)
        second.execute(lambda: w + 1)
        for exclusive in (True, False):  # the first has it for itself
            with pytest.raises(ValueError, match="exclusive access was asked for to v"):
                second.execute(lambda: v + 1, exclusive_resource_access=exclusive)
        third, fourth = tf.CriticalSection(), tf.CriticalSection()
        u = tf.get_variable("u", initializer=0.0)
        third.execute(lambda: u + 1, exclusive_resource_access=False)
        fourth.execute(lambda: u + 1, exclusive_resource_access=False)


def test_what_is_made_in_init_scope_is_outside_of_the_function() -> None:
    kept: list[Any] = []

    def count() -> Any:
        with tf.init_scope():
            kept.append(tf.Variable(3))
        return kept[-1].assign_add(1)

    with tf.Graph().as_default() as graph, tf.Session() as session:
        with tf.control_dependencies([tf.no_op()]), tf.init_scope():
            free = tf.constant(1)
        assert not free.op.control_inputs
        call = tf.function(count)
        y = call()
        assert [v.graph for v in kept] == [graph]
        session.run(tf.global_variables_initializer())
        assert [session.run(y), session.run(y)] == [4, 5]


def test_fill_and_expand_dims_take_one_number() -> None:
    with tf.Graph().as_default():
        with pytest.raises(ValueError, match="fill: the value must be one element"):
            tf.fill([3, 2], [1.0, 2.0])
        with pytest.raises(ValueError, match="expand_dims: axis must be a single number"):
            tf.expand_dims(1, axis=[0, 1])
        assert tf.expand_dims([1, 2], axis=[1]).shape == (2, 1)
