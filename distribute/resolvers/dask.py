"""Workers of Dask: a function that runs on each of them.

def train(workers, dask_worker):  # Dask gives it the worker that it runs on
    resolver = DaskResolver(workers, dask_worker.address)

client.run(train, sorted(client.scheduler_info()["workers"]))
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from laminar.engine.errors import FailedPreconditionError

from ..cluster_spec import ClusterSpec
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of


class DaskResolver(EnvironmentResolver):
    """The workers of a Dask cluster, numbered in the order of their addresses.

    Args:
        workers: the addresses of Dask's workers: `sorted(client.scheduler_info()["workers"])`; the
            client knows them, a worker does not.
        own: which of them this is; by default the one that runs this task.
        jobs: how many tasks each job has, in that order; None for workers alone.
        port: of the first task, the others have those after it, also on other hosts.

    Raises:
        FailedPreconditionError: Dask is missing, or this is none of these workers.
    """

    def __init__(
        self,
        workers: list[str],
        own: str | None = None,
        jobs: Mapping[str, int] | None = None,
        port: int = 8888,
    ) -> None:
        self._workers = list(workers)
        self._own = own
        self._jobs = jobs
        self._port = port
        super().__init__({})

    def _read(self) -> None:
        own = _own_address() if self._own is None else self._own
        if own not in self._workers:
            raise FailedPreconditionError(
                f"DaskResolver: this worker, {own}, is none of {', '.join(self._workers)}",
                remedy="give all of them: sorted(client.scheduler_info()['workers'])",
            )
        addresses = [
            address(urlsplit(where).hostname or "localhost", self._port + i)
            for i, where in enumerate(self._workers)
        ]
        self.task_type, self.task_id = task_of(self._workers.index(own), self._jobs)
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))


def _own_address() -> Any:
    try:
        from distributed import get_worker

        return get_worker().address
    except ImportError as cause:
        raise FailedPreconditionError(
            f"DaskResolver needs dask.distributed: {cause}", remedy="pip install distributed"
        ) from cause
    except ValueError as cause:
        raise FailedPreconditionError(
            "DaskResolver: this is no task of a Dask worker",
            remedy="give own=dask_worker.address, which client.run(train) passes to train",
        ) from cause
