"""The tasks of a Slurm step: what `srun` started."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from laminar.engine.errors import InvalidArgumentError

from ..cluster_spec import ClusterSpec
from .host_list import counts_of, hosts_of
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of


class SlurmResolver(EnvironmentResolver):
    """The tasks of a step, each at a port of its host.

    Ranks are dealt out by hosts, as `srun --distribution=block` does, which is Slurm's default for
    more than one task on a host.

    Args:
        jobs: how many tasks each job has, in the order of ranks; None for workers alone.
        port: of the first task on a host, the others have those after it.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: Slurm has not started this process.
        InvalidArgumentError: its variables do not fit together, or the jobs do not fit the tasks.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port: int = 8888,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._jobs = jobs
        self._port = port
        super().__init__(environ)

    def _read(self) -> None:
        rank, count = self._number("SLURM_PROCID"), self._number("SLURM_NTASKS")
        hosts = hosts_of(self._text(self._first("SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")))
        sizes = counts_of(
            self._text(self._first("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"))
        )
        if len(sizes) != len(hosts) or sum(sizes) != count or rank >= count:
            raise InvalidArgumentError(
                f"SlurmResolver: task {rank} of {count} does not fit to {sizes} tasks on "
                f"{len(hosts)} hosts",
                remedy="run it as a step: srun python train.py",
            )
        addresses = [
            address(host, self._port + k)
            for host, size in zip(hosts, sizes, strict=True)
            for k in range(size)
        ]
        begins = [sum(sizes[:i]) for i in range(len(sizes) + 1)]
        local = next(rank - begin for begin, end in pairwise(begins) if begin <= rank < end)
        if self._number("SLURM_LOCALID", local) != local:
            raise InvalidArgumentError(
                f"SlurmResolver: task {rank} is number {self._text('SLURM_LOCALID')} on its host, "
                f"expected {local}: tasks are not dealt out by hosts",
                remedy="srun --distribution=block",
            )
        self.restarts = self._number("SLURM_RESTART_COUNT", 0)
        self.task_type, self.task_id = task_of(rank, self._jobs)
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))

    def _first(self, *names: str) -> str:
        """That of the variables that is there, or else the first."""
        return next((name for name in names if name in self._environ), names[0])
