"""The queue and the threads behind batches: examples go in, and many of them come out at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..errors import InvalidArgumentError, ShapeError
from ..graph import GraphTensor, Operation, TensorShape, bool_
from ..ops.core.effects import perform
from ..ops.state import queue as ops
from .input import in_graph, pipeline_graph
from .queue_runner import QueueRunner, add_queue_runner
from .queues import QueueBase
from .sparse_rows import pack_sparse

MakeQueue = Callable[[list[Any], list[TensorShape], list[str] | None], QueueBase]


def gather(
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
