"""tf.train.Server and the messages that it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from laminar import distribute
from laminar.distribute.proto import cluster_pb2

_messages: Any = cluster_pb2
ClusterDef = _messages.ClusterDef
JobDef = _messages.JobDef


@dataclass
class ServerDef:
    """Which task of which cluster a server is.

    Attributes:
        cluster: the jobs and their tasks: a ClusterDef, or what a ClusterSpec is made of.
        job_name: the server's job; None where there is one.
        task_index: which of its tasks; None where there is one.
        default_session_config: of the sessions that do not bring their own.
        protocol: what servers and clients speak.
    """

    cluster: Any
    job_name: str | None = None
    task_index: int | None = None
    default_session_config: Any = None
    protocol: str = "grpc"


class Server(distribute.Server):
    """The server of a task; see `laminar.distribute.Server`."""

    def __init__(
        self,
        server_or_cluster_def: Any,
        job_name: str | None = None,
        task_index: int | None = None,
        protocol: str | None = None,
        config: Any = None,
        start: bool = True,
    ) -> None:
        given = server_or_cluster_def
        if not isinstance(given, ServerDef):
            given = ServerDef(given)
        config = given.default_session_config if config is None else config
        super().__init__(
            given.cluster,
            given.job_name if job_name is None else job_name,
            given.task_index if task_index is None else task_index,
            protocol or given.protocol,
            config.session_config() if hasattr(config, "session_config") else config,
            start,
        )

    @staticmethod
    def create_local_server(config: Any = None, start: bool = True) -> Server:
        """A cluster of one task in this process, on a free port."""
        return Server({"local": ["localhost:0"]}, config=config, start=start)
