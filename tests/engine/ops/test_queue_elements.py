"""What queues hold: components, names, padding, order; and mistakes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine import (
    FIFOQueue,
    Graph,
    PaddingFIFOQueue,
    PriorityQueue,
    QueueBase,
    RandomShuffleQueue,
    Session,
    constant,
    convert_to_tensor,
)
from laminar.engine.errors import (
    DTypeError,
    InvalidArgumentError,
    OutOfRangeError,
    ShapeError,
)
from laminar.engine.ops.core.effects import perform
from laminar.engine.ops.state.queue import queue_enqueue_kept


def test_components_and_names() -> None:
    queue = FIFOQueue(5, ["float32", "string"], [(2,), ()])
    queue.enqueue([[1.0, 2.0], b"a"])
    queue.enqueue_many([[[3.0, 4.0], [5.0, 6.0]], [b"b", b"c"]])
    number, word = queue.dequeue()
    assert (number.numpy().tolist(), word.numpy()) == ([1, 2], b"a")
    numbers, words = queue.dequeue_many(2)
    assert numbers.numpy().tolist() == [[3, 4], [5, 6]]
    assert words.numpy().tolist() == [b"b", b"c"]
    named = FIFOQueue(5, ["float32", "int32"], [(), ()], names=["x", "y"])
    named.enqueue({"y": 2, "x": 1.0})
    element = named.dequeue()
    assert {k: float(v) for k, v in element.items()} == {"x": 1.0, "y": 2.0}


def test_padding() -> None:
    queue = PaddingFIFOQueue(5, ["int32", "string"], [(None, 2), (None,)])
    queue.enqueue([[[1, 1]], np.array([b"a", b"b"], object)])
    queue.enqueue([[[2, 2], [3, 3]], np.array([b"c"], object)])
    numbers, words = queue.dequeue_many(2)
    assert numbers.numpy().tolist() == [[[1, 1], [0, 0]], [[2, 2], [3, 3]]]
    assert words.numpy().tolist() == [[b"a", b"b"], [b"c", b""]]
    with pytest.raises(ShapeError, match="number of axes"):
        PaddingFIFOQueue(5, "int32", None)


def enqueue_kept(queue: QueueBase, keep: Any, *components: Any, many: bool) -> None:
    attrs = {"dtypes": queue.dtypes, "shapes": queue.shapes, "many": many}
    perform(queue_enqueue_kept, [queue.handle, keep, *components], attrs)


@pytest.mark.parametrize(
    ("keep", "many", "stored"),
    [
        (True, False, [[1, 2]]),
        (False, False, []),
        (True, True, [1, 2]),
        (False, True, []),
        ([False, True], True, [2]),
        ([False, False], True, []),
    ],
)
def test_only_what_is_to_be_kept_is_stored(keep: Any, many: bool, stored: list[Any]) -> None:
    queue = FIFOQueue(5, ["int32", "int32"], [() if many else (2,)] * 2)
    enqueue_kept(queue, keep, constant([1, 2]), constant([3, 4]), many=many)
    assert int(queue.size().numpy()) == len(stored)
    found = [queue.dequeue() for _ in stored]
    assert [first.numpy().tolist() for first, _ in found] == stored
    assert [(second - first).numpy().tolist() for first, second in found] == (
        [2] * len(stored) if many else [[2, 2]] * len(stored)
    )


@pytest.mark.parametrize(
    ("keep", "many", "text"),
    [
        ([True, True], False, "keep is a scalar, got"),
        ([[True], [True]], True, "keep is a scalar, or a vector, got"),
        ([True], True, "2 elements, and 1 flags for them"),
    ],
)
def test_flags_that_do_not_fit_the_elements(keep: Any, many: bool, text: str) -> None:
    queue = FIFOQueue(5, "int32", [() if many else (2,)])
    with pytest.raises(ShapeError, match=text):
        enqueue_kept(queue, keep, constant([1, 2]), many=many)
    assert int(queue.size().numpy()) == 0


def test_components_of_a_batch_have_one_size() -> None:
    with Graph().as_default():
        queue = FIFOQueue(5, ["int32", "int32"], [(), ()])
        with pytest.raises(ShapeError, match="one length"):
            queue.enqueue_many([[1, 2, 3], [1, 2]])


def test_up_to() -> None:
    queue = FIFOQueue(5, "int32", [()])
    queue.enqueue_many([[1, 2, 3]])
    assert queue.dequeue_up_to(2).numpy().tolist() == [1, 2]
    queue.close()
    assert queue.dequeue_up_to(2).numpy().tolist() == [3]
    with pytest.raises(OutOfRangeError):
        queue.dequeue_up_to(2)
    assert queue.dequeue_many(0).shape == (0,)


@pytest.mark.parametrize("seed", [0, 1])
def test_shuffling(seed: int) -> None:
    def drain() -> list[int]:
        queue = RandomShuffleQueue(1000, 0, "int32", [()], seed=seed)
        queue.enqueue_many([np.arange(1000, dtype=np.int32)])
        found = queue.dequeue_many(1000).numpy().tolist()
        assert sorted(found) == list(range(1000))
        return list(found)

    first = drain()
    assert first == drain()
    correlation = np.corrcoef(first, np.arange(1000))[0, 1]
    assert abs(correlation) < 0.1


def test_priorities() -> None:
    queue = PriorityQueue(10, ["string"], [()])
    for priority, word in [(3, b"c"), (1, b"a"), (2, b"b")]:
        queue.enqueue([convert_to_tensor(priority, "int64"), word])
    priorities, words = queue.dequeue_many(3)
    assert priorities.numpy().tolist() == [1, 2, 3]
    assert words.numpy().tolist() == [b"a", b"b", b"c"]


def wrong(make: Callable[[QueueBase], Any]) -> Callable[[], Any]:
    def call() -> Any:
        return make(FIFOQueue(3, ["float32", "int32"], [(2,), ()]))

    return call


MISTAKES = [
    (wrong(lambda q: q.enqueue([[1.0, 2.0]])), InvalidArgumentError, "2 components, got 1"),
    (wrong(lambda q: q.enqueue(1.0)), InvalidArgumentError, "2 components, got 1"),
    (wrong(lambda q: q.enqueue({"a": 1})), InvalidArgumentError, "no names"),
    (wrong(lambda q: q.enqueue([[1.0], 1])), ShapeError, "component 0"),
    (wrong(lambda q: q.enqueue([constant([1, 2]), 1])), DTypeError, "component 0"),
    (wrong(lambda q: q.enqueue_many([[[1.0, 2.0]], [1, 2]])), ShapeError, "one length"),
    (wrong(lambda q: q.enqueue_many([[1.0, 2.0], 1])), ShapeError, "component 0"),
    (wrong(lambda q: q.dequeue_many([1, 2])), ShapeError, "scalar"),
    (wrong(lambda q: q.dequeue_many(-1)), InvalidArgumentError, "-1 elements"),
    (lambda: FIFOQueue(0, "int32"), InvalidArgumentError, "capacity"),
    (lambda: FIFOQueue(3, []), InvalidArgumentError, "at least one component"),
    (lambda: FIFOQueue(3, "resource"), DTypeError, "handles"),
    (lambda: FIFOQueue(3, "int32", [(), ()]), InvalidArgumentError, "2 shapes"),
    (lambda: FIFOQueue(3, "int32", names=["a", "b"]), InvalidArgumentError, "2 names"),
    (lambda: FIFOQueue(3, "int32", names=["a"]).enqueue({"b": 1}), InvalidArgumentError, "dict"),
    (lambda: RandomShuffleQueue(3, 3, "int32"), InvalidArgumentError, "min_after_dequeue"),
]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: FIFOQueue(0, "int32"), "FIFOQueue: the capacity must be at least 1, got 0"),
        (lambda: PriorityQueue(0, "int32"), "PriorityQueue: the capacity must be"),
        (lambda: PaddingFIFOQueue(0, "int32", [()]), "PaddingFIFOQueue: the capacity must be"),
        (lambda: RandomShuffleQueue(3, 5, "int32"), "from 0 to capacity - 1 = 2, got 5"),
    ],
)
def test_a_graph_takes_no_queue_without_room(make: Callable[[], Any], text: str) -> None:
    with Graph().as_default(), pytest.raises(InvalidArgumentError, match=text):
        make()


@pytest.mark.parametrize(("call", "kind", "text"), MISTAKES)
def test_mistakes(call: Callable[[], Any], kind: type[Exception], text: str) -> None:
    with pytest.raises(kind, match=text):
        call()


def test_a_list_of_one_number_is_the_component_of_an_element_of_one_number() -> None:
    """As TensorFlow has it; of a batch it is the batch, and where a vector fits, a vector."""
    with Graph().as_default(), Session() as session:
        queue = FIFOQueue(9, "float32", shapes=[()])
        for value in ([1.0], (1.0,), 1.0, np.float32(1)):
            session.run(queue.enqueue(value))
            assert session.run(queue.dequeue()) == 1.0
        session.run(queue.enqueue_many([2.0]))
        assert session.run(queue.dequeue()) == 2.0
        vectors = FIFOQueue(9, "float32", shapes=[(1,)])
        session.run(vectors.enqueue([3.0]))
        assert session.run(vectors.dequeue()).tolist() == [3.0]
