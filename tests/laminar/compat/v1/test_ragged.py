"""Ragged tensors under TensorFlow 1's names; values by TensorFlow 2.21's `compat.v1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any, feed: Any = None) -> Any:
    with tf.Session() as session:
        found = session.run(x, feed)
    return found.to_list() if isinstance(found, tf.ragged.RaggedTensorValue) else found.tolist()


def test_functions_of_tensors_take_ragged_ones() -> None:
    r = tf.ragged.constant([[3, 1, 4], [], [1]])
    q = tf.ragged.constant([[[1, 2], [3]], [], [[4], [], [5, 6, 7]]])
    table: list[tuple[Any, Any]] = [
        (tf.add(r, 1), [[4, 2, 5], [], [2]]),
        (tf.add_n([r, r]), [[6, 2, 8], [], [2]]),
        (tf.cast(r, tf.float32) / 2.0, [[1.5, 0.5, 2.0], [], [0.5]]),
        (tf.clip_by_value(r, 1, 2), [[2, 1, 2], [], [1]]),
        (tf.zeros_like(r), [[0, 0, 0], [], [0]]),
        (tf.maximum(r, y=2), [[3, 2, 4], [], [2]]),
        (tf.reduce_sum(r, axis=1), [8, 0, 1]),
        (tf.reduce_sum(r, reduction_indices=0), [4, 1, 4]),
        (tf.reduce_max(r), 4),
        (tf.reduce_any(r > 2, axis=1), [True, False, False]),
        (tf.concat([r, r], axis=1), [[3, 1, 4, 3, 1, 4], [], [1, 1]]),
        (tf.stack([r, r]), [[[3, 1, 4], [], [1]]] * 2),
        (tf.gather(r, [2, 0]), [[1], [3, 1, 4]]),
        (tf.gather_nd(q, [[0, 1], [2, 2]]), [[3], [5, 6, 7]]),
        (tf.gather_nd(q, [[0, 0, 1], [2, 2, 2]]), [2, 7]),
        (tf.batch_gather(r, tf.ragged.constant([[0, 0], [], [0]])), [[3, 3], [], [1]]),
        (tf.expand_dims(r, 0), [[[3, 1, 4], [], [1]]]),
        (tf.tile(r, [1, 2]), [[3, 1, 4, 3, 1, 4], [], [1, 1]]),
        (tf.where(r > 1), [[0, 0], [0, 2]]),
        (tf.where(r > 1, r, -r), [[3, -1, 4], [], [-1]]),
        (tf.boolean_mask(r, [True, False, True]), [[3, 1, 4], [1]]),
        (tf.size(r), 4),
        (tf.rank(q), 3),
        (tf.math.unsorted_segment_sum(r, [0, 1, 0], 2), [[4, 1, 4], []]),
        (tf.map_fn(tf.reduce_sum, r, dtype=tf.int32), [8, 0, 1]),
        (tf.strings.length(tf.ragged.constant([["a", "bb"], ["ccc"]])), [[1, 2], [3]]),
        (tf.strings.join([tf.ragged.constant([["a"], ["b"]])] * 2, "-"), [[b"a-a"], [b"b-b"]]),
        (tf.nn.embedding_lookup(tf.constant([[1.0], [2.0]]), tf.ragged.constant([[0], [1, 1]])),
         [[[1.0]], [[2.0], [2.0]]]),
        (tf.ragged.map_flat_values(lambda x: x * 10, r), [[30, 10, 40], [], [10]]),
        (tf.sparse.to_dense(r.to_sparse()), [[3, 1, 4], [0, 0, 0], [1, 0, 0]]),
        (tf.ragged.range([2, 0, 3]), [[0, 1], [], [0, 1, 2]]),
        (tf.ragged.stack([tf.constant([1, 2]), tf.constant([3])]), [[1, 2], [3]]),
        (tf.ragged.boolean_mask([[1, 2], [3, 4]], [[True, False], [True, True]]), [[1], [3, 4]]),
        (tf.ragged.stack_dynamic_partitions([1, 2, 3], [2, 0, 2], 3), [[2], [], [1, 3]]),
        (tf.RaggedTensor.from_row_splits([1, 2], [0, 0, 2]), [[], [1, 2]]),
        (tf.RaggedTensor.from_value_rowids([1, 2], [1, 1], nrows=3), [[], [1, 2], []]),
        (tf.RaggedTensor.from_tensor([[5, 0], [0, 0]], padding=0), [[5], []]),
    ]  # fmt: skip
    for found, expected in table:
        assert run(found) == expected


def test_what_is_fed_and_fetched() -> None:
    x = tf.ragged.placeholder(tf.float32, 1)
    value = tf.ragged.constant_value([[1.0, 2.0], [3.0]], dtype=np.float32)
    assert isinstance(value, tf.ragged.RaggedTensorValue)
    assert isinstance(x, tf.RaggedTensor)
    assert run(x * 2.0, {x: value}) == [[2, 4], [6]]
    again = tf.ragged.RaggedTensorValue(np.array([1.0, 2.0], np.float32), np.array([0, 1, 2]))
    assert run(x * 2.0, {x: again}) == [[2], [4]]
    gradient = tf.gradients(tf.reduce_sum(tf.square(x)), x.flat_values)[0]
    assert run(gradient, {x: value}) == [2, 4, 6]


def test_specs() -> None:
    spec = tf.RaggedTensorSpec([2, None], tf.int32)
    assert spec.is_compatible_with(tf.ragged.constant([[1], [2, 3]]))
    assert not spec.is_compatible_with(tf.ragged.constant([[1], [2, 3], []]))
    with pytest.raises(ValueError, match="cannot be ragged"):
        tf.RaggedTensorSpec([2, None], ragged_rank=2)


def test_what_has_no_ragged_form_says_so() -> None:
    with pytest.raises(TypeError, match="no tensor"):
        tf.matmul(tf.ragged.constant([[1.0]]), [[1.0]])
