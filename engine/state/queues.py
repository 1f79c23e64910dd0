"""Queues as a user has them in hand: in Session graphs, in functions and eagerly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from ..errors import ArgumentTypeError, DTypeError
from ..graph import (
    GraphTensor,
    Operation,
    Tensor,
    TensorShape,
    building,
    int32,
    int64,
)
from ..late import later
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.effects import perform
from ..ops.core.op_def import OpDef
from ..ops.state import queue as ops
from .elements import ElementHandle, shapes_of
from .handles import as_list

_switch_case = later("laminar.engine.functions.conditions", "switch_case")


class QueueBase(ElementHandle):
    """What all queues share. Abstract: make a FIFOQueue, RandomShuffleQueue, ...

    An element is one tensor, or several (a list, or a dict when the queue has names).

    In a graph the methods give operations and tensors: each run of them does it once, and waits
    until it can. Eagerly they do it at once, and block; other threads run meanwhile, and an
    interrupt ends the wait.

    Attributes:
        name: of the queue.
        handle: the tensor that stands for it.
        dtypes, shapes: of the components of an element.
        names: of the components, or None.

    Examples:
        >>> isinstance(engine.FIFOQueue(3, ["int32"]), engine.QueueBase)
        True
    """

    def __init__(
        self,
        op: OpDef,
        capacity: int | None,
        dtypes: Any,
        shapes: Any,
        names: Any,
        shared_name: str | None,
        name: str,
        **options: Any,
    ) -> None:
        room = None if capacity is None or capacity < 0 else int(capacity)
        attrs = {"capacity": room, **options}
        super().__init__(op, dtypes, shapes, names, shared_name, name, attrs)

    @classmethod
    def of_handle(cls, handle: GraphTensor) -> QueueBase:
        """The queue whose handle a graph has already; its components have no names."""
        found = cls.__new__(cls)
        found.handle, found.name = handle, handle.op.name
        found.dtypes, found.shapes = handle.op.attrs["dtypes"], handle.op.attrs["shapes"]
        found.names = None
        return found

    @staticmethod
    def from_list(index: Any, queues: Sequence[QueueBase]) -> QueueBase:
        """The queue of a list that `index`, an integer, names each time that it is used.

        Raises:
            ArgumentTypeError: they are no queues.
            DTypeError: their components have other types, or names.

        Examples:
            >>> queues = [engine.FIFOQueue(3, ["int32"], [[]]) for _ in range(2)]
            >>> engine.QueueBase.from_list(1, queues).enqueue(5)
            >>> [int(q.size()) for q in queues]
            [0, 1]
        """
        if not queues or not all(isinstance(q, QueueBase) for q in queues):
            raise ArgumentTypeError(f"from_list: expected queues, got {queues!r}")
        first = queues[0]
        if any((q.dtypes, q.names) != (first.dtypes, first.names) for q in queues):
            raise DTypeError(
                "from_list: the components of the queues have other types or names: "
                + "; ".join(f"{q.name} has {', '.join(map(str, q.dtypes))}" for q in queues)
            )
        found = QueueBase.__new__(QueueBase)
        found.handle = _switch_case(index, [lambda q=q: q.handle for q in queues])
        found.name, found.dtypes, found.names = "from_list", first.dtypes, first.names
        alike = all(q.shapes == first.shapes for q in queues)
        found.shapes = first.shapes if alike else shapes_of(None, len(first.dtypes))
        return found

    @property
    def queue_ref(self) -> Tensor:
        """The tensor that stands for it."""
        return self.handle

    def enqueue(self, vals: Any, name: str | None = None) -> Operation | None:
        """Store one element; waits while the queue is full.

        Args:
            vals: one value for each component: a list, or the value itself where there is one
                component, or a dict by name where they have names.
            name: of the operation.

        Raises:
            InvalidArgumentError: there is another number of components, or a list where they have
                names.
            CancelledError: the queue is closed, or was closed with cancel_pending_enqueues.
            ShapeError, DTypeError: the element does not fit.
        """
        inputs = self._components(vals)
        with self.beside():
            return perform(ops.queue_enqueue, [self.handle, *inputs], self._element, name)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation | None:
        """Store the elements that lie along the first axis of each tensor, in order.

        Args:
            vals: as for `enqueue`, each with one more axis in front, of one length.
            name: of the operation.

        Raises:
            CancelledError: the queue is closed.
            ShapeError: the lengths differ, or the elements do not fit.
        """
        inputs = self._components(vals, is_batch=True)
        with self.beside():
            return perform(ops.queue_enqueue_many, [self.handle, *inputs], self._element, name)

    def dequeue(self, name: str | None = None) -> Any:
        """Take one element; waits while there is none.

        Raises:
            OutOfRangeError: the queue is closed and empty.
        """
        with self.beside():
            return self._result(apply(ops.queue_dequeue, [self.handle], self._element, name))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Take `n` elements, joined along a new first axis; waits until they are there.

        Args:
            n: how many, at least 0.
            name: of the operation.

        Returns:
            what `dequeue` gives, with an axis of `n` in front.

        Raises:
            InvalidArgumentError: `n` is negative.
            OutOfRangeError: the queue is closed and has fewer; they stay in it.
        """
        attrs = {**self._element, "batch": n if isinstance(n, int) else None}
        count = convert_to_tensor(n, int32)
        with self.beside():
            return self._result(apply(ops.queue_dequeue_many, [self.handle, count], attrs, name))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but a closed queue gives what is left, if it is not nothing.

        Args:
            n: how many at most.
            name: of the operation.

        Raises:
            OutOfRangeError: the queue is closed and empty.
        """
        count = convert_to_tensor(n, int32)
        with self.beside():
            found = apply(ops.queue_dequeue_up_to, [self.handle, count], self._element, name)
        return self._result(found)

    def close(
        self, cancel_pending_enqueues: bool = False, name: str | None = None
    ) -> Operation | None:
        """Accept no more elements; what is there can still be taken.

        Args:
            cancel_pending_enqueues: whether enqueues that wait are cancelled; otherwise they
                complete when there is room.
            name: of the operation.
        """
        attrs = {"cancel_pending_enqueues": bool(cancel_pending_enqueues)}
        with self.beside():
            return perform(ops.queue_close, [self.handle], attrs, name)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether it accepts no more elements."""
        with self.beside():
            return apply(ops.queue_is_closed, [self.handle], {}, name)[0]

    def size(self, name: str | None = None) -> Tensor:
        """The number of elements in it, int32."""
        with self.beside():
            return apply(ops.queue_size, [self.handle], {}, name)[0]


