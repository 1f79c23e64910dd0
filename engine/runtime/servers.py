"""Servers of a cluster's tasks: one factory for each protocol that they speak.

What speaks a protocol registers itself here, and beside it, with `register_session_target`, the
scheme of the targets that lead to its servers. "grpc" is `laminar.distribute`'s, which is loaded
when it is asked for. `_protocols[name]` is guarded by `_lock`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from .. import forks
from ..errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
)
from ..late import later
from .config import SessionConfig


@dataclass(frozen=True)
class ServerDef:
    """Which task of which cluster a server is.

    Attributes:
        cluster: by the name of a job, the addresses "host:port" of its tasks: a list, or by index.
        job_name: the server's job.
        task_index: which of its tasks.
        protocol: what servers and clients speak.
        config: of the sessions that do not bring their own.
        settings: what servers of the protocol take besides.
    """

    cluster: Mapping[str, Sequence[str] | Mapping[int, str]]
    job_name: str
    task_index: int
    protocol: str
    config: SessionConfig | None = None
    settings: Any = None


class Server(Protocol):
    """One that serves; it has a place from the beginning, and answers when it is started."""

    @property
    def target(self) -> str:
        """What `Session` takes to run there."""

    def start(self) -> None:
        """Begin to answer."""

    def join(self) -> None:
        """Wait until it has been stopped."""

    def stop(self) -> None:
        """Answer no more."""


_lock = forks.lock()
_protocols: dict[str, Callable[[ServerDef], Server]] = {
    "grpc": later("laminar.distribute.cluster.grpc_server", "GrpcServer")
}


def register_server_protocol(
    protocol: str, factory: Callable[[ServerDef], Server], *, replace: bool = False
) -> None:
    """Have `make_server` make servers that speak a protocol.

    Args:
        protocol: its name.
        factory: makes a server for a definition that has been checked.
        replace: whether it takes the place of another one.

    Raises:
        AlreadyExistsError: the protocol is registered, and not to be replaced.
        InvalidArgumentError: it has no name.

    Examples:
        >>> engine.register_server_protocol("doc", lambda definition, config, start: None)
    """
    if not isinstance(protocol, str) or not protocol.strip():
        raise InvalidArgumentError(f"a server protocol has a name, got {protocol!r}")
    with _lock:
        if protocol in _protocols and not replace:
            raise AlreadyExistsError(
                f"servers have a protocol {protocol!r} already",
                remedy="say replace=True to put another in its place",
            )
        _protocols[protocol] = factory


def make_server(definition: ServerDef) -> Server:
    """The server of a task, not started.

    Raises:
        InvalidArgumentError: the cluster has no such task.
        NotFoundError: nobody has registered the protocol.
        InternalError: it could not be made.
    """
    tasks = definition.cluster.get(definition.job_name)
    indices = tasks if isinstance(tasks, Mapping) else range(len(tasks or ()))
    if definition.task_index not in indices:
        known = ", ".join(f"{job} ({len(tasks)})" for job, tasks in definition.cluster.items())
        raise InvalidArgumentError(
            f"the cluster has no task {definition.task_index} of job {definition.job_name!r}; "
            f"its jobs, with the number of their tasks: {known or 'none'}"
        )
    factory = _protocols.get(definition.protocol)
    if factory is None:
        raise NotFoundError(
            f"no server speaks the protocol {definition.protocol!r}",
            remedy=f"there are {', '.join(sorted(_protocols)) or 'none'}: import what brings it, "
            f"which calls register_server_protocol",
        )
    try:
        return factory(definition)
    except LaminarError:
        raise
    except Exception as cause:
        raise InternalError(
            f"no server could be made for {definition.job_name}:{definition.task_index}: {cause}"
        ) from cause
