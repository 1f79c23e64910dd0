"""Processes that mpirun, mpiexec or srun --mpi started."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import NamedTuple

from laminar.engine.errors import NotFoundError

from ..cluster_spec import ClusterSpec
from ..collectives import mpi
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of

# Rank, size, and the same among the processes of one machine: Open MPI, MPICH and Intel MPI.
_NAMES = (
    (
        "OMPI_COMM_WORLD_RANK",
        "OMPI_COMM_WORLD_SIZE",
        "OMPI_COMM_WORLD_LOCAL_RANK",
        "OMPI_COMM_WORLD_LOCAL_SIZE",
    ),
    ("PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"),
)


class MPIPlace(NamedTuple):
    """Where a process stands among those that were started together."""

    rank: int
    size: int
    local_rank: int
    local_size: int


def mpi_place(environ: Mapping[str, str]) -> MPIPlace | None:
    """What the environment says of this process; None if no MPI has started it."""
    for names in _NAMES:
        if names[0] in environ and names[1] in environ:
            rank, size = int(environ[names[0]]), int(environ[names[1]])
            local_rank = int(environ.get(names[2], rank))
            return MPIPlace(rank, size, local_rank, int(environ.get(names[3], size)))
    return None


class MPIResolver(EnvironmentResolver):
    """The processes of an MPI program, each a task; they tell each other their addresses.

    All of them make one, and call `refresh`, together.

    Args:
        jobs: how many tasks each job has, in the order of ranks, as {"ps": 1, "worker": 3}; None
            for workers alone.
        port: where the first task of a machine is to serve, the others on those after it; 0 for
            ports that are free now.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: no MPI has started this process.
        FailedPreconditionError: mpi4py is missing.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port: int = 0,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._jobs = jobs
        self._port = port
        super().__init__(environ)

    def _read(self) -> None:
        place = mpi_place(self._environ)
        if place is None:
            raise NotFoundError(
                "MPIResolver: this process was not started by mpirun",
                remedy="mpirun -n 4 python train.py",
            )
        self.task_type, self.task_id = task_of(place.rank, self._jobs)
        is_one_machine = place.local_size == place.size
        host = "127.0.0.1" if is_one_machine else socket.gethostname()
        port = self._port + place.local_rank if self._port else free_port(host)
        found = mpi.world().gather(address(host, port).encode())
        self._cluster = ClusterSpec(split_into_jobs([a.decode() for a in found], self._jobs))


def free_port(host: str) -> int:
    """A port of this machine that nobody uses now."""
    with socket.socket() as server:
        server.bind((host, 0))
        port: int = server.getsockname()[1]
        return port
