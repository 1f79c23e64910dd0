"""Batches of examples that are alike: each goes to a queue of its kind, its bucket.

Threads bring examples to the queues of the buckets; for each bucket a thread takes batches from its
queue, and puts them into the queue of batches. At the end of the input the queues of the buckets
are closed; each gives what it has, and then the queue of batches is closed.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.6: queues to gather sequences of similar lengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from ..errors import InvalidArgumentError
from ..graph import GraphTensor, Tensor, TensorShape, bool_, int32
from ..ops.core.basic import constant, group
from ..ops.core.checks import check
from ..ops.core.effects import perform
from ..ops.math.cast import cast
from ..ops.math.compare import equal, greater_equal, less, logical_and
from ..ops.math.reduce import reduce_sum
from ..ops.state import queue as ops
from .batch_queues import element_shapes, rows_of
from .input import in_graph, pipeline_graph
from .queue_runner import QueueRunner, add_queue_runner
from .queues import FIFOQueue, PaddingFIFOQueue, QueueBase


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: int | Sequence[int],
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str = "bucket",
) -> tuple[Tensor, Any]:
    """Batches of examples of one bucket each, in the order in which they are full.

    Args:
        tensors: one example: a tensor, or a list or dict of tensors.
        which_bucket: a scalar integer, from 0 to num_buckets - 1: where this example belongs.
        batch_size: how many examples are in a batch, of each bucket.
        num_buckets: how many there are.
        num_threads: how many threads compute examples.
        capacity: of the queue of batches, and of those of the buckets.
        bucket_capacities: of the queues of the buckets.
        shapes: of one example, where the tensors do not say them.
        dynamic_pad: whether examples of unequal lengths are filled up with zeros.
        allow_smaller_final_batch: whether what is left at the end is batches too; else it is lost.
        keep_input: a bool: whether this example is taken.
        shared_name: under which sessions share the queues.
        name: of the scope.

    Returns:
        (bucket, batch): the number of the bucket, int32, and what `tensors` is, with a batch axis
        in front.

    Raises:
        InvalidArgumentError: the numbers do not agree; when run, there is no such bucket.
        OutOfRangeError: when run, at the end of the input.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     number = engine.range_input_producer(6, shuffle=False).dequeue()
        ...     number.set_shape(())
        ...     which, numbers = engine.bucket(number, number % 2, batch_size=2, num_buckets=2)
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     len(set(session.run(numbers) % 2))
        1
    """
    graph = pipeline_graph(name)
    sizes = _for_each("batch_size", batch_size, num_buckets, name)
    room = capacity if bucket_capacities is None else bucket_capacities
    capacities = _for_each("bucket_capacities", room, num_buckets, name)
    if num_threads < 1:
        raise InvalidArgumentError(f"{name}: num_threads must be at least 1, got {num_threads}")
    with graph.as_default(), graph.name_scope(name):
        names, (row,) = rows_of(name, graph, [tensors])
        bounds = element_shapes(name, [row], shapes, many=False)
        which = cast(in_graph(graph, which_bucket), int32)
        if which.shape.rank not in (0, None):
            raise InvalidArgumentError(f"{name}: which_bucket must be a scalar, got {which.spec}")
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues: list[QueueBase] = [
            kind(
                capacities[i],
                [t.dtype for t in row],
                bounds,
                shared_name=None if shared_name is None else f"{shared_name}_{i}",
                name=f"bucket_{i}",
            )
            for i in range(num_buckets)
        ]
        enqueue = _enqueue(name, queues, row, which, in_graph(graph, keep_input, bool_))
        with graph.control_dependencies(None):
            close = group(*(q.close() for q in queues))
            cancel = group(*(q.close(cancel_pending_enqueues=True) for q in queues))
        add_queue_runner(QueueRunner(queues[0], [enqueue] * num_threads, close, cancel))
        number, *parts = _batches(
            queues,
            sizes,
            capacity,
            None if shared_name is None else f"{shared_name}_batches",
            up_to=allow_smaller_final_batch,
        )
    return number, _as_given(tensors, names, parts)


def _for_each(what: str, value: Any, count: int, who: str) -> list[int]:
    if isinstance(count, bool) or not isinstance(count, int) or count < 1:
        raise InvalidArgumentError(f"{who}: num_buckets must be at least 1, got {count!r}")
    found = [value] * count if isinstance(value, int) else list(value)
    if len(found) != count or not all(isinstance(n, int) and n >= 1 for n in found):
        raise InvalidArgumentError(
            f"{who}: {what} must be a number of at least 1, or one for each of {count} buckets, "
            f"got {value!r}"
        )
    return found


def _enqueue(
    who: str,
    queues: Sequence[QueueBase],
    row: Sequence[GraphTensor],
    which: Tensor,
    keep: GraphTensor,
) -> Any:
    """Store an example in the queue of its bucket."""
    zero, count = constant(0, int32), constant(len(queues), int32)
    inside = logical_and(greater_equal(which, zero), less(which, count))
    message = f"{who}: which_bucket must be from 0 to {len(queues) - 1}"
    checked = logical_and(keep, check(inside, message, [which]))
    stored = []
    for i, queue in enumerate(queues):
        belongs = logical_and(checked, equal(which, constant(i, int32)))
        attrs = {"dtypes": queue.dtypes, "shapes": queue.shapes, "many": False}
        with queue.beside():
            stored.append(perform(ops.queue_enqueue_kept, [queue.handle, belongs, *row], attrs))
    return group(*stored)


def _batches(
    queues: Sequence[QueueBase],
    sizes: Sequence[int],
    capacity: int,
    shared_name: str | None,
    *,
    up_to: bool,
) -> Any:
    """The queue of batches, which a thread for each bucket fills; takes a batch from it."""
    taken = [
        _parts(q.dequeue_up_to(n) if up_to else q.dequeue_many(n))
        for q, n in zip(queues, sizes, strict=True)
    ]
    rows = None if up_to or len({*sizes}) > 1 else sizes[0]
    shapes = [
        TensorShape(None) if s.rank is None else TensorShape([rows, *s]) for s in queues[0].shapes
    ]
    dtypes = [int32, *queues[0].dtypes]
    batches = FIFOQueue(
        capacity, dtypes, [TensorShape(()), *shapes], shared_name=shared_name, name="batches"
    )
    enqueues = [batches.enqueue([constant(i, int32), *parts]) for i, parts in enumerate(taken)]
    add_queue_runner(QueueRunner(batches, enqueues))
    return batches.dequeue()


def _as_given(tensors: Any, names: list[str] | None, parts: list[Tensor]) -> Any:
    """The parts of a batch in the form that an example was given in: one, a list, or a dict."""
    if names is not None:
        return dict(zip(names, parts, strict=True))
    return parts if isinstance(tensors, list | tuple) else parts[0]


def _parts(value: Any) -> list[Any]:
    """What a queue with or without several components gives, as a list of them."""
    return list(value) if isinstance(value, list) else [value]


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: int | Sequence[int],
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str = "bucket_by_sequence_length",
) -> tuple[Tensor, Any]:
    """Batches of sequences of similar lengths.

    Bucket k holds those whose length is at least boundary k - 1 and less than boundary k.

    Args:
        input_length: a scalar integer, the length of this example.
        tensors: one example: a tensor, or a list or dict of tensors.
        batch_size: how many examples are in a batch, of each bucket.
        bucket_boundaries: increasing; there is one bucket more than boundaries.
        num_threads, capacity, bucket_capacities, shapes, dynamic_pad, allow_smaller_final_batch,
            keep_input, shared_name, name: as for `bucket`. `shapes` are those of `tensors`.

    Returns:
        (lengths, batch): the lengths, int32 (batch), and what `tensors` is, with a batch axis in
        front.

    Raises:
        InvalidArgumentError: the boundaries do not increase.
        OutOfRangeError: when run, at the end of the input.

    Examples:
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     length = engine.range_input_producer(6, shuffle=False).dequeue()
        ...     lengths, same = engine.bucket_by_sequence_length(
        ...         length, [length], batch_size=2, bucket_boundaries=[3]
        ...     )
        ...     session.run(engine.local_variables_initializer())
        ...     threads = engine.start_queue_runners(session)
        ...     len(set(session.run(lengths) // 3))
        1
    """
    boundaries = list(bucket_boundaries)
    if (
        not boundaries
        or not all(isinstance(b, int) for b in boundaries)
        or any(a >= b for a, b in pairwise(boundaries))
    ):
        raise InvalidArgumentError(
            f"{name}: bucket_boundaries must be whole numbers that increase, at least one, "
            f"got {bucket_boundaries!r}"
        )
    graph = pipeline_graph(name)
    with graph.as_default():
        length = cast(in_graph(graph, input_length), int32)
        passed = cast(greater_equal(length, constant(boundaries, int32)), int32)
        names, (row,) = rows_of(name, graph, [tensors])
        _, (lengths, *parts) = bucket(
            [length, *row],
            reduce_sum(passed),
            batch_size,
            len(boundaries) + 1,
            num_threads,
            capacity,
            bucket_capacities,
            None if shapes is None else [TensorShape(()), *shapes],
            dynamic_pad,
            allow_smaller_final_batch,
            keep_input,
            shared_name,
            name,
        )
    return lengths, _as_given(tensors, names, parts)
