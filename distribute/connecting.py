"""Functions and eager code on the devices of a cluster."""

from __future__ import annotations

from typing import Any

from laminar.engine.errors import AlreadyExistsError, InvalidArgumentError

from .cluster.connection import Connection, connect
from .cluster.grpc_server import GrpcServer
from .cluster_spec import ClusterSpec
from .servers import Server


def connect_to_cluster(
    cluster: Any, job_name: str = "client", *, address: str = "localhost:0", **options: Any
) -> Connection:
    """Let functions and eager code of this process use the devices of a cluster.

    From then on `with laminar.device("/job:worker/task:1")` names a device there: in a function,
    what is traced inside runs there, and what its operations exchange with others goes from task to
    task; outside of functions each op is sent there and its result comes back. Variables stay in
    this process, and what uses one runs here. A task that was restarted ends the call that needs
    it with an error; the next call finds it again.

    Args:
        cluster: what a ClusterSpec is made of; its tasks have servers. Or the Server of this
            process, if it is one of them.
        job_name: what this process is called in the cluster.
        address: where the tasks reach this process.
        options: credentials and what else a `Server` takes.

    Returns:
        The connection; functions run in this process alone again after its `close`, or after a
        `with` block of it. Its `list_devices()` tells which devices can be named.

    Raises:
        AlreadyExistsError: the process is connected, or the cluster has a job of that name.
        UnavailableError: a task does not answer.

    Examples:
        >>> from laminar.distribute import Server, connect_to_cluster
        >>> with Server({"worker": ["localhost:0"]}) as server:
        ...     address = server.target.removeprefix("grpc://")
        ...     with connect_to_cluster({"worker": [address]}):
        ...         with engine.device("/job:worker/task:0"):
        ...             y = ops.ones((2,)) * 3
        >>> y.numpy()
        array([3., 3.], dtype=float32)
    """
    if isinstance(cluster, Server):
        server = cluster
    else:
        spec = ClusterSpec(cluster)
        if job_name in spec.jobs:
            raise AlreadyExistsError(
                f"the cluster has a job {job_name!r}",
                remedy="call this process otherwise, with job_name=, or give its Server",
            )
        server = Server({**spec.as_dict(), job_name: [address]}, job_name, 0, **options)
    try:
        if not isinstance(server.made, GrpcServer):
            raise InvalidArgumentError(f"functions run on servers of gRPC, not on {server.made!r}")
        return connect(server.made, owns_server=server is not cluster)
    except BaseException:
        if server is not cluster:
            server.stop()
        raise
