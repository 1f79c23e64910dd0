"""A master's session: the graph of one client, and the steps that run on a cluster for it.

It is the session of one process (engine/runtime/direct.py) on a machine whose devices are those of
several tasks.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import Any

from laminar.engine.cancellation import CancellationManager
from laminar.engine.devices import DeviceSet
from laminar.engine.errors import (
    CancelledError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
)
from laminar.engine.graph import Graph, GraphTensor, resource
from laminar.engine.graph.graphdef import GraphDef
from laminar.engine.ops.core.graphs import extend_graph
from laminar.engine.runtime import RunMetadata, RunOptions
from laminar.engine.runtime.direct import DirectSession
from laminar.engine.runtime.partial import DirectPartialStep
from laminar.engine.runtime.targets import Element

from .cluster_plan import ClusterMachine
from .messages import check_nodes, messages
from .peers import LocalCall, call_all

_CLOSE_SECONDS = 5.0


class MasterSession(DirectSession):
    """The session of a client.

    Args:
        machine: the devices of its tasks.
        identity: who made it, and may use it alone.

    Attributes:
        identity: see above.
        tasks: what it uses, by name.
        version: of the graph; a client that extends it says which one it knows.
        heard: when the client was last heard of, in seconds of the monotonic clock.
        partial_steps: the steps that are fed bit by bit, by handle.
    """

    def __init__(self, machine: ClusterMachine, identity: str) -> None:
        super().__init__("", Graph(), machine.config, machine)
        self.identity = identity
        self.tasks = machine.tasks
        self._cluster = machine
        self.version = 0
        self.heard = time.monotonic()
        self.partial_steps: dict[str, DirectPartialStep] = {}
        self._extending = threading.Lock()
        self._handle = machine.handle
        self._lost: LaminarError | None = None

    # The graph

    def extend_with(self, graph: Any, current_version: int, *, replaces: bool) -> int:
        """Add the nodes of a GraphDef message; gives the new version.

        Raises:
            FailedPreconditionError: the client knows another version.
            InvalidArgumentError: a node is there already, or is not well formed.
        """
        with self._extending:
            if current_version != self.version:
                raise FailedPreconditionError(
                    f"the session's graph has version {self.version}, "
                    f"it is to be extended from {current_version}",
                    remedy="make another session: two clients extend this one",
                )
            check_nodes(graph, 0 if replaces else len(self._graph.operations))
            if replaces:
                found = Graph()
                extend_graph(found, GraphDef(graph))
                self._graph = found
            else:
                extend_graph(self._graph, GraphDef(graph))
            self.version += 1
            return self.version

    def elements(self, names: Sequence[str]) -> list[Element]:
        """The tensors ("node:1") and operations ("node") of these names."""
        return [_element(self._graph, name) for name in names]

    def feeds(self, names: Sequence[str]) -> list[GraphTensor]:
        """The tensors of these names, each of which is fed once."""
        if len(set(names)) < len(names):
            twice = next(n for n in names if list(names).count(n) > 1)
            raise InvalidArgumentError(f"{twice} is fed twice")
        found = self.elements(names)
        for element in found:
            if not isinstance(element, GraphTensor):
                raise InvalidArgumentError(f"an operation cannot be fed: {element.name!r}")
        return found  # type: ignore[return-value]  # that was checked

    # Steps

    def compute(
        self,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
        options: RunOptions | None = None,
        metadata: RunMetadata | None = None,
    ) -> Sequence[Any]:
        """One step: what its plan gives for the tensors among `elements`."""
        if self._lost is not None:
            raise self._lost
        for element in elements:
            if isinstance(element, GraphTensor) and element.dtype == resource:
                raise InvalidArgumentError(
                    f"{element.name} is a handle, which does not leave its task",
                    remedy="fetch what is read from it",
                )
        return super().compute(elements, feeds, values, options, metadata)

    def partial_values(
        self, elements: Sequence[Element], feeds: Sequence[GraphTensor]
    ) -> DirectPartialStep:
        """Begin a step that is fed and fetched bit by bit."""
        return DirectPartialStep(
            self._machine, self._context, elements, feeds, (), (), lambda _, value: value
        )

    # Its end

    @property
    def is_local(self) -> bool:
        """Whether its client is in this process."""
        return self.identity == LocalCall.identity

    @property
    def machine(self) -> ClusterMachine:
        """Makes its plans."""
        return self._cluster

    @property
    def is_lost(self) -> bool:
        """Whether a task has lost what it had for the session, or it was closed."""
        return self._lost is not None

    @property
    def devices(self) -> DeviceSet:
        """The devices of all its tasks."""
        return self._machine.devices

    def interrupt(self, error: LaminarError) -> None:
        """Cancel the steps that run now."""
        before, self._context.cancellation = self._context.cancellation, CancellationManager()
        before.cancel(error)

    def lose(self, error: LaminarError) -> None:
        """A task has lost what it had for the session: nothing can run any more."""
        self._lost = error
        self.interrupt(error)

    def close(self) -> None:
        """Cancel what runs, and have the workers forget the session."""
        self._lost = self._lost or CancelledError("the session was closed")
        super().close()
        self.partial_steps.clear()
        call_all(
            {name: task.peer for name, task in self.tasks.items()},
            "DeleteWorkerSession",
            lambda _: messages().DeleteWorkerSessionRequest(session_handle=self._handle),
            timeout_seconds=_CLOSE_SECONDS,
        )


def _element(graph: Graph, name: str) -> Element:
    """The tensor ("node:1") or operation ("node") of a name."""
    return graph.get_tensor_by_name(name) if ":" in name else graph.get_operation_by_name(name)
