"""The pods of an indexed Job of Kubernetes, and of Kubeflow's Trainer."""

from __future__ import annotations

import re
from collections.abc import Mapping

from laminar.engine.errors import InvalidArgumentError

from ..cluster_spec import ClusterSpec
from .resolver import EnvironmentResolver, address, split_into_jobs, task_of


class KubernetesResolver(EnvironmentResolver):
    """The pods of an indexed Job: `completionMode: Indexed`, with a headless service.

    Pod i of a Job "train" whose pods have `subdomain: workers` is found as "train-i.workers". The
    name of the Job is that of this pod (the variable HOSTNAME) without its index.

    Args:
        count: how many pods there are: `completions` of the Job.
        service: the name of the headless service.
        jobs: how many tasks each job has, in the order of indices; None for workers alone.
        port: that of each task.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: this is no pod of an indexed Job.
        InvalidArgumentError: its index or its name does not fit.
    """

    def __init__(
        self,
        count: int,
        service: str,
        jobs: Mapping[str, int] | None = None,
        port: int = 8888,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._count = count
        self._service = service
        self._jobs = jobs
        self._port = port
        super().__init__(environ)

    def _read(self) -> None:
        index = self._number("JOB_COMPLETION_INDEX")
        pod = self._text("HOSTNAME").partition(".")[0]
        match = re.fullmatch(rf"(.+)-{index}", pod)
        if match is None or index >= self._count:
            raise InvalidArgumentError(
                f"KubernetesResolver: pod {pod!r} with the index {index}, of {self._count}: "
                f"expected a name that ends in its index, below the number of pods",
                remedy="use completionMode: Indexed, and give count= the Job's completions",
            )
        addresses = [
            address(f"{match[1]}-{i}.{self._service}", self._port) for i in range(self._count)
        ]
        self.task_type, self.task_id = task_of(index, self._jobs)
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))


class KubeflowResolver(EnvironmentResolver):
    """The nodes of a TrainJob of Kubeflow's Trainer, by the variables PET_*.

    The address of node 0 is given; those of the others differ in their index, as JobSet names pods:
    "train-node-0-0.train", "train-node-0-1.train", ...

    Args:
        jobs: how many tasks each job has, in the order of nodes; None for workers alone.
        port: that of each task; by default PET_MASTER_PORT.
        environ: the environment, by default that of the process.

    Raises:
        NotFoundError: Kubeflow has not started this process.
        InvalidArgumentError: the address of node 0 has no index.
    """

    def __init__(
        self,
        jobs: Mapping[str, int] | None = None,
        port: int | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self._jobs = jobs
        self._port = port
        super().__init__(environ)

    def _read(self) -> None:
        rank, count = self._number("PET_NODE_RANK"), self._number("PET_NNODES")
        first = self._text("PET_MASTER_ADDR")
        port = self._number("PET_MASTER_PORT") if self._port is None else self._port
        match = re.fullmatch(r"([^.]*-)0((?:\..*)?)", first)
        if (match is None and count > 1) or rank >= count:
            raise InvalidArgumentError(
                f"KubeflowResolver: node {rank} of {count}, with PET_MASTER_ADDR={first!r}: "
                f"expected the name of pod 0 of a JobSet, which ends in -0",
                remedy="start it as a TrainJob, or use TFConfigResolver",
            )
        hosts = [f"{match[1]}{i}{match[2]}" for i in range(count)] if match else [first]
        self.task_type, self.task_id = task_of(rank, self._jobs)
        addresses = [address(host, port) for host in hosts]
        self._cluster = ClusterSpec(split_into_jobs(addresses, self._jobs))
