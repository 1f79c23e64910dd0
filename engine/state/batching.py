"""The last stage of an input pipeline: examples gathered into batches, in order or shuffled.

Each function makes a queue, a runner whose threads fill it with examples, and gives the tensors of
a batch that is taken from it. Variants: `..._join` has several kinds of thread, one for each list
of tensors, so that examples come from several files at a time; `maybe_...` keeps only some.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..graph import TensorShape
from .batch_queues import MakeQueue, gather
from .queues import FIFOQueue, PaddingFIFOQueue, QueueBase


def _in_order(capacity: int, dynamic_pad: bool, shared_name: str | None) -> MakeQueue:
    def make(dtypes: list[Any], shapes: list[TensorShape], names: list[str] | None) -> QueueBase:
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        return kind(capacity, dtypes, shapes, names, shared_name=shared_name)

    return make


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "batch",
) -> Any:
    """Batches of examples, in the order in which they come.

    Args:
        tensors: one example: a tensor, or a list or dict of tensors, and of SparseValues, which
            may hold any number of values; in the batch they are joined along a new first axis.
        batch_size: how many examples are in a batch.
        num_threads: how many threads compute examples; with more than one the order is not kept.
        capacity: of the queue.
        enqueue_many: whether `tensors` hold many examples, along the first axis.
        shapes: of one example, where the tensors do not say them.
        dynamic_pad: whether examples of unequal lengths are filled up with zeros.
        allow_smaller_final_batch: whether what is left at the end is a batch too; else it is lost.
        shared_name: under which sessions share the queue.
        name: of the scope.

    Returns:
        what `tensors` is, with a batch axis in front.

    Raises:
        InvalidArgumentError: `batch_size` or `num_threads` is below 1, or there are no tensors.
        OutOfRangeError: when run, at the end of the input.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, shuffle=False).dequeue()
        ...     numbers = engine.batch([number], batch_size=2)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(numbers)
        array([0, 1], dtype=int32)
    """
    return maybe_batch(
        tensors,
        None,
        batch_size,
        num_threads,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "batch",
) -> Any:
    """As `batch`, of the examples that `keep_input` says.

    Args:
        keep_input: a bool; with `enqueue_many` it may be one for each example.
        tensors, batch_size, num_threads, capacity, enqueue_many, shapes, dynamic_pad,
            allow_smaller_final_batch, shared_name, name: as for `batch`.

    Returns:
        what `tensors` is, with a batch axis in front.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(6, shuffle=False).dequeue()
        ...     even = engine.maybe_batch(
        ...         [number], keep_input=ops.equal(number % 2, 0), batch_size=2
        ...     )
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(even)
        array([0, 2], dtype=int32)
    """
    return gather(
        name,
        [tensors],
        num_threads,
        keep_input,
        batch_size,
        _in_order(capacity, dynamic_pad, shared_name),
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
    )


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "batch_join",
) -> Any:
    """As `batch`, with a thread for each of several lists of tensors.

    Args:
        tensors_list: lists (or dicts) of tensors, alike in number and types.
        batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
            shared_name, name: as for `batch`.

    Returns:
        what one of the lists is, with a batch axis in front.

    Raises:
        InvalidArgumentError: there are no lists, or they differ in number or types.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(4, shuffle=False).dequeue()
        ...     numbers = engine.batch_join([[number]], batch_size=2)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(numbers)
        array([0, 1], dtype=int32)
    """
    return maybe_batch_join(
        tensors_list,
        None,
        batch_size,
        capacity,
        enqueue_many,
        shapes,
        dynamic_pad,
        allow_smaller_final_batch,
        shared_name,
        name,
    )


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str = "batch_join",
) -> Any:
    """As `batch_join`, of the examples that `keep_input` says; see `maybe_batch`.

    Args:
        tensors_list: lists (or dicts) of tensors, alike in number and types.
        keep_input: a bool; with `enqueue_many` one for each example is possible.
        batch_size, capacity, enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch,
            shared_name, name: as for `batch`.

    Returns:
        what one of the lists is, with a batch axis in front.

    Raises:
        InvalidArgumentError: there are no lists, or they differ in number or types.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(6, shuffle=False).dequeue()
        ...     even = ops.equal(number % 2, 0)
        ...     numbers = engine.maybe_batch_join([[number]], keep_input=even, batch_size=2)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     session.run(numbers)
        array([0, 2], dtype=int32)
    """
    return gather(
        name,
        tensors_list,
        1,
        keep_input,
        batch_size,
        _in_order(capacity, dynamic_pad, shared_name),
        enqueue_many=enqueue_many,
        shapes=shapes,
        allow_smaller_final_batch=allow_smaller_final_batch,
    )
