"""How the objects that stand for resources (queues, readers, tables, ...) get their handles."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..graph import EagerTensor, GraphTensor, Tensor, building, eager_scope
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.core.op_def import OpDef
from .home import home_of_state, outside_of_bodies


class Handle:
    """Something that a session's container, or the Python object itself, keeps.

    In a plain graph each session has its own, in a container, under a name; graphs that use one
    name in one named container share it. Outside of graphs, and in a function that is being
    traced, it is made at once and lives as long as this object.

    Args:
        op: makes the handle.
        attrs: its attributes besides the names.
        name: of the operation, and of the object.
        shared_name: the name in the container; by default the name of the operation.
        container: which container; by default that of the graph's container scope.
    """

    def __init__(
        self,
        op: OpDef,
        attrs: Mapping[str, Any],
        name: str,
        shared_name: str | None = None,
        container: str | None = None,
    ) -> None:
        graph = home_of_state()
        self.handle: Tensor
        self.container = ""
        if graph is None:
            self.name = self.shared_name = shared_name or name
            full = {**attrs, "container": "", "shared_name": self.name}
            with eager_scope():
                (self.handle,) = apply(op, (), full)
            assert isinstance(self.handle, EagerTensor)
            self.handle.value.owner = weakref.ref(self)
            return
        with outside_of_bodies(graph), graph.name_scope(name) as scope:
            self.name = scope[:-1]
            self.container = graph.scopes.container if container is None else container
            self.shared_name = shared_name or self.name
            full = {**attrs, "container": self.container, "shared_name": self.shared_name}
            with graph.name_scope(None):
                self.handle = graph.add(op, (), full, name=scope).outputs[0]

    def beside(self) -> AbstractContextManager[Any]:
        """A block whose operations are placed where the resource is."""
        if isinstance(self.handle, GraphTensor) and building() in (None, self.handle.graph):
            return self.handle.graph.colocate_with(self.handle)
        return nullcontext()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name!r}>"


def as_list(values: Any) -> list[Any]:
    """A list or tuple as a list, anything else as the one item of a list."""
    return list(values) if isinstance(values, list | tuple) else [values]


def as_tensor(value: Any, dtype: Any) -> Tensor:
    """A tensor as it is, anything else as a tensor of `dtype`: what is a tensor is never cast."""
    return value if isinstance(value, Tensor) else convert_to_tensor(value, dtype)
