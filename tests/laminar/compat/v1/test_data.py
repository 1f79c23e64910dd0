"""tf.data in sessions: iterators that operations make, go on with, and find again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf
from laminar import datasets, engine


@pytest.fixture(autouse=True)
def _own_graph() -> Any:
    with tf.Graph().as_default():
        yield


def rest_of(session: Any, fetch: Any) -> list[Any]:
    found = []
    while True:
        try:
            found.append(session.run(fetch))
        except tf.errors.OutOfRangeError:
            return found


def test_one_shot() -> None:
    data = tf.data.Dataset.from_tensor_slices(np.arange(5, dtype=np.float32))
    data = data.map(lambda x: tf.square(x) + 1.0).filter(lambda x: x < 10.0).batch(2)
    iterator = data.make_one_shot_iterator()
    batch = iterator.get_next()
    doubled = 2.0 * batch
    assert batch.shape.as_list() == [None]
    assert (iterator.output_types, data.output_types) == (tf.float32, tf.float32)
    for _ in range(2):  # each session walks it from its beginning
        with tf.Session() as session:
            found = rest_of(session, [batch, doubled])
            assert [b.tolist() for b, _ in found] == [[1.0, 2.0], [5.0]]
            assert [d.tolist() for _, d in found] == [[2.0, 4.0], [10.0]]
            with pytest.raises(tf.errors.OutOfRangeError, match="at their end"):
                session.run(batch)


def test_initializable() -> None:
    iterator = tf.data.make_initializable_iterator(tf.data.Dataset.range(3).repeat(2))
    x = iterator.get_next()
    with tf.Session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="run its initializer"):
            session.run(x)
        session.run(iterator.initializer)
        assert rest_of(session, x) == [0, 1, 2, 0, 1, 2]
        session.run(iterator.initializer)
        assert session.run(x) == 0


def test_one_iterator_for_two_data_sets() -> None:
    train = tf.data.Dataset.from_tensor_slices({"x": np.ones((4, 2)), "y": np.arange(4)}).batch(2)
    check = tf.data.Dataset.from_tensor_slices({"x": np.zeros((3, 2)), "y": np.arange(3)}).batch(3)
    iterator = tf.data.Iterator.from_structure(
        {"x": tf.float64, "y": tf.int64}, {"x": [None, 2], "y": [None]}
    )
    begin = [iterator.make_initializer(d) for d in (train, check)]
    element = iterator.get_next()
    with tf.Session() as session:
        found = []
        for start in begin:
            session.run(start)
            found.append([e["y"].tolist() for e in rest_of(session, element)])
        assert found == [[[0, 1], [2, 3]], [[0, 1, 2]]]
    with pytest.raises(engine.errors.InvalidArgumentError, match="the data set has"):
        iterator.make_initializer(tf.data.Dataset.range(3))


def test_a_step_gives_one_element_however_often_it_is_used() -> None:
    x = tf.data.Dataset.range(10).make_one_shot_iterator().get_next()
    y = tf.data.Dataset.range(10).make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run([x + x, x * y, y]) == [0, 0, 0]
        assert session.run([x, x + 1]) == [1, 2]
        assert session.run([x, y]) == [2, 1]


def test_training_on_it_as_scripts_do() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(64, 2)).astype(np.float32)
    data = tf.data.Dataset.from_tensor_slices((points, points @ [[1.0], [-2.0]]))
    data = data.map(lambda x, y: (x, tf.cast(y, tf.float32))).shuffle(64, seed=1).repeat().batch(16)
    x, y = data.make_one_shot_iterator().get_next()
    w = tf.get_variable("w", [2, 1], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(60):
            session.run(train)
        np.testing.assert_allclose(session.run(w), [[1.0], [-2.0]], atol=1e-3)


def test_going_on_where_a_walk_was() -> None:
    data = datasets.Dataset.range(20).shuffle(20, seed=3)
    iterator = datasets.GraphIterator.initializable(data)
    x, state = iterator.get_next(), iterator.state()
    kept = tf.placeholder(tf.string, [])
    restore = iterator.restore(kept)
    with tf.Session() as session:
        session.run(iterator.initializer)
        for _ in range(5):
            session.run(x)
        found = session.run(state)
        expected = rest_of(session, x)
    with tf.Session() as session:
        session.run(iterator.initializer)
        session.run(restore, {kept: found})
        assert rest_of(session, x) == expected
        with pytest.raises(tf.errors.InvalidArgumentError, match="expected what state"):
            session.run(restore, {kept: b"not JSON"})


def test_files_and_generators(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    lines = tf.data.TextLineDataset([str(tmp_path / "a.txt")]).make_one_shot_iterator().get_next()
    counts = tf.data.Dataset.from_generator(lambda: iter([1, 2]), tf.int32, tf.TensorShape([]))
    count = counts.make_one_shot_iterator().get_next()
    constants = tf.data.Dataset.from_tensor_slices(tf.constant([7, 8]))
    number = constants.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert rest_of(session, lines) == [b"one", b"two"]
        assert rest_of(session, count) == [1, 2]
        assert rest_of(session, number) == [7, 8]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(engine.errors.InvalidArgumentError, match="has a value in a run only"):
        tf.data.Dataset.from_tensor_slices(tf.placeholder(tf.float32, [3]))
    data = datasets.Dataset.range(2)
    with engine.eager_scope(), pytest.raises(engine.errors.InvalidArgumentError, match="no graph"):
        datasets.GraphIterator(data.element_spec)
    ragged = tf.data.Dataset.range(1, 3).map(lambda n: tf.ones([n]))
    x = ragged.make_one_shot_iterator().get_next()
    with tf.Session() as session:
        assert session.run(x).tolist() == [1.0]
        with pytest.raises(engine.errors.ShapeError, match=r"float32\[2\] came"):
            session.run(x)


def test_transformations_to_apply() -> None:
    experimental = tf.data.experimental
    ten = tf.data.Dataset.range(10)
    mapped = ten.apply(
        experimental.map_and_batch(lambda x: x * x, 4, num_parallel_calls=experimental.AUTOTUNE)
    )
    assert [b.tolist() for b in mapped.as_numpy_iterator()] == [
        [0, 1, 4, 9],
        [16, 25, 36, 49],
        [64, 81],
    ]
    flat = mapped.apply(experimental.unbatch()).apply(experimental.enumerate_dataset(5))
    assert list(flat.as_numpy_iterator())[3] == (8, 9)
    twice = ten.apply(experimental.shuffle_and_repeat(10, 2, seed=1))
    drawn = [int(x) for x in twice.as_numpy_iterator()]
    assert sorted(drawn[:10]) == sorted(drawn[10:]) == [*range(10)]
    assert drawn[:10] != drawn[10:]
    walked = tf.data.Dataset.range(3).apply(
        experimental.parallel_interleave(lambda i: tf.data.Dataset.range(2), 3)
    )
    assert [int(x) for x in walked.as_numpy_iterator()] == [0, 0, 0, 1, 1, 1]
    with tf.Graph().as_default(), tf.Session() as session:
        one = experimental.get_single_element(ten.skip(9))
        sizes = [experimental.cardinality(d) for d in (ten, ten.repeat(), twice.filter(bool))]
        assert session.run([one, *sizes]) == [
            9,
            10,
            experimental.INFINITE_CARDINALITY,
            experimental.UNKNOWN_CARDINALITY,
        ]
    with pytest.raises(ValueError, match="not both"):
        experimental.map_and_batch(abs, 4, 2, num_parallel_calls=2)