class FIFOQueue(QueueBase):
    """Elements come out in the order in which they went in.

    Args:
        capacity: how many elements fit; None or -1 for any number.
        dtypes: of the components; one dtype, or a list.
        shapes: of the components, where they are known; a shape, or a list.
        names: of the components: then elements are dicts.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.

    Examples:
        >>> queue = engine.FIFOQueue(3, ["int32"], shapes=[()])
        >>> _ = queue.enqueue(5)
        >>> _ = queue.enqueue(6)
        >>> queue.dequeue(), queue.size()
        (Tensor(5, shape=(), dtype=int32), Tensor(1, shape=(), dtype=int32))
    """

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        super().__init__(ops.fifo_queue, capacity, dtypes, shapes, names, shared_name, name)


class PaddingFIFOQueue(QueueBase):
    """A FIFO queue of arrays of unequal lengths.

    `dequeue_many` fills each up to the longest, at its ends, with zeros (or empty strings).

    Args:
        shapes: of the components, with None where lengths differ; the number of axes is fixed.
        capacity, dtypes, names, shared_name, name: as for FIFOQueue.

    Examples:
        >>> queue = engine.PaddingFIFOQueue(3, ["int32"], shapes=[(None,)])
        >>> _ = queue.enqueue([1])
        >>> _ = queue.enqueue([2, 3])
        >>> queue.dequeue_many(2)
        Tensor([[1, 0],
                [2, 3]], shape=(2, 2), dtype=int32)
    """

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        super().__init__(ops.padding_fifo_queue, capacity, dtypes, shapes, names, shared_name, name)


class RandomShuffleQueue(QueueBase):
    """Elements come out in random order.

    Args:
        min_after_dequeue: how many elements a dequeue leaves, until the queue is closed: the
            more, the better they are mixed.
        seed: for the same order every time; by default the graph's seed, if it has one.
        capacity, dtypes, shapes, names, shared_name, name: as for FIFOQueue.

    Examples:
        >>> queue = engine.RandomShuffleQueue(3, 0, ["int32"], shapes=[()], seed=1)
        >>> _ = queue.enqueue_many([[1, 2, 3]])
        >>> ops.sort(queue.dequeue_many(3))
        Tensor([1, 2, 3], shape=(3,), dtype=int32)
    """

    def __init__(
        self,
        capacity: int | None,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        graph = building()
        if seed is None and graph is not None and (graph_seed := graph.root.seed) is not None:
            # Queues of one graph shuffle differently; one that is shared is declared alike.
            number = graph.root.version if shared_name is None else crc32(shared_name.encode())
            seed = graph_seed + number
        super().__init__(
            ops.random_shuffle_queue,
            capacity,
            dtypes,
            shapes,
            names,
            shared_name,
            name,
            min_after_dequeue=int(min_after_dequeue),
            seed=seed,
        )


class PriorityQueue(QueueBase):
    """Elements come out by their first component, the least first.

    Args:
        types, shapes: of the components after the priority, an int64 scalar.
        names: of all components, the priority too.
        capacity, shared_name, name: as for FIFOQueue.

    Examples:
        >>> queue = engine.PriorityQueue(3, ["string"], shapes=[()])
        >>> _ = queue.enqueue([engine.constant(5, "int64"), "later"])
        >>> _ = queue.enqueue([engine.constant(1, "int64"), "now"])
        >>> queue.dequeue()
        [Tensor(1, shape=(), dtype=int64), Tensor(b'now', shape=(), dtype=string)]
    """

    def __init__(
        self,
        capacity: int | None,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        dtypes = as_list(types)
        bounds = [TensorShape(()), *shapes_of(shapes, len(dtypes))]
        super().__init__(
            ops.priority_queue,
            capacity,
            [int64, *dtypes],
            bounds,
            names,
            shared_name,
            name,
        )
