"""Control flow of functions, lists as values, and gradients of what is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import engine


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(x, feed)


def decorated(fn: Any, *kinds: Any) -> Any:
    return engine.function(fn, input_signature=[tf.TensorSpec(None, kind) for kind in kinds])


def test_loops() -> None:
    two = (tf.float32, tf.float32)
    go_on = decorated(lambda n, x: n > 0, *two)
    body = decorated(lambda n, x: (n - 1, x + n), *two)
    n = tf.placeholder(tf.float32)
    assert run(tf.While([n, 0.0], go_on, body), {n: 20.0}) == [0, 210]
    number = decorated(lambda n, x: n, *two)
    assert run(tf.While([n, 0.0], number, body), {n: 3.0}) == [0, 6]
    with pytest.raises(ValueError, match="must give as many"):
        tf.While([5.0, 0.0], go_on, decorated(lambda n, x: n - 1, *two))
    add = decorated(lambda i, x: x + tf.cast(i, tf.float32), tf.int32, tf.float32)
    assert run(tf.For(1, 21, 1, [0.0], add)) == [210]
    assert run(tf.For(100, 0, -1, [0.0], add)) == [5050]
    with pytest.raises(ValueError, match="never ends"):
        tf.For(1, 0, 1, [0.0], add)
    with pytest.raises(ValueError, match="must not be 0"):
        tf.For(1, 2, 0, [0.0], add)


def test_branches_and_calls() -> None:
    twice, thrice = (decorated(lambda x, k=k: x * k, tf.float32) for k in (2.0, 3.0))
    x = tf.placeholder(tf.float32)
    assert run(tf.If(x > 0, [x], twice, thrice), {x: 9.0}) == [18]
    assert run(tf.If(x, [x], twice, thrice), {x: -8.0}) == [-16]
    assert run(tf.If("", [x], twice, thrice), {x: 1.0}) == [3]
    assert run(tf.partitioned_call([x], twice), {x: 2.0}) == [4]
    assert run(tf.remote_call([x], [tf.float32], twice, "/cpu:0"), {x: 2.0}) == [4]
    square = decorated(lambda x: x * x, tf.float32)
    assert run(tf.Gradient([x, 1.0], square), {x: 3.0}) == [6]
    with pytest.raises(ValueError, match="gradients of results"):
        tf.Gradient([x, 1.0, 1.0], square)


def test_gradients_of_what_is_read() -> None:
    with engine.eager_scope():
        v = engine.Variable(3.0)
        value, pairs = tf.implicit_val_and_grad(lambda x: v * v * x)(engine.constant(2.0))
        assert float(value) == 18
        assert [(float(dy), of is v) for dy, of in pairs] == [(12.0, True)]
        (pair,) = tf.implicit_grad(lambda: v * 5.0)()
        assert float(pair[0]) == 5
        with pytest.raises(ValueError, match="reads no trainable variable"):
            tf.implicit_grad(lambda x: x)(engine.constant(1.0))


def test_a_gradient_that_is_prevented() -> None:
    x = tf.constant(2.0)
    y = tf.prevent_gradient(x)
    assert run(y) == 2
    with pytest.raises(LookupError, match="disabled: no reason"):
        tf.gradients(y, x)


def test_variables_that_results_depend_on() -> None:
    v, frozen = tf.variable(2.0), tf.variable(3.0, trainable=False)
    before = v * 5.0
    after = {"y": tf.identity(before) + v + frozen}
    assert tf.get_dependent_variables([before], after) == [v]
    assert tf.get_dependent_variables([before], tf.identity(before) + 1.0) == []
    assert tf.get_dependent_variables([before], before + tf.ones_like(v)) == []


def test_shapes() -> None:
    shapes = [[2, 3, 5], [2, 7, 5], [2, 20, 5]]
    found = tf.concat_offset(1, [tf.constant(s) for s in shapes])
    assert [o.tolist() for o in run(found)] == [[0, 0, 0], [0, 3, 0], [0, 10, 0]]
    for axis, given, message in (
        (4, shapes, "out of range: 4 vs. 3"),
        (1, [[2, 3, 5], [2, 3]], "should contain 3"),
        (1, [[2, 3, 5], [2, 7, 10]], "must match"),
        (1, [[[2, 3, 5]], [[2, 7, 10]]], "a vector"),
    ):
        with pytest.raises(tf.errors.InvalidArgumentError, match=message):
            run(tf.concat_offset(axis, [tf.constant(s) for s in given]))
    assert run(tf.reduced_shape([2, 3, 5, 7], [-1, 1])).tolist() == [2, 1, 5, 1]
    assert run(tf.concat_v2([[1], [2, 3]], 0)).tolist() == [1, 2, 3]
    x, places = np.arange(12).reshape(2, 3, 2), np.array([[[2]], [[0]]])
    assert run(tf.batch_gather_nd(x, places, 1)).tolist() == [[[4, 5]], [[6, 7]]]
    with pytest.raises(ValueError, match="must be below"):
        tf.batch_gather_nd(x, places, 3)


def test_lists() -> None:
    x = tf.constant(1)
    values = tf.empty_tensor_list(element_shape=[], element_dtype=tf.int32)
    _, filled = tf.while_loop(
        lambda n, values: n < 5, lambda n, values: (n + 1, tf.tensor_list_push_back(values, n)),
        [x, values],
    )  # fmt: skip
    shorter, last = tf.tensor_list_pop_back(filled, tf.int32, element_shape=[])
    changed = tf.tensor_list_set_item(shorter, 0, 9)
    fetches = [
        tf.tensor_list_stack(filled, tf.int32, element_shape=[]),
        last,
        tf.tensor_list_stack(changed, tf.int32, element_shape=[]),
        tf.tensor_list_length(tf.tensor_list_resize(shorter, 7)),
        tf.tensor_list_get_item(tf.tensor_list_from_tensor([5, 6]), 1, tf.int32, []),
        tf.tensor_list_length(tf.tensor_list_reserve([], 3, tf.int32)),
    ]
    found = [np.asarray(f).tolist() for f in run(fetches)]
    assert found == [[1, 2, 3, 4], 4, [9, 2, 3], 7, 6, 3]


def test_components_of_specs() -> None:
    sparse = tf.SparseTensorSpec([3, None], tf.int32)
    assert sparse._component_specs[0] == tf.TensorSpec([None, 2], tf.int64)
    assert sparse._batch(5) == tf.SparseTensorSpec([5, 3, None], tf.int32)
    assert sparse._unbatch() == tf.SparseTensorSpec([None], tf.int32)
    rows = tf.IndexedSlicesSpec([5, 10], dense_shape_dtype=tf.int32, indices_shape=[20])
    specs = ([20, 10], tf.float32), ([20], tf.int64), ([2], tf.int32)
    assert rows._component_specs == tuple(tf.TensorSpec(s, d) for s, d in specs)
    ragged = tf.RaggedTensorSpec([2, None, 4], tf.int32, 1)
    flat, splits = ragged._component_specs
    assert (flat, splits) == (tf.TensorSpec([None, 4], tf.int32), tf.TensorSpec([3], tf.int64))
    value = tf.ragged.constant([[1], [2, 3]])
    spec = tf.RaggedTensorSpec.from_value(value)
    assert run(spec._from_components(spec._to_components(value))).to_list() == [[1], [2, 3]]
