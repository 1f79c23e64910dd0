"""The last stage of an input pipeline: examples gathered into batches, in order or shuffled.

Each function makes a queue, a runner whose threads fill it with examples, and gives the tensors of
a batch that is taken from it. Variants: `..._join` has several kinds of thread, one for each list
of tensors, so that examples come from several files at a time; `maybe_...` keeps only some.

Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
    arXiv:1603.04467, section 4.6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError, ShapeError
from ..graph import GraphTensor, Operation, TensorShape, bool_
from ..ops.core.effects import perform
from ..ops.state import queue as ops
from .input import in_graph, pipeline_graph
from .queue_runner import QueueRunner, add_queue_runner
from .queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from .sparse_rows import pack_sparse

MakeQueue = Callable[[list[Any], list[TensorShape], list[str] | None], QueueBase]


def _gather(
    who: str,
    tensors_list: Sequence[Any],
    num_threads: int,
    keep_input: Any,
    batch_size: Any,
    make: MakeQueue,
    *,
    enqueue_many: bool,
    shapes: Any,
    allow_smaller_final_batch: bool,
) -> Any:
    """What all variants do: make a queue, its runner, and take a batch."""
    graph = pipeline_graph(who)
    if num_threads < 1:
        raise InvalidArgumentError(f"{who}: num_threads must be at least 1, got {num_threads}")
    if isinstance(batch_size, int) and batch_size < 1:
        raise InvalidArgumentError(f"{who}: batch_size must be at least 1, got {batch_size}")
    if not tensors_list:
        raise InvalidArgumentError(f"{who}: there are no tensors")
    with graph.as_default(), graph.name_scope(who):
        packed = [pack_sparse(tensors, enqueue_many) for tensors in tensors_list]
        unpack = packed[0][1]
        names, rows = rows_of(who, graph, [tensors for tensors, _ in packed])
        dtypes = [t.dtype for t in rows[0]]
        for row in rows[1:]:
            if [t.dtype for t in row] != dtypes:
                raise InvalidArgumentError(
                    f"{who}: all lists must have tensors of the same types: {dtypes} and "
                    f"{[t.dtype for t in row]}"
                )
        bounds = element_shapes(who, rows, shapes, enqueue_many)
        queue = make(dtypes, bounds, names)
        keep = None if keep_input is None else in_graph(graph, keep_input, bool_)
        enqueues = [_enqueue(queue, row, keep, enqueue_many) for row in rows]
        add_queue_runner(QueueRunner(queue, enqueues * num_threads))
        if allow_smaller_final_batch:
            return unpack(queue.dequeue_up_to(batch_size))
        return unpack(queue.dequeue_many(batch_size))


def rows_of(
    who: str, graph: Any, tensors_list: Sequence[Any]
) -> tuple[list[str] | None, list[list[GraphTensor]]]:
    """The names of the components, and the tensors of each list in that order."""
    first = tensors_list[0]
    if isinstance(first, Mapping):
        names = sorted(first)
        if not names:
            raise InvalidArgumentError(f"{who}: there are no tensors")
        for tensors in tensors_list:
            if not isinstance(tensors, Mapping) or sorted(tensors) != names:
                raise InvalidArgumentError(f"{who}: all dicts must have the keys {names}")
        return names, [[in_graph(graph, t[n]) for n in names] for t in tensors_list]
    rows = [
        [in_graph(graph, t) for t in (ts if isinstance(ts, list | tuple) else [ts])]
        for ts in tensors_list
    ]
    if not rows[0] or len({len(row) for row in rows}) > 1:
        raise InvalidArgumentError(
            f"{who}: expected equally many tensors in each list, at least one, "
            f"got {[len(row) for row in rows]}"
        )
    return None, rows


def element_shapes(
    who: str, rows: Sequence[Sequence[GraphTensor]], shapes: Any, many: bool
) -> list[TensorShape]:
    """The shape of each component of an example: what is given, or what all lists agree on."""
    if shapes is not None:
        found = [TensorShape(s) for s in shapes]
        if len(found) != len(rows[0]):
            raise InvalidArgumentError(
                f"{who}: {len(rows[0])} tensors, and {len(found)} shapes for them"
            )
        return found
    merged = []
    for column in zip(*rows, strict=True):
        kinds = []
        for t in column:
            if many and t.shape.rank == 0:
                raise ShapeError(f"{who}: with enqueue_many there is a first axis, got {t.spec}")
            known = t.shape.rank is not None
            kinds.append(TensorShape(t.shape[1:]) if many and known else t.shape)
        ranks = {k.rank for k in kinds}
        if None in ranks or len(ranks) > 1:
            merged.append(TensorShape(None))
        else:
            lengths = zip(*kinds, strict=True)
            merged.append(TensorShape([n[0] if len({*n}) == 1 else None for n in lengths]))
    return merged


def _enqueue(
    queue: QueueBase, row: Sequence[GraphTensor], keep: GraphTensor | None, many: bool
) -> Operation:
    element = {"dtypes": queue.dtypes, "shapes": queue.shapes}
    with queue.beside():
        if keep is not None:
            attrs = {**element, "many": many}
            made = perform(ops.queue_enqueue_kept, [queue.handle, keep, *row], attrs)
        else:
            op = ops.queue_enqueue_many if many else ops.queue_enqueue
            made = perform(op, [queue.handle, *row], element)
    assert made is not None  # in a graph
    return made


def _in_order(capacity: int, dynamic_pad: bool, shared_name: str | None) -> MakeQueue:
    def make(dtypes: list[Any], shapes: list[TensorShape], names: list[str] | None) -> QueueBase:
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        return kind(capacity, dtypes, shapes, names, shared_name=shared_name)

    return make


def _shuffled(
    capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None
) -> MakeQueue:
    def make(dtypes: list[Any], shapes: list[TensorShape], names: list[str] | None) -> QueueBase:
        return RandomShuffleQueue(
            capacity, min_after_dequeue, dtypes, shapes, names, seed, shared_name
        )

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
    return _gather(
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
    return _gather(
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
    return _gather(
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
    return _gather(
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
