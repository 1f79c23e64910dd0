"""Mutex: critical sections over shared state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..graph import GraphTensor, Operation, Tensor
from ..ops.core.basic import identity
from ..ops.core.dispatch import apply
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
    """

    def __init__(self, shared_name: str | None = None, name: str = "mutex") -> None:
        super().__init__(ops.mutex, {}, name, shared_name)

    def acquire(self, name: str | None = None) -> Tensor:
        """Wait until it is free, and take it.

        Returns:
            the lease, for `release`.
        """
        with self.beside():
            return apply(ops.mutex_acquire, [self.handle], {}, name)[0]

    def release(self, lease: Tensor, name: str | None = None) -> Operation | None:
        """Give it back; nothing happens when the lease has ended already.

        In a graph this needs control inputs: all that the lease guards must have run before.
        """
        with self.beside():
            return perform(ops.mutex_release, [lease], {}, name)

    def is_held(self, name: str | None = None) -> Tensor:
        """Whether someone holds it."""
        with self.beside():
            return apply(ops.mutex_is_held, [self.handle], {}, name)[0]

    def execute(self, function: Callable[[], Any], name: str = "critical_section") -> Any:
        """What `function()` gives, computed while the mutex is held.

        In a graph all operations that the function builds run between acquire and release, which
        have run when the result is there.

        Args:
            function: of no arguments; gives tensors, or a nested structure of them.
            name: of the scope.
        """
        if not isinstance(self.handle, GraphTensor):
            lease = self.acquire()
            try:
                return function()
            finally:
                self.release(lease)
        graph = self.handle.graph
        with graph.as_default(), graph.name_scope(name):
            lease = self.acquire()
            before = graph.version
            with graph.control_dependencies([lease]):
                results = function()
            inside = graph.operations[before:]
            with graph.control_dependencies(inside):
                released = self.release(lease)
            with graph.control_dependencies([released]):
                leaves = [identity(x) if isinstance(x, Tensor) else x for x in flatten(results)]
            return pack_sequence_as(results, leaves)
