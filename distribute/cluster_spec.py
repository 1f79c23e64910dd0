"""ClusterSpec: the jobs of a cluster, and the addresses of their tasks."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from laminar.engine.errors import ArgumentTypeError, DataLossError, InvalidArgumentError

_JOB = re.compile(r"[A-Za-z_][\w.-]*", re.ASCII)  # what can stand in "/job:..."
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%\w]+\]|[^\s:/\[\]]+):(?P<port>\d{1,5})", re.ASCII)
_MOST_INDEX = 1 << 20


class ClusterSpec:
    """The jobs of a cluster: each has tasks, numbered from 0, at addresses "host:port".

    A task is named by its job and its index: "/job:worker/task:1". Indices may have gaps, so that
    a process can be left out, or know of no more tasks than it talks to.

    Args:
        cluster: by the name of a job, the addresses of its tasks, as a list or as
            {index: address}; or another ClusterSpec; or the message of `as_cluster_def`, or its
            bytes.

    Raises:
        InvalidArgumentError: a name, an index or an address is none, or an address is given twice
            (port 0, "any that is free", may be).
        DataLossError: the bytes are not those of a ClusterDef.

    Examples:
        >>> addresses = {"ps": ["host0:2222"], "worker": ["host1:2222", "host2:2222"]}
        >>> cluster = laminar.distribute.ClusterSpec(addresses)
        >>> cluster.jobs, cluster.num_tasks("worker"), cluster.task_address("worker", 1)
        (['ps', 'worker'], 2, 'host2:2222')
    """

    def __init__(self, cluster: Any) -> None:
        self._jobs: dict[str, dict[int, str]] = {}
        for job, tasks in sorted(_jobs_of(cluster).items(), key=lambda item: str(item[0])):
            _check_job(job)
            self._jobs[job] = _tasks_of(job, tasks)
        _check_unique(self._jobs)

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs, in alphabetical order."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """How many tasks a job has.

        Raises:
            InvalidArgumentError: there is no such job.
        """
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """The indices of a job's tasks, in order; InvalidArgumentError without such a job."""
        return list(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Where a task is.

        Raises:
            InvalidArgumentError: there is no such job, or it has no such task.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise InvalidArgumentError(
                f"job {job_name!r} has no task {task_index!r}",
                remedy=f"its tasks are {', '.join(map(str, tasks)) or 'none'}",
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """A job's addresses by index, None in gaps; InvalidArgumentError without such a job."""
        tasks = self._tasks(job_name)
        return [tasks.get(i) for i in range(max(tasks, default=-1) + 1)]

    def as_dict(self) -> dict[str, list[str] | dict[int, str]]:
        """By the name of a job, its addresses: a list, or {index: address} where there are gaps."""
        return {
            job: list(tasks.values()) if list(tasks) == list(range(len(tasks))) else dict(tasks)
            for job, tasks in self._jobs.items()
        }

    def as_cluster_def(self) -> Any:
        """The cluster as a protobuf message, the `ClusterDef` of distribute/proto/cluster.proto."""
        message = _messages().ClusterDef()
        for job, tasks in self._jobs.items():
            entry = message.job.add(name=job)
            for index, address in tasks.items():
                entry.tasks[index] = address
        return message

    def _tasks(self, job_name: str) -> dict[int, str]:
        if job_name not in self._jobs:
            raise InvalidArgumentError(
                f"the cluster has no job {job_name!r}",
                remedy=f"its jobs are {', '.join(self._jobs) or 'none'}",
            )
        return self._jobs[job_name]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == other._jobs if isinstance(other, ClusterSpec) else NotImplemented

    def __hash__(self) -> int:
        return hash(tuple((job, *tasks.items()) for job, tasks in self._jobs.items()))

    def __repr__(self) -> str:
        return f"ClusterSpec({self.as_dict()!r})"


def _messages() -> Any:
    from .proto import cluster_pb2  # protobuf loads on first use

    return cluster_pb2


def _jobs_of(cluster: Any) -> dict[Any, Any]:
    """What the jobs are given as, by name."""
    if isinstance(cluster, ClusterSpec):
        return dict(cluster._jobs)
    if isinstance(cluster, Mapping):
        return dict(cluster)
    message = cluster
    if isinstance(cluster, bytes):
        message = _messages().ClusterDef()
        try:
            message.ParseFromString(cluster)
        except Exception as cause:  # DecodeError; its module differs between implementations
            raise DataLossError(f"the bytes are not a ClusterDef: {cause}") from cause
    if not isinstance(message, _messages().ClusterDef):
        raise ArgumentTypeError(
            f"ClusterSpec: expected jobs with the addresses of their tasks, got {cluster!r}",
            remedy='write it as {"ps": ["host0:2222"], "worker": ["host1:2222", "host2:2222"]}',
        )
    found: dict[Any, Any] = {}
    for job in message.job:
        if job.name in found:
            raise InvalidArgumentError(f"the ClusterDef has two jobs {job.name!r}")
        found[job.name] = dict(job.tasks)
    return found


def _check_job(job: Any) -> None:
    if not isinstance(job, str) or not _JOB.fullmatch(job):
        raise InvalidArgumentError(
            f"{job!r} is not the name of a job",
            remedy='use letters, digits and "_.-", with a letter first',
        )


def _tasks_of(job: str, tasks: Any) -> dict[int, str]:
    if isinstance(tasks, Mapping):
        numbered = dict(tasks)
    elif isinstance(tasks, Sequence) and not isinstance(tasks, str | bytes):
        numbered = dict(enumerate(tasks))
    else:
        raise ArgumentTypeError(
            f"job {job!r}: expected the addresses of its tasks, got {tasks!r}",
            remedy='write a list ["host:2222", ...], or {0: "host:2222", ...}',
        )
    for index, address in numbered.items():
        if type(index) is not int or not 0 <= index <= _MOST_INDEX:
            kind = InvalidArgumentError if type(index) is int else ArgumentTypeError
            raise kind(
                f"job {job!r}: {index!r} is not the index of a task",
                remedy=f"tasks are numbered from 0, up to {_MOST_INDEX}",
            )
        parts = _ADDRESS.fullmatch(address) if isinstance(address, str) else None
        if parts is None or int(parts["port"]) > 65535:
            raise InvalidArgumentError(
                f"task {index} of job {job!r}: {address!r} is not an address",
                remedy='write it as "host:port", such as "worker0.example:2222" or "[::1]:2222"',
            )
    return dict(sorted(numbered.items()))


def _check_unique(jobs: Mapping[str, Mapping[int, str]]) -> None:
    """InvalidArgumentError where two tasks have one address."""
    owners: dict[str, str] = {}
    for job, tasks in jobs.items():
        for index, address in tasks.items():
            name = f"/job:{job}/task:{index}"
            owner = owners.setdefault(address, name)
            if owner != name and not address.endswith(":0"):
                raise InvalidArgumentError(
                    f"{owner} and {name} have one address, {address}",
                    remedy="each task is a server with a port of its own",
                )
