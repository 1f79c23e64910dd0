"""Batches of examples that are alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    Graph,
    bucket,
    bucket_by_sequence_length,
    constant,
    placeholder,
    range_input_producer,
)
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.array.creation import arange
from laminar.engine.ops.core.basic import zeros_like
from laminar.engine.ops.math.arithmetic import mod
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.compare import less

from .pipelines import drain, running

pytestmark = pytest.mark.usefixtures("no_thread_left")


@pytest.fixture
def graph() -> Iterator[Graph]:
    made = Graph()
    with made.as_default():
        yield made


def numbers(count: int) -> Any:
    return range_input_producer(count, num_epochs=1, shuffle=False).dequeue()


def test_each_batch_is_of_one_bucket(graph: Graph) -> None:
    n = numbers(20)
    found = drain(graph, bucket(n, mod(n, constant(3)), 2, 3))
    assert len(found) == 9  # 7, 7 and 6 numbers: of two buckets one is lost
    for which, batch in found:
        assert batch.shape == (2,)
        assert (batch % 3 == which).all()
    for which in range(3):
        mine = np.concatenate([b for w, b in found if w == which])
        assert mine.tolist() == list(range(which, 18, 3))


def test_what_is_left_is_a_batch_too(graph: Graph) -> None:
    n = numbers(20)
    batches = bucket(
        {"n": n, "half": n / 2},
        mod(n, constant(3)),
        [2, 4, 3],
        3,
        1,
        2,
        [3, 1, 5],
        allow_smaller_final_batch=True,
    )
    found = drain(graph, batches)
    sizes: dict[int, list[int]] = {which: [] for which in range(3)}
    for which, batch in found:
        assert (batch["n"] % 3 == which).all()
        np.testing.assert_array_equal(batch["half"], batch["n"] / 2)
        sizes[int(which)].append(len(batch["n"]))
    assert sizes == {0: [2, 2, 2, 1], 1: [4, 3], 2: [3, 3]}


def test_many_threads_and_a_condition(graph: Graph) -> None:
    n = numbers(200)
    keep = less(n, constant(150))
    which, batch = bucket(n, mod(n, constant(2)), 5, 2, num_threads=4, keep_input=keep)
    found = drain(graph, [which, batch])
    taken = Counter(np.concatenate([b for _, b in found]).tolist())
    assert taken == Counter(range(150))
    assert all((b % 2 == w).all() for w, b in found)


def test_batches_have_the_form_of_an_example(graph: Graph) -> None:
    """As in TensorFlow: a list of one gives a list of one."""
    n = numbers(4)
    for given in (n, [n], [n, n], {"n": n}):
        for found in (
            bucket(given, mod(n, constant(2)), 2, 2)[1],
            bucket_by_sequence_length(n, given, 2, [2])[1],
        ):
            assert type(found) is (dict if isinstance(given, dict) else type(found))
            if isinstance(given, list):
                assert isinstance(found, list)
                assert len(found) == len(given)
            else:
                assert not isinstance(found, list)


def test_sequences_of_similar_lengths(graph: Graph) -> None:
    """Lengths 0 to 39; those below 10, below 20, and the others are padded to their longest."""
    n = numbers(40)
    sequence = zeros_like(arange(n)) + 7
    lengths, batch = bucket_by_sequence_length(
        n, [sequence, n], 5, [10, 20], shapes=[[None], []], dynamic_pad=True
    )
    found = drain(graph, [lengths, *batch])
    assert sorted(np.concatenate([x[0] for x in found])) == list(range(40))
    for size, padded, same in found:
        np.testing.assert_array_equal(size, same)
        assert len({int(np.searchsorted([10, 20], x, "right")) for x in size}) == 1
        expected = np.where(np.arange(size.max()) < size[:, None], 7, 0)
        np.testing.assert_array_equal(padded, expected)


def test_stopping_early_frees_all_threads(graph: Graph) -> None:
    n = range_input_producer(10, shuffle=False).dequeue()  # for ever
    which, batch = bucket(n, mod(n, constant(2)), 2, 2, num_threads=2)
    with running(graph) as (session, _):
        for _ in range(5):
            number, values = session.run([which, batch])
            assert (values % 2 == number).all()


def test_a_bucket_that_does_not_exist_stops_the_pipeline(graph: Graph) -> None:
    n = numbers(20)
    batches = bucket(n, n, 2, 3)
    with pytest.raises(InvalidArgumentError, match="which_bucket must be from 0 to 2"):
        drain(graph, batches)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_buckets": 0}, "num_buckets must be at least 1, got 0"),
        ({"batch_size": 0}, "batch_size must be a number of at least 1"),
        ({"batch_size": [2, 3, 4]}, "batch_size must be a number .* of 2 buckets"),
        ({"bucket_capacities": [1]}, "bucket_capacities must be a number"),
        ({"num_threads": 0}, "num_threads must be at least 1"),
        ({"which_bucket": [1, 2]}, "which_bucket must be a scalar"),
    ],
)
def test_mistakes(graph: Graph, arguments: dict[str, Any], message: str) -> None:
    given = {"which_bucket": 0, "batch_size": 2, "num_buckets": 2, **arguments}
    with pytest.raises(InvalidArgumentError, match=message):
        bucket(cast(placeholder("float32", []), "int32"), **given)


@pytest.mark.parametrize("boundaries", [[], [3, 3], [4, 2], [1.5]])
def test_boundaries_increase(graph: Graph, boundaries: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="bucket_boundaries must be whole numbers"):
        bucket_by_sequence_length(1, constant([1.0]), 2, boundaries)
