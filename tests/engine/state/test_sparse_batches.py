"""Features with any number of values, and sequences, in batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng

EXAMPLES = [eng.encode_example({"words": ["a", "b", "c"][:n], "number": [n]}) for n in (2, 0, 3, 1)]
FEATURES: dict[str, Any] = {
    "words": eng.VarLenFeature("string"),
    "number": eng.FixedLenFeature([], "int64"),
}


def batches(build: Callable[[Any], Any], count: int) -> list[Any]:
    """What `build` makes of a queue of the examples, run a number of times."""
    with eng.Graph().as_default(), eng.Session() as session:
        queue = eng.string_input_producer(EXAMPLES, num_epochs=1, shuffle=False)
        fetch = build(queue)
        session.run([eng.global_variables_initializer(), eng.local_variables_initializer()])
        coordinator = eng.Coordinator()
        threads = eng.start_queue_runners(session, coordinator)
        found = [session.run(fetch) for _ in range(count)]
        coordinator.request_stop()
        coordinator.join(threads, stop_grace_period_secs=20)
    return found


def rows(found: Any) -> dict[int, list[bytes]]:
    """The words of each example, by their number."""
    words = found["words"]
    return {
        int(n): words.values[words.indices[:, 0] == i].tolist()
        for i, n in enumerate(found["number"])
    }


EXPECTED = {n: [b"a", b"b", b"c"][:n] for n in (2, 0, 3, 1)}


def test_in_order() -> None:
    def build(queue: Any) -> Any:
        return eng.batch(eng.parse_single_example(queue.dequeue(), FEATURES), 2)

    first, second = batches(build, 2)
    assert [*rows(first)] == [2, 0]
    assert rows(first) | rows(second) == EXPECTED
    assert first["words"].dense_shape.tolist() == [2, 2]
    assert second["words"].dense_shape.tolist() == [2, 3]


def test_shuffled_and_joined() -> None:
    def build(queue: Any) -> Any:
        one = eng.parse_single_example(queue.dequeue(), FEATURES)
        return eng.shuffle_batch_join([one, one], 4, capacity=8, min_after_dequeue=1, seed=3)

    (found,) = batches(build, 1)
    assert rows(found) == EXPECTED


def test_many_at_once_in_a_list() -> None:
    def build(queue: Any) -> Any:
        parsed = eng.parse_example(queue.dequeue_many(2), FEATURES)
        pair = [parsed["number"], parsed["words"]]
        number, words = eng.batch(pair, 4, enqueue_many=True)
        return {"number": number, "words": words}

    (found,) = batches(build, 1)
    assert rows(found) == EXPECTED


def test_sequences_are_filled_up() -> None:
    def build(queue: Any) -> Any:
        features = {"words": eng.FixedLenSequenceFeature([], "string", allow_missing=True)}
        one = eng.parse_single_example(queue.dequeue(), features)
        return eng.batch(one, 4, dynamic_pad=True)["words"]

    (found,) = batches(build, 1)
    assert found.tolist() == [
        [b"a", b"b", b""],
        [b"", b"", b""],
        [b"a", b"b", b"c"],
        [b"a", b"", b""],
    ]


@pytest.mark.parametrize(
    ("shape", "default"), [([2, 1], [5.0, 6.0]), ([], [5.0]), ([1, 2], [[5.0], [6.0]]), ([2], 5.0)]
)
def test_defaults_of_as_many_values(shape: list[int], default: Any) -> None:
    feature = eng.FixedLenFeature(shape, "float32", default_value=default)
    found = eng.parse_example(EXAMPLES[:2], {"none": feature})["none"].numpy()
    wanted = np.broadcast_to(np.reshape(default, shape) if np.size(default) > 1 else 5.0, shape)
    np.testing.assert_array_equal(found, np.stack([wanted, wanted]))


def test_places_and_sizes_of_other_integers() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        counter = eng.Variable(np.int64(0)).assign_add(1)
        example = eng.SparseValues(
            np.array([[0], [2]], "int32"), eng.identity([counter, counter]), [3]
        )
        found = eng.batch([example], 2)
        assert found.shape.rank == 2
        session.run(eng.global_variables_initializer())
        coordinator = eng.Coordinator()
        threads = eng.start_queue_runners(session, coordinator)
        value = session.run(found)
        coordinator.request_stop()
        coordinator.join(threads)
    assert value.indices.tolist() == [[0, 0], [0, 2], [1, 0], [1, 2]]
    assert value.dense_shape.tolist() == [2, 3]
    assert value.values[0] == value.values[1]
