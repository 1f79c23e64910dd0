"""Server: a task of a cluster, in this process."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.runtime import ServerDef, SessionConfig, make_server

from .cluster.grpc_server import Settings
from .cluster_spec import ClusterSpec
from .wire import Keepalive

if TYPE_CHECKING:
    from .wire import Credentials, Limits


class Server:
    """A task of a cluster in this process: others reach its devices, and it leads sessions.

    Each process of a cluster has one, with the same cluster and another task. A session on any of
    them, `Session(server.target)`, uses the devices of all. The port is taken at once; requests
    are answered from `start` on.

    Short messages between tasks go along sockets of TCP, within TLS where there are credentials, at
    a second port that is free at the same address. Where a firewall lets only the first one
    through, all goes over gRPC, and a step takes about twice as long.

    Args:
        cluster: a ClusterSpec, or what one is made of; or the `server_def` of another server.
        job_name: the server's job; may be left out where there is one job.
        task_index: which of its tasks; may be left out where there is one.
        protocol: what it speaks.
        config: of sessions that do not bring their own; its `device_count` and
            `memory_limit_bytes` say which devices the server has.
        start: whether it starts at once.
        credentials: by which the servers and clients of the cluster know each other. Without them
            it serves this machine alone.
        allow_insecure_network: whether other machines may reach it without credentials. Who reaches
            a server can run any graph on it.
        lease_seconds: a session of whose client, or master, nothing is heard for so long is closed.
        limits: what it takes on at a time.
        roots: folders in which graphs may read and write files, such as checkpoints; none: nowhere.
        keepalive: how soon it is noticed that another task, or a client, is cut off; None for pings
            each 10 s that are to be answered in 5 s.

    Attributes:
        server_def: which task of which cluster it is; the cluster has the port that it took where
            any was asked for.
        made: what speaks the protocol.

    Raises:
        InvalidArgumentError: the cluster has no such task, or its address is not of this machine.
        AlreadyExistsError: another program listens at the address.
        PermissionDeniedError: other machines can reach the address, and there are no credentials.
        NotFoundError: nobody speaks the protocol.

    Examples:
        >>> with laminar.distribute.Server({"worker": ["localhost:0"]}) as server:
        ...     with engine.Graph().as_default(), engine.Session(server.target) as session:
        ...         session.run(engine.constant(2.0) * 3)
        np.float32(6.0)
    """

    def __init__(
        self,
        cluster: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str = "grpc",
        config: SessionConfig | None = None,
        start: bool = True,
        *,
        credentials: Credentials | None = None,
        allow_insecure_network: bool = False,
        lease_seconds: float = 60.0,
        limits: Limits | None = None,
        roots: Sequence[str | os.PathLike[str]] = (),
        keepalive: Keepalive | None = None,
    ) -> None:
        if isinstance(cluster, ServerDef):
            definition = cluster
        else:
            spec = ClusterSpec(cluster)
            job = _only("job", spec.jobs) if job_name is None else job_name
            if task_index is None:
                task_index = _only(f"task of job {job!r}", spec.task_indices(job))
            settings = Settings(
                credentials,
                allow_insecure_network,
                lease_seconds,
                limits,
                roots,
                Keepalive() if keepalive is None else keepalive,
            )
            definition = ServerDef(spec.as_dict(), job, task_index, protocol, config, settings)
        self.made = make_server(definition)
        self.server_def = _with_its_port(definition, self.made.target)
        if start:
            self.start()

    @staticmethod
    def create_local_server(config: SessionConfig | None = None, start: bool = True) -> Server:
        """A cluster of one task in this process, on a free port."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)

    @property
    def target(self) -> str:
        """What `Session` takes to run there: "grpc://host:port"."""
        return self.made.target

    def start(self) -> None:
        """Begin to answer; does nothing when it has begun.

        Raises:
            FailedPreconditionError: it was stopped.
        """
        self.made.start()

    def join(self) -> None:
        """Wait until it has been stopped; one that was never started is stopped."""
        self.made.join()

    def stop(self) -> None:
        """Answer no more, cancel what runs, and give up the port; does nothing the second time."""
        self.made.stop()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        definition = self.server_def
        return f"<server of /job:{definition.job_name}/task:{definition.task_index}, {self.target}>"


def _only(what: str, found: list[Any]) -> Any:
    if len(found) != 1:
        raise InvalidArgumentError(
            f"Server: say which {what} it is, there are {', '.join(map(str, found)) or 'none'}",
            remedy='Server(cluster, job_name="worker", task_index=0)',
        )
    return found[0]


def _with_its_port(definition: ServerDef, target: str) -> ServerDef:
    """A definition by which others find the server, where it was to take any free port."""
    spec = ClusterSpec(definition.cluster)
    job, index = definition.job_name, definition.task_index
    asked, port = spec.task_address(job, index), target.rpartition(":")[2]
    if not asked.endswith(":0") or not port.isdecimal():
        return definition
    jobs = {
        name: {i: spec.task_address(name, i) for i in spec.task_indices(name)} for name in spec.jobs
    }
    jobs[job][index] = f"{asked.rpartition(':')[0]}:{port}"
    return dataclasses.replace(definition, cluster=ClusterSpec(jobs).as_dict())
