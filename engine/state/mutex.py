"""Mutex: critical sections over shared state."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..errors import FailedPreconditionError
from ..graph import GraphTensor, Operation, Tensor, building, resource
from ..ops.core.basic import identity, no_op, placeholder_op
from ..ops.core.dispatch import apply, as_input
from ..ops.core.effects import perform
from ..ops.state import mutex as ops
from ..tree import flatten, pack_sequence_as
from .handles import Handle


class Mutex(Handle):
    """Held by one step, or one thread, at a time; those who wait get it in order of arrival.

    A step that fails or is cancelled while it holds a mutex gives it back.

    Args:
        shared_name: the name under which sessions share it in a container.
        name: of the operation.

    Examples:
        >>> v = engine.Variable(1.0)
        >>> engine.Mutex().execute(lambda: v.assign(2 * v))
        Tensor(2., shape=(), dtype=float32)
    """

    def __init__(self, shared_name: str | None = None, name: str = "mutex") -> None:
        super().__init__(ops.mutex, {}, name, shared_name)
        self._last = threading.local()  # the lease that a thread acquired last

    def acquire(self, name: str | None = None) -> Tensor:
        """Wait until it is free, and take it.

        Returns:
            the lease, for `release`.
        """
        with self.beside():
            lease = self._last.lease = apply(ops.mutex_acquire, [self.handle], {}, name)[0]
        return lease

    def release(self, lease: Tensor | None = None, name: str | None = None) -> Operation | None:
        """Give it back; nothing happens when the lease has ended already.

        In a graph this needs control inputs: all that the lease guards must have run before.

        Args:
            lease: which one; by default that which this thread acquired last.
            name: of the operation.

        Raises:
            FailedPreconditionError: this thread has acquired nothing.
        """
        if lease is None:
            lease = getattr(self._last, "lease", None)
        if lease is None:
            raise FailedPreconditionError(
                f"{self!r} is released, and this thread has not acquired it",
                remedy="call acquire() before, or give release() the lease",
            )
        with self.beside():
            return perform(ops.mutex_release, [lease], {}, name)

    def is_held(self, name: str | None = None) -> Tensor:
        """Whether someone holds it."""
        with self.beside():
            return apply(ops.mutex_is_held, [self.handle], {}, name)[0]

    def execute(self, function: Callable[[], Any], name: str = "critical_section") -> Any:
        """What `function()` gives, computed while the mutex is held.

        In a graph all operations that the function builds run between acquire and release, which
        have run when the result is there. What it takes from outside is computed before the mutex
        is acquired, for that may need the mutex too.

        Args:
            function: of no arguments; gives tensors, or a nested structure of them.
            name: of the scope.

        Raises:
            FailedPreconditionError: `function` executes something under the same mutex, which it
                would wait for without end.
        """
        # Graphs share one by its name; one that is made at once is an object of its own.
        is_shared = isinstance(self.handle, GraphTensor)
        key = (self.container, self.shared_name) if is_shared else id(self.handle)
        if key in _held.keys:
            raise FailedPreconditionError(
                f"{self!r}: what is executed under it executes something under it once more",
                remedy="execute one function that does both, or use another mutex",
            )
        _held.keys.append(key)
        try:
            return self._execute(function, name)
        finally:
            _held.keys.remove(key)

    def _execute(self, function: Callable[[], Any], name: str) -> Any:
        graph = building()
        if graph is None and isinstance(self.handle, GraphTensor):
            graph = self.handle.graph
        if graph is None:
            lease = self.acquire()
            try:
                return function()
            finally:
                self.release(lease)
        with graph.as_default(), graph.name_scope(name):
            lease = self.acquire()
            assert isinstance(lease, GraphTensor)
            before = graph.version
            with graph.control_dependencies([lease]):
                results = function()
            inside = graph.operations[before:]
            for x in {id(x): x for op in inside for x in op.inputs}.values():
                # What another graph gives comes from a placeholder that was made just now.
                is_given = x.op.id < lease.op.id or x.op.definition is placeholder_op
                if is_given and x.dtype != resource:
                    there = as_input(graph, identity(x))
                    there.op.control_inputs.clear()
                    lease.op.add_control_input(there.op)
            with graph.control_dependencies(inside):
                released = self.release(lease)
            with graph.control_dependencies([released]):
                leaves = [_behind(x) for x in flatten(results)]
            return pack_sequence_as(results, leaves)


class _Held(threading.local):
    """What this thread executes something under, the outermost first."""

    def __init__(self) -> None:
        self.keys: list[Any] = []


_held = _Held()


def _behind(result: Any) -> Any:
    """A result that is there when the operations that are waited for have run."""
    if isinstance(result, Operation):
        return no_op()
    return identity(result) if isinstance(result, Tensor) else result
