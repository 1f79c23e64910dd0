"""Whether the tasks of a cluster are those that a program takes them for.

A name is an address to whoever has the same cluster. Where a program and a task have not, steps
would run, and variables live, elsewhere than the program says, or in a training of somebody else.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from laminar.engine import Graph, Session, SessionConfig
from laminar.engine.errors import InvalidArgumentError

from .cluster.messages import messages
from .cluster.peers import RemotePeer
from .cluster_spec import ClusterSpec
from .wire import Channels

_ANSWER_SECONDS: Final = 30.0


def check_tasks(spec: ClusterSpec, config: SessionConfig) -> None:
    """See that workers and servers have the names, and know the servers, that the cluster says.

    Args:
        spec: its tasks answer.
        config: of the sessions with it.

    Raises:
        InvalidArgumentError: a task is another one, or knows another one by a name.
    """
    lives: dict[str, int] = {}
    channels = Channels(config.credentials, has_links=False)
    try:
        for job in ("ps", "worker"):
            for task in spec.task_indices(job):
                name, address = f"/job:{job}/task:{task}", spec.task_address(job, task)
                peer = RemotePeer(channels, address, "laminar.WorkerService")
                request = messages().GetStatusRequest()
                status = peer.call("GetStatus", request, timeout_seconds=_ANSWER_SECONDS).message
                if status.task != name:
                    raise _differs(f"{name} is to be at {address}, where {status.task} is")
                lives |= {device.name: device.incarnation for device in status.device}
    finally:
        channels.close()
    for task in spec.task_indices("worker"):
        where = spec.task_address("worker", task)
        own = replace(config, device_filters=["/job:ps", f"/job:worker/task:{task}"])
        with Graph().as_default(), Session(f"grpc://{where}", config=own) as session:
            seen = {device.name: device.incarnation for device in session.list_devices()}
        for name, life in lives.items():
            if "/job:ps/" in name and seen.get(name) != life:
                knows = "takes another process for" if name in seen else "knows of no"
                raise _differs(f"/job:worker/task:{task} at {where} {knows} {name}")


def _differs(what: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"ParameterServer: the cluster of this program is not that of its tasks: {what}",
        remedy="give the same cluster to all of them, each its own job and task",
    )
