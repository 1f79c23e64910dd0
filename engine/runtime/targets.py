"""What a session's target stands for: one engine for each scheme.

`Session("")` runs in this process. `Session("scheme://place")` runs on what was registered for the
scheme; `Session` itself is the same for all: names, feeds, defaults and structures are its work, an
engine runs steps. `_targets[scheme]` is guarded by `_lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import forks
from ..devices import DeviceList, MemoryStats
from ..errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
)
from ..graph import Graph, GraphTensor, Operation
from .config import SessionConfig
from .cost import Cost
from .options import RunMetadata, RunOptions
from .placement import Placement

Element = GraphTensor | Operation


class PartialStep(Protocol):
    """A step whose feeds come, and whose fetches go, bit by bit."""

    def run(
        self, elements: Sequence[Element], feeds: Sequence[GraphTensor], values: Sequence[Any]
    ) -> list[Any]:
        """Give it some feeds, wait for some fetches; None for an operation."""


class SessionEngine(Protocol):
    """What runs the steps of a session. Several threads call it."""

    def extend(self, operations: Sequence[Operation]) -> None:
        """Take operations that are new since the last call, before any run that needs them."""

    def run(
        self,
        elements: Sequence[Element],
        feeds: Sequence[GraphTensor],
        values: Sequence[Any],
        options: RunOptions | None,
        metadata: RunMetadata | None,
    ) -> list[Any]:
        """One step: the values of `elements`, None for an operation."""

    def partial(self, elements: Sequence[Element], feeds: Sequence[GraphTensor]) -> PartialStep:
        """Begin a step that is fed and fetched bit by bit."""

    @property
    def placement(self) -> Placement | None:
        """Where the operations of the last new signature are; None where nobody knows."""

    def list_devices(self) -> DeviceList:
        """The devices there are."""

    def memory_stats(self) -> dict[str, MemoryStats]:
        """By the name of each device whose memory is counted, what it holds; its peak ends."""

    def cost(self, op: Operation, device: str) -> Cost:
        """What an operation costs on a device."""

    def close(self) -> None:
        """Cancel what runs, free what is kept."""


EngineFactory = Callable[[str, Graph, SessionConfig], SessionEngine]
Reset = Callable[[str, Sequence[str] | None], None]


@dataclass(frozen=True)
class _Target:
    factory: EngineFactory
    reset: Reset | None


_lock = forks.lock()
_targets: dict[str, _Target] = {}


def register_session_target(
    scheme: str, factory: EngineFactory, reset: Reset | None = None
) -> None:
    """Have `Session("scheme://...")` run on what `factory` makes.

    Args:
        scheme: letters, digits, "+" and "-"; "" is this process.
        factory: called with the whole target, the graph and the config; gives the engine.
        reset: called with the target and names of containers by `Session.reset`.

    Raises:
        AlreadyExistsError: the scheme is registered.
        InvalidArgumentError: it is no scheme.

    Examples:
        >>> engine.register_session_target("doc", lambda target, graph, config: None)
    """
    if scheme and not scheme.replace("+", "").replace("-", "").isalnum():
        raise InvalidArgumentError(
            f"{scheme!r} is not a scheme", remedy='write what stands before "://"'
        )
    with _lock:
        if scheme in _targets:
            raise AlreadyExistsError(f"sessions have a target {scheme + '://'!r} already")
        _targets[scheme] = _Target(factory, reset)


def make_engine(target: str, graph: Graph, config: SessionConfig) -> SessionEngine:
    """The engine of a target.

    Raises:
        NotFoundError: nothing serves it.
        InternalError: it could not be made.
    """
    found = _find(target)
    try:
        return found.factory(target, graph, config)
    except LaminarError:
        raise
    except Exception as cause:
        raise InternalError(f"no session could be made for {target!r}: {cause}") from cause


def reset_target(target: str, containers: Sequence[str] | None) -> None:
    """Empty the shared containers of a target.

    Raises:
        NotFoundError: nothing serves it, or what does has no containers.
    """
    reset = _find(target).reset
    if reset is None:
        raise NotFoundError(f"the target {target!r} has no containers to reset")
    reset(target, containers)


def _find(target: str) -> _Target:
    scheme, _, _ = target.partition("://") if "://" in target or not target else ("?", "", "")
    found = _targets.get(scheme)
    if found is None:
        known = ", ".join(f'"{s}://..."' for s in sorted(_targets) if s)
        raise NotFoundError(
            f"no session serves the target {target!r}",
            remedy=f'use "" for this process{" or " if known else ""}{known}',
        )
    return found
