"""Queues and their threads: an element of one component may be given as a list of one."""

from __future__ import annotations

from typing import Any

from laminar import engine
from laminar.engine.graph import Operation

from .adapting import in_graph
from .values import is_value, tensor


class _Elements:
    """What a queue of these names takes as an element."""

    def _as_element(self, vals: Any) -> Any:
        queue: Any = self
        if queue.names is not None or len(queue.dtypes) != 1 or not isinstance(vals, list | tuple):
            return vals
        if len(vals) != 1:
            raise ValueError(f"{queue.name}: 1 component is expected, got {len(vals)}")
        return [tensor(vals[0], queue.dtypes[0] if is_value(vals[0]) else None)]

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """Put an element in; see `laminar.engine.QueueBase`."""
        with in_graph():
            return super().enqueue(self._as_element(vals), name)  # type: ignore[misc]  # a queue's

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """Put several elements in, those along the first axis."""
        with in_graph():
            return super().enqueue_many(self._as_element(vals), name)  # type: ignore[misc]  # a queue's


class FIFOQueue(_Elements, engine.FIFOQueue):
    """See `laminar.engine.FIFOQueue`."""

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        with in_graph():
            super().__init__(capacity, dtypes, shapes, names, shared_name, name)


class PaddingFIFOQueue(_Elements, engine.PaddingFIFOQueue):
    """See `laminar.engine.PaddingFIFOQueue`."""

    def __init__(
        self,
        capacity: int | None,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        with in_graph():
            super().__init__(capacity, dtypes, shapes, names, shared_name, name)


class RandomShuffleQueue(_Elements, engine.RandomShuffleQueue):
    """See `laminar.engine.RandomShuffleQueue`."""

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
        with in_graph():
            super().__init__(
                capacity, min_after_dequeue, dtypes, shapes, names, seed, shared_name, name
            )


class PriorityQueue(_Elements, engine.PriorityQueue):
    """See `laminar.engine.PriorityQueue`."""

    def __init__(
        self,
        capacity: int | None,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        with in_graph():
            super().__init__(capacity, types, shapes, names, shared_name, name)

    def _as_element(self, vals: Any) -> Any:
        return vals  # a priority, then the components


class QueueRunner(engine.QueueRunner):
    """See `laminar.engine.QueueRunner`."""

    def __init__(
        self,
        queue: Any = None,
        enqueue_ops: Any = None,
        close_op: Operation | None = None,
        cancel_op: Operation | None = None,
        queue_closed_exception_types: Any = None,
        queue_runner_def: Any = None,
        import_scope: str | None = None,
    ) -> None:
        more = [] if queue_closed_exception_types is None else [queue_closed_exception_types]
        ops = [getattr(op, "op", op) for op in enqueue_ops or ()]
        with in_graph():
            super().__init__(queue, ops, close_op, cancel_op, *more)
