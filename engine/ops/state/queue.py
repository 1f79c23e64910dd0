"""Queues as ops: handles, enqueue, dequeue, close, size.

An op that has to wait holds no thread: it leaves the queue a function to call. The handle is an
object of `resources/queues.py`. The attributes `dtypes` and `shapes`, one per component, say what
an element is; a queue must be declared alike wherever it is shared.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from ...errors import DTypeError, InvalidArgumentError, ShapeError
from ...graph import (
    BOOLEAN,
    INTEGER,
    Array,
    TensorShape,
    TensorSpec,
    as_dtype,
    bool_,
    int32,
    int64,
    resource,
)
from ...resources.batches import Element, split_batch, stack_batch
from ...resources.queues import FIFO, Priority, Queue, RandomShuffle, check_room
from ..core.effects import HANDLE, component_specs, held, plain_shape, wait
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient

Names = tuple[str, ...]
Shapes = tuple[TensorShape, ...]


def _check_components(who: str, dtypes: Names, shapes: Shapes) -> None:
    if not dtypes or len(dtypes) != len(shapes):
        raise InvalidArgumentError(
            f"{who}: an element has at least one component, and a shape for each; "
            f"got {len(dtypes)} dtypes and {len(shapes)} shapes"
        )
    if any(as_dtype(d) == resource for d in dtypes):
        raise DTypeError(f"{who}: handles cannot be queued")


class _Padding(FIFO):
    """A queue whose batches are filled up."""


@lru_cache(maxsize=256)
def _element_of(dtypes: Names, shapes: Shapes) -> tuple[Names, Names]:
    """What an element is, in words; every step that uses a queue asks for it."""
    return tuple(map(str, dtypes)), tuple(map(str, shapes))


def _queue(
    context: KernelContext,
    kind: type[Queue],
    dtypes: Names,
    shapes: Shapes,
    capacity: int | None,
    container: str,
    shared_name: str,
    **options: Any,
) -> Queue:
    def make() -> Queue:
        known = [plain_shape(s) for s in shapes]
        bounds = None if all(s is None for s in known) else known
        return kind(shared_name, capacity, bounds, **options)

    declared = (*_element_of(dtypes, shapes), capacity, options)
    return held(context, container, shared_name, kind, declared, make)


@define("FIFOQueue", stateful=True)
def fifo_queue(
    *, dtypes: Names, shapes: Shapes, capacity: int | None, container: str, shared_name: str
) -> TensorSpec:
    """The handle of a queue that gives elements in the order in which they came."""
    _check_components("FIFOQueue", dtypes, shapes)
    check_room("FIFOQueue", capacity)
    return TensorSpec((), resource)


@fifo_queue.effect
def _fifo_kernel(context: KernelContext, **attrs: Any) -> Queue:
    return _queue(context, FIFO, **attrs)


@define("PaddingFIFOQueue", stateful=True)
def padding_fifo_queue(
    *, dtypes: Names, shapes: Shapes, capacity: int | None, container: str, shared_name: str
) -> TensorSpec:
    """The handle of a queue in order, whose batches are filled up to their longest elements."""
    _check_components("PaddingFIFOQueue", dtypes, shapes)
    check_room("PaddingFIFOQueue", capacity)
    if any(s.rank is None for s in shapes):
        raise ShapeError("PaddingFIFOQueue: the number of axes of each component must be known")
    return TensorSpec((), resource)


@padding_fifo_queue.effect
def _padding_kernel(context: KernelContext, **attrs: Any) -> Queue:
    return _queue(context, _Padding, **attrs)


@define("RandomShuffleQueue", stateful=True)
def random_shuffle_queue(
    *,
    dtypes: Names,
    shapes: Shapes,
    capacity: int | None,
    min_after_dequeue: int,
    seed: int | None,
    container: str,
    shared_name: str,
) -> TensorSpec:
    """The handle of a queue that gives elements in random order.

    Until it is closed, a dequeue leaves `min_after_dequeue` elements.
    """
    _check_components("RandomShuffleQueue", dtypes, shapes)
    check_room("RandomShuffleQueue", capacity, min_after_dequeue)
    return TensorSpec((), resource)


@random_shuffle_queue.effect
def _shuffle_kernel(context: KernelContext, **attrs: Any) -> Queue:
    return _queue(context, RandomShuffle, **attrs)


@define("PriorityQueue", stateful=True)
def priority_queue(
    *, dtypes: Names, shapes: Shapes, capacity: int | None, container: str, shared_name: str
) -> TensorSpec:
    """The handle of a queue that gives elements by their first component, int64, least first."""
    _check_components("PriorityQueue", dtypes, shapes)
    check_room("PriorityQueue", capacity)
    if as_dtype(dtypes[0]) != int64 or shapes[0].rank != 0:
        raise DTypeError(
            f"PriorityQueue: the first component is the priority, an int64 scalar, "
            f"got {dtypes[0]}{shapes[0]}"
        )
    return TensorSpec((), resource)


@priority_queue.effect
def _priority_kernel(context: KernelContext, **attrs: Any) -> Queue:
    return _queue(context, Priority, **attrs)


def _check_element(
    who: str, components: tuple[TensorSpec, ...], dtypes: Names, shapes: Shapes, many: bool
) -> None:
    if len(components) != len(dtypes):
        raise InvalidArgumentError(
            f"{who}: an element of the queue has {len(dtypes)} components, got {len(components)}"
        )
    for i, (x, dtype, shape) in enumerate(zip(components, dtypes, shapes, strict=True)):
        if x.dtype != dtype:
            raise DTypeError(
                f"{who}: component {i} of the queue is {dtype}, got {x}", remedy="cast it first"
            )
        whole = shape if not many or shape.rank is None else TensorShape([None, *shape])
        if not whole.is_compatible_with(x.shape) or (many and x.shape.rank == 0):
            raise ShapeError(f"{who}: component {i} must have shape {whole}, got {x}")
    if many:
        counts = {x.shape[0] for x in components if x.shape.rank} - {None}
        if len(counts) > 1:
            found = sorted(x.shape[0] or 0 for x in components)
            raise ShapeError(f"{who}: the components must have one length, got {found}")


@define("QueueEnqueue", dtypes={"queue": HANDLE})
def queue_enqueue(
    queue: TensorSpec, *components: TensorSpec, dtypes: Names, shapes: Shapes
) -> tuple[TensorSpec, ...]:
    """Store one element; waits while the queue is full."""
    _check_element("QueueEnqueue", components, dtypes, shapes, many=False)
    return ()


@queue_enqueue.asynchronous
def _enqueue_kernel(
    context: KernelContext, done: Any, queue: Queue, *components: Array, dtypes: Any, shapes: Any
) -> None:
    wait(context, done, lambda tell: queue.enqueue(components, tell))


@define("QueueEnqueueMany", dtypes={"queue": HANDLE})
def queue_enqueue_many(
    queue: TensorSpec, *components: TensorSpec, dtypes: Names, shapes: Shapes
) -> tuple[TensorSpec, ...]:
    """Store the elements that lie along the first axis, in order; waits until all are stored."""
    _check_element("QueueEnqueueMany", components, dtypes, shapes, many=True)
    return ()


@queue_enqueue_many.asynchronous
def _enqueue_many_kernel(
    context: KernelContext, done: Any, queue: Queue, *components: Array, dtypes: Any, shapes: Any
) -> None:
    elements = split_batch(components)
    wait(context, done, lambda tell: queue.enqueue_many(elements, tell))


@define("QueueEnqueueKept", dtypes={"queue": HANDLE, "keep": BOOLEAN}, same_dtype=False)
def queue_enqueue_kept(
    queue: TensorSpec,
    keep: TensorSpec,
    *components: TensorSpec,
    dtypes: Names,
    shapes: Shapes,
    many: bool,
) -> tuple[TensorSpec, ...]:
    """As QueueEnqueue, or with `many` as QueueEnqueueMany, of what `keep` says is to be stored.

    `keep` is a scalar, for all or nothing, or with `many` a vector of one flag for each element.
    """
    _check_element("QueueEnqueueKept", components, dtypes, shapes, many)
    if keep.shape.rank not in (0, None) and not (many and keep.shape.rank == 1):
        raise ShapeError(
            f"QueueEnqueueKept: keep is a scalar{', or a vector' if many else ''}, got {keep}"
        )
    return ()


@queue_enqueue_kept.asynchronous
def _enqueue_kept_kernel(
    context: KernelContext,
    done: Any,
    queue: Queue,
    keep: Array,
    *components: Array,
    dtypes: Any,
    shapes: Any,
    many: bool,
) -> None:
    elements = split_batch(components) if many else [components]
    if keep.ndim and len(keep) != len(elements):
        raise ShapeError(
            f"QueueEnqueueKept: {len(elements)} elements, and {len(keep)} flags for them"
        )
    flags = keep.tolist() if keep.ndim else [bool(keep)] * len(elements)
    kept = [element for element, flag in zip(elements, flags, strict=True) if flag]
    wait(context, done, lambda tell: queue.enqueue_many(kept, tell))


@define("QueueDequeue", dtypes={"queue": HANDLE})
def queue_dequeue(queue: TensorSpec, *, dtypes: Names, shapes: Shapes) -> tuple[TensorSpec, ...]:
    """Take one element; waits while there is none."""
    return component_specs(dtypes, shapes)


def _one(elements: list[Element]) -> Any:
    (element,) = elements
    return element if len(element) > 1 else element[0]


@queue_dequeue.asynchronous
def _dequeue_kernel(
    context: KernelContext, done: Any, queue: Queue, *, dtypes: Any, shapes: Any
) -> None:
    wait(context, done, queue.dequeue, _one)


def _joining(queue: Queue, dtypes: Names, shapes: Shapes) -> Callable[[list[Element]], Any]:
    def join(elements: list[Element]) -> Any:
        if elements:
            try:
                batch = stack_batch(queue.name, elements, pad=isinstance(queue, _Padding))
            except ShapeError:
                queue.give_back(elements)
                raise
        else:
            batch = tuple(
                np.empty((0, *(n or 0 for n in s.dims or ())), as_dtype(d).numpy)
                for d, s in zip(dtypes, shapes, strict=True)
            )
        return batch if len(batch) > 1 else batch[0]

    return join


@define("QueueDequeueMany", dtypes={"queue": HANDLE, "n": INTEGER}, same_dtype=False)
def queue_dequeue_many(
    queue: TensorSpec, n: TensorSpec, *, dtypes: Names, shapes: Shapes, batch: int | None
) -> tuple[TensorSpec, ...]:
    """Take `n` elements and join them along a new first axis; waits until they are there.

    Elements that cannot be joined go back. `batch` is n where it is known, else None.
    """
    _check_count("QueueDequeueMany", n)
    if batch is not None and batch < 0:
        raise InvalidArgumentError(f"QueueDequeueMany: cannot dequeue {batch} elements")
    return component_specs(dtypes, shapes, [batch])


@queue_dequeue_many.asynchronous
def _dequeue_many_kernel(
    context: KernelContext,
    done: Any,
    queue: Queue,
    n: Array,
    *,
    dtypes: Names,
    shapes: Shapes,
    batch: Any,
) -> None:
    join = _joining(queue, dtypes, shapes)
    wait(context, done, lambda tell: queue.dequeue_many(int(n), tell), join)


@define("QueueDequeueUpTo", dtypes={"queue": HANDLE, "n": INTEGER}, same_dtype=False)
def queue_dequeue_up_to(
    queue: TensorSpec, n: TensorSpec, *, dtypes: Names, shapes: Shapes
) -> tuple[TensorSpec, ...]:
    """As QueueDequeueMany, but a closed queue gives what is left, if it is not nothing."""
    _check_count("QueueDequeueUpTo", n)
    return component_specs(dtypes, shapes, [None])


@queue_dequeue_up_to.asynchronous
def _dequeue_up_to_kernel(
    context: KernelContext, done: Any, queue: Queue, n: Array, *, dtypes: Names, shapes: Shapes
) -> None:
    join = _joining(queue, dtypes, shapes)
    wait(context, done, lambda tell: queue.dequeue_many(int(n), tell, up_to=True), join)


def _check_count(who: str, n: TensorSpec) -> None:
    if not n.shape.is_compatible_with(()):
        raise ShapeError(f"{who}: n is a scalar, got {n}")


@define("QueueClose", dtypes={"queue": HANDLE})
def queue_close(queue: TensorSpec, *, cancel_pending_enqueues: bool) -> tuple[TensorSpec, ...]:
    """Accept no more elements. What is there can be taken; what waits to enter may be cancelled."""
    return ()


@queue_close.effect
def _close_kernel(context: KernelContext, queue: Queue, *, cancel_pending_enqueues: bool) -> Any:
    queue.close(cancel_pending_enqueues)
    return ()


@define("QueueIsClosed", dtypes={"queue": HANDLE}, read_only=True)
def queue_is_closed(queue: TensorSpec) -> TensorSpec:
    """Whether the queue accepts no more elements."""
    return TensorSpec((), bool_)


@queue_is_closed.effect
def _is_closed_kernel(context: KernelContext, queue: Queue) -> bool:
    return queue.is_closed


@define("QueueSize", dtypes={"queue": HANDLE}, read_only=True)
def queue_size(queue: TensorSpec) -> TensorSpec:
    """The number of elements in the queue, int32."""
    return TensorSpec((), int32)


@queue_size.effect
def _size_kernel(context: KernelContext, queue: Queue) -> Array:
    return np.asarray(queue.size, np.int32)


for _op in (
    fifo_queue,
    padding_fifo_queue,
    random_shuffle_queue,
    priority_queue,
    queue_enqueue,
    queue_enqueue_many,
    queue_enqueue_kept,
    queue_dequeue,
    queue_dequeue_many,
    queue_dequeue_up_to,
    queue_close,
    queue_is_closed,
    queue_size,
):
    _op.grad(no_gradient)
