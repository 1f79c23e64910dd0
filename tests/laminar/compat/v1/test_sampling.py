"""Candidate samplers and generators."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import laminar.compat.v1 as tf


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any) -> Any:
    with tf.Session() as session:
        return session.run(x)


def test_candidates(tmp_path: Path) -> None:
    found = run(tf.nn.all_candidate_sampler([[1, 2], [0, 1]], 2, 4, True))
    assert found[0].tolist() == [0, 1, 2, 3]
    assert found[1].tolist() == [[1, 1], [1, 1]]
    assert found[2].tolist() == [1, 1, 1, 1]
    sampler = tf.random.fixed_unigram_candidate_sampler
    drawn = run(sampler([[3]], 1, 3, True, 5, num_reserved_ids=1, unigrams=[3, 0, 2, 1]))
    assert sorted(drawn[0].tolist()) == [1, 3, 4]
    path = tmp_path / "counts.csv"
    path.write_text("a,2\nb,2\n")
    many = run(sampler([[0]], 1, 40, False, 2, str(path)))
    np.testing.assert_allclose(many[1], [[20.0]])  # 40 tries of 1 / 2
    sharded = run(sampler([[0]], 1, 6, False, 4, unigrams=[1, 1, 1, 1], num_shards=2, shard=1))
    assert set(sharded[0].tolist()) <= {1, 3}
    with pytest.raises(ValueError, match="one of vocab_file"):
        sampler([[0]], 1, 3, True, 5)
    with pytest.raises(ValueError, match="those of 5 classes"):
        sampler([[0]], 1, 3, True, 5, unigrams=[1, 2])


def test_draws_belong_to_sessions() -> None:
    drawn = tf.nn.uniform_candidate_sampler([[1]], 1, 3, True, 50)
    loss = tf.nn.sampled_softmax_loss(
        tf.ones([9, 2]), tf.zeros([9]), tf.constant([[1]], tf.int64), tf.ones([1, 2]), 3, 9
    )
    with tf.Session() as session:
        first, second = (session.run(drawn[0]).tolist() for _ in range(2))
        assert session.run(loss).shape == (1,)
    assert first != second


def test_hits() -> None:
    rows, numbers, weights = run(tf.nn.compute_accidental_hits([[1, 2], [0, 4]], [4, 1, 7, 2], 2))
    assert rows.tolist() == [0, 0, 1]
    assert numbers.tolist() == [1, 3, 0]
    assert (weights == np.finfo(np.float32).min).all()


def test_generators() -> None:
    make = tf.random.experimental.Generator.from_seed
    a, b = make(3), make(3)
    draws = [g.normal([4], 10.0, 0.1) for g in (a, b)]
    first, second = run(draws)
    np.testing.assert_array_equal(first, second)
    assert abs(first - 10).max() < 1
    with tf.Session() as session:
        x = a.uniform([1000], 2, 9, tf.int32)
        one, two = session.run(x), session.run(x)
    assert (one != two).any()
    assert set(one.tolist()) == set(range(2, 9))
    assert run(a.uniform_full_int([2], tf.uint32)).dtype == np.uint32
    assert abs(run(a.truncated_normal([500]))).max() <= 2
    assert run(a.make_seeds(3)).shape == (2, 3)
    parts = make(5).split(2)
    others = make(5).split(2)
    assert run([p.uniform([]) for p in parts]) == run([p.uniform([]) for p in others])
    tf.random.experimental.set_global_generator(a)
    assert tf.random.experimental.get_global_generator() is a
    assert tf.random.experimental.create_rng_state(1).shape == a.state.shape
    with pytest.raises(ValueError, match="need maxval"):
        a.uniform([2], dtype=tf.int32)
