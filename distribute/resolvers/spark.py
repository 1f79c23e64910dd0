"""Tasks of a barrier stage of Spark: `rdd.barrier().mapPartitions(train)`."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import FailedPreconditionError

from ..cluster_spec import ClusterSpec
from .mpi import free_port
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of


class SparkResolver(EnvironmentResolver):
    """The tasks of a barrier stage, one for each partition; they tell each other their addresses.

    All of them make one, and call `refresh`, together.

    Args:
        jobs: how many tasks each job has, in the order of partitions; None for workers alone.
        port: that of each task, 0 for one that is free now.

    Raises:
        FailedPreconditionError: PySpark is missing, or this is no task of a barrier stage.
    """

    def __init__(self, jobs: Mapping[str, int] | None = None, port: int = 0) -> None:
        self._jobs = jobs
        self._port = port
        super().__init__({})

    def _read(self) -> None:
        context = _context()
        host = socket.gethostbyname(socket.gethostname())
        found = context.allGather(address(host, self._port or free_port(host)))
        self.restarts = int(context.attemptNumber())
        self.task_type, self.task_id = task_of(context.partitionId(), self._jobs)
        self._cluster = ClusterSpec(split_into_jobs(list(found), self._jobs))


def _context() -> Any:
    try:
        from pyspark import BarrierTaskContext
    except ImportError as cause:
        raise FailedPreconditionError(
            f"SparkResolver needs PySpark: {cause}", remedy="pip install pyspark"
        ) from cause
    context = BarrierTaskContext.get()
    if context is None:
        raise FailedPreconditionError(
            "SparkResolver: this is no task of a barrier stage",
            remedy="rdd.barrier().mapPartitions(train).collect()",
        )
    return context
