"""Clusters that a program knows itself, alone or together."""

from __future__ import annotations

from typing import Any

from laminar.distribute import ClusterSpec


class SimpleClusterResolver:
    """A cluster that is given.

    Args:
        cluster_spec: its tasks, a ClusterSpec or what one is made of.
        master: the address of the task that sessions connect to.
        task_type: the job of this process.
        task_id: its number in the job.
        environment: accepted: what the cluster is.
        num_accelerators: how many each task has, by type.
        rpc_layer: how tasks are reached, "grpc".
    """

    def __init__(
        self,
        cluster_spec: Any,
        master: str = "",
        task_type: str | None = None,
        task_id: int | None = None,
        environment: str = "",
        num_accelerators: Any = None,
        rpc_layer: str | None = None,
    ) -> None:
        given = cluster_spec if isinstance(cluster_spec, ClusterSpec) else ClusterSpec(cluster_spec)
        self._cluster = given
        self._master = master
        self._accelerators = dict(num_accelerators or {})
        self.task_type = task_type
        self.task_id = task_id
        self.environment = environment
        self.rpc_layer = rpc_layer

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the cluster, and their addresses."""
        return self._cluster

    def master(
        self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None
    ) -> str:
        """What a session connects to: a task, or the one that was given."""
        address = self._master
        if task_type is not None and task_id is not None:
            address = self._cluster.task_address(task_type, task_id)
        layer = rpc_layer or self.rpc_layer
        return f"{layer}://{address}" if layer and address else address

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """How many accelerators a task has, by type."""
        return dict(self._accelerators)


class UnionResolver:
    """The tasks of several clusters as those of one; the first says which task this is.

    Args:
        resolvers: of the clusters.
    """

    def __init__(self, *resolvers: Any) -> None:
        if not resolvers:
            raise ValueError("UnionResolver: at least one resolver is needed")
        self._resolvers = resolvers
        self.task_type = resolvers[0].task_type
        self.task_id = resolvers[0].task_id

    def cluster_spec(self) -> ClusterSpec:
        """All tasks: those of one job, whose numbers differ, stand together.

        Raises:
            ValueError: two clusters have one task at different addresses.
        """
        jobs: dict[str, dict[int, str]] = {}
        for resolver in self._resolvers:
            spec = resolver.cluster_spec()
            for job in spec.jobs:
                tasks = jobs.setdefault(job, {})
                addresses = [spec.task_address(job, i) for i in spec.task_indices(job)]
                if not tasks:
                    tasks.update(zip(spec.task_indices(job), addresses, strict=True))
                    continue
                for address in addresses:
                    if address not in tasks.values():
                        tasks[max(tasks) + 1] = address
        return ClusterSpec(jobs)

    def master(self, *args: Any, **kwargs: Any) -> str:
        """What a session connects to, by the first resolver."""
        return str(self._resolvers[0].master(*args, **kwargs))
