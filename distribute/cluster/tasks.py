"""Names of tasks: "/job:worker/task:1"."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import DeviceSpec

from ..cluster_spec import ClusterSpec


def task_name(job: str, task: int) -> str:
    """The name of a task."""
    return f"/job:{job}/task:{task}"


def task_of(device: str) -> str:
    """The name of the task that a device belongs to.

    Raises:
        InvalidArgumentError: the name says of no task.
    """
    spec = DeviceSpec.from_string(device)
    if spec.job is None or spec.task is None:
        raise InvalidArgumentError(f"{device!r} does not name a device of a task")
    return task_name(spec.job, spec.task)


known_task_of = functools.lru_cache(1024)(task_of)  # for names that come again and again


def addresses(cluster: ClusterSpec) -> dict[str, str]:
    """The addresses of all tasks by their names."""
    return {
        task_name(job, i): cluster.task_address(job, i)
        for job in cluster.jobs
        for i in cluster.task_indices(job)
    }


def filtered(tasks: Sequence[str], filters: Sequence[str], own: str) -> list[str]:
    """The tasks that a session uses: its own first, and those that one of the filters names.

    Raises:
        InvalidArgumentError: a filter names no task.
    """
    specs = [DeviceSpec.from_string(name) for name in filters]
    found = [
        name
        for name in tasks
        if name != own
        and (not specs or any(DeviceSpec.from_string(name).is_compatible_with(s) for s in specs))
    ]
    for name, spec in zip(filters, specs, strict=True):
        if not any(DeviceSpec.from_string(t).is_compatible_with(spec) for t in tasks):
            raise InvalidArgumentError(
                f"the device filter {name!r} names no task of the cluster",
                remedy=f"its tasks are {', '.join(tasks)}",
            )
    return [own, *found]
