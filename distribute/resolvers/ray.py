"""Processes of Ray: tasks, actors, or the workers of Ray Train."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from laminar.engine.errors import DeadlineExceededError, FailedPreconditionError

from ..cluster_spec import ClusterSpec
from .mpi import free_port
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of

_PAUSE_SECONDS: Final = 0.05


def _ray() -> Any:
    try:
        import ray
    except ImportError as cause:
        raise FailedPreconditionError(
            f"RayResolver needs Ray: {cause}", remedy="pip install ray"
        ) from cause
    return ray


class _Addresses:
    """What an actor keeps: of each task its address, and which start of it that is."""

    def __init__(self) -> None:
        self._found: dict[int, str] = {}

    def put(self, rank: int, where: str) -> None:
        self._found[rank] = where

    def all(self) -> dict[int, str]:
        return self._found


class RayResolver(EnvironmentResolver):
    """Tasks of Ray that tell each other their addresses, by an actor that they share.

    All of them make one with the same name. Inside of Ray Train rank and size are those of its
    workers: `RayResolver(*RayResolver.place())`.

    Args:
        rank: the number of this process, from 0.
        size: how many there are.
        name: of the cluster, unique in the Ray cluster.
        jobs: how many tasks each job has, in the order of ranks; None for workers alone.
        port: that of this task, 0 for one that is free now.
        timeout_seconds: how long to wait for the others.

    Raises:
        FailedPreconditionError: Ray is missing, or has not been started.
        DeadlineExceededError: the others did not come.
    """

    def __init__(
        self,
        rank: int,
        size: int,
        name: str = "laminar",
        jobs: Mapping[str, int] | None = None,
        port: int = 0,
        timeout_seconds: float = 60.0,
    ) -> None:
        self._rank = rank
        self._size = size
        self._name = name
        self._jobs = jobs
        self._port = port
        self._timeout_seconds = timeout_seconds
        super().__init__({})

    @staticmethod
    def place() -> tuple[int, int]:
        """The rank and the size of the group of workers of Ray Train that this process is in."""
        _ray()
        from ray import train

        context = train.get_context()
        return context.get_world_rank(), context.get_world_size()

    def _read(self) -> None:
        ray = _ray()
        if not ray.is_initialized():
            raise FailedPreconditionError(
                "RayResolver: this process does not belong to a Ray cluster",
                remedy="make it inside of a task of Ray, or call ray.init() first",
            )
        actor = (
            ray.remote(_Addresses)
            .options(name=f"{self._name}/addresses", get_if_exists=True, num_cpus=0)
            .remote()
        )
        host = ray.util.get_node_ip_address()
        port = self._port or free_port(socket.gethostbyname(host))
        ray.get(actor.put.remote(self._rank, address(host, port)))
        end = time.monotonic() + self._timeout_seconds
        while len(found := ray.get(actor.all.remote())) < self._size:
            if time.monotonic() > end:
                missing = sorted(set(range(self._size)) - found.keys())
                raise DeadlineExceededError(
                    f"RayResolver: tasks {missing} of {self._name!r} have not come in "
                    f"{self._timeout_seconds:g} s",
                    remedy="see that the Ray cluster has room for all of them at once",
                )
            time.sleep(_PAUSE_SECONDS)
        self._actor = actor  # it lives as long as somebody holds it
        self.task_type, self.task_id = task_of(self._rank, self._jobs)
        addresses = [found[i] for i in range(self._size)]
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))
