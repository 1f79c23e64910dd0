"""Processes that torchrun started: RANK, WORLD_SIZE, MASTER_ADDR and their like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from laminar.engine.errors import InvalidArgumentError

from ..cluster_spec import ClusterSpec
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of


class TorchrunResolver(EnvironmentResolver):
    """The processes of torchrun, each at a port of its host.

    torchrun tells a process the address of the first host alone: with several, name them all.

    Args:
        hosts: all hosts, in the order of GROUP_RANK; None for one, that of MASTER_ADDR.
        jobs: how many tasks each job has, in the order of ranks; None for workers alone.
        port: of the first process on a host, the others have those after it; by default the one
            after MASTER_PORT, which is torchrun's own.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: torchrun has not started this process.
        InvalidArgumentError: there are several hosts, and they are not named.
    """

    def __init__(
        self,
        hosts: Sequence[str] | None = None,
        jobs: Mapping[str, int] | None = None,
        port: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._hosts = hosts
        self._jobs = jobs
        self._port = port
        super().__init__(environ)

    def _read(self) -> None:
        rank, count = self._number("RANK"), self._number("WORLD_SIZE")
        beside = self._number("LOCAL_WORLD_SIZE", count)
        hosts = [self._text("MASTER_ADDR")] if self._hosts is None else list(self._hosts)
        if len(hosts) * beside != count or rank >= count:
            raise InvalidArgumentError(
                f"TorchrunResolver: {count} processes, {beside} on each host, do not fit to the "
                f"hosts {', '.join(hosts)}",
                remedy="name the hosts: TorchrunResolver(hosts=['node0', 'node1'])",
            )
        port = self._number("MASTER_PORT") + 1 if self._port is None else self._port
        addresses = [address(host, port + k) for host in hosts for k in range(beside)]
        self.restarts = self._number("TORCHELASTIC_RESTART_COUNT", 0)
        self.task_type, self.task_id = task_of(rank, self._jobs)
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))
