"""Batches in random order, from a queue that mixes what it holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import TensorShape
from .batch_queues import MakeQueue, gather
from .queues import QueueBase, RandomShuffleQueue


def _shuffled(
    capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None
) -> MakeQueue:
    def make(dtypes: list[Any], shapes: list[TensorShape], names: list[str] | None) -> QueueBase:
        return RandomShuffleQueue(
            capacity, min_after_dequeue, dtypes, shapes, names, seed, shared_name
        )

    return make


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "shuffle_batch",
) -> Any:
    """Batches of examples in random order.

    Args:
        capacity: how many examples the queue holds: more than `min_after_dequeue`, by some batches.
        min_after_dequeue: how many a batch leaves there: the more, the better they are mixed.
        seed: of the order.
        tensors, batch_size, num_threads, enqueue_many, shapes, allow_smaller_final_batch,
            shared_name, name: as for `batch`.

    Returns:
        what `tensors` is, with a batch axis in front.

    Raises:
        InvalidArgumentError: `min_after_dequeue` is not below `capacity`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
        ...     numbers = engine.shuffle_batch(
        ...         [number], batch_size=4, capacity=8, min_after_dequeue=0
        ...     )
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     np.sort(session.run(numbers))
        array([0, 1, 2, 3], dtype=int32)
    """
    return maybe_shuffle_batch(
        tensors,
        batch_size,
        capacity,
        min_after_dequeue,
        None,
        num_threads,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "shuffle_batch",
) -> Any:
    """As `shuffle_batch`, of the examples that `keep_input` says; see `maybe_batch`.

    Args:
        keep_input: a bool; with `enqueue_many` one for each example is possible.
        capacity, min_after_dequeue, seed: as for `shuffle_batch`.
        tensors, batch_size, num_threads, enqueue_many, shapes, allow_smaller_final_batch,
            shared_name, name: as for `batch`.

    Returns:
        what `tensors` is, with a batch axis in front.

    Raises:
        InvalidArgumentError: `min_after_dequeue` is not below `capacity`.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
        ...     even = ops.equal(number % 2, 0)
        ...     numbers = engine.maybe_shuffle_batch(
        ...         [number], 2, 8, min_after_dequeue=0, keep_input=even
        ...     )
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     np.sort(session.run(numbers))
        array([0, 2], dtype=int32)
    """
    return gather(
        name,
        [tensors],
        num_threads,
        keep_input,
        batch_size,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
    )


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "shuffle_batch_join",
) -> Any:
    """As `shuffle_batch`, with a thread for each of several lists of tensors; see `batch_join`.

    Args:
        tensors_list: lists (or dicts) of tensors, alike in number and types.
        capacity, min_after_dequeue, seed: as for `shuffle_batch`.
        batch_size, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name: as for
            `batch`.

    Returns:
        what one of the lists is, with a batch axis in front.

    Raises:
        InvalidArgumentError: there are no lists, or they differ in number or types.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
        ...     numbers = engine.shuffle_batch_join([[number]], 4, capacity=8, min_after_dequeue=0)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     np.sort(session.run(numbers))
        array([0, 1, 2, 3], dtype=int32)
    """
    return maybe_shuffle_batch_join(
        tensors_list,
        batch_size,
        capacity,
        min_after_dequeue,
        None,
        seed,
        enqueue_many,
        shapes,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "shuffle_batch_join",
) -> Any:
    """As `shuffle_batch_join`, of the examples that `keep_input` says; see `maybe_batch`.

    Args:
        tensors_list: lists (or dicts) of tensors, alike in number and types.
        keep_input: a bool; with `enqueue_many` one for each example is possible.
        capacity, min_after_dequeue, seed: as for `shuffle_batch`.
        batch_size, enqueue_many, shapes, allow_smaller_final_batch, shared_name, name: as for
            `batch`.

    Returns:
        what one of the lists is, with a batch axis in front.

    Raises:
        InvalidArgumentError: there are no lists, or they differ in number or types.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, num_epochs=1, shuffle=False).dequeue()
        ...     even = ops.equal(number % 2, 0)
        ...     numbers = engine.maybe_shuffle_batch_join([[number]], 2, 8, 0, keep_input=even)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     np.sort(session.run(numbers))
        array([0, 2], dtype=int32)
    """
    return gather(
        name,
        tensors_list,
        1,
        keep_input,
        batch_size,
        _shuffled(capacity, min_after_dequeue, seed, shared_name),
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
    )
