"""ClusterResolver: what a process learns of its cluster from the engine that started it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Final, Protocol

from laminar.engine.errors import InvalidArgumentError, NotFoundError

from ..cluster_spec import ClusterSpec

# Two processes that have one task after the other have other ones.
_INCARNATION: Final = secrets.randbits(63)


class ClusterResolver(Protocol):
    """What `Server` and strategies ask of the engine that started this process.

    Attributes:
        task_type: the job that this process belongs to.
        task_id: the number of its task there.
    """

    task_type: str
    task_id: int

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the cluster, and their addresses."""

    def incarnation(self) -> int:
        """A number that tells this process from the one that had its task before."""

    def refresh(self) -> None:
        """Ask again: tasks that were started anew may have other addresses."""


class EnvironmentResolver:
    """A resolver that reads environment variables. Abstract: `_read` is to be written.

    Args:
        environ: the variables, by default those of the process.

    Attributes:
        restarts: how often the engine has started the job before, None where it does not say.
    """

    restarts: int | None = None

    def __init__(self, environ: Mapping[str, str] | None = None) -> None:
        self._environ = os.environ if environ is None else environ
        self.task_type = "worker"
        self.task_id = 0
        self._cluster = ClusterSpec({})
        self.refresh()

    def cluster_spec(self) -> ClusterSpec:
        """The tasks of the cluster, and their addresses."""
        return self._cluster

    def incarnation(self) -> int:
        """A number that tells this process from the one that had its task before."""
        return _INCARNATION

    def refresh(self) -> None:
        """Read the variables again."""
        self._read()

    def _read(self) -> None:
        raise NotImplementedError

    def _text(self, name: str) -> str:
        """A variable.

        Raises:
            NotFoundError: it is not there.
        """
        if name not in self._environ:
            raise NotFoundError(
                f"{type(self).__name__}: the environment variable {name} is not set",
                remedy="run the program under the engine that sets it, or use another resolver",
            )
        return self._environ[name]

    def _number(self, name: str, default: int | None = None) -> int:
        """A variable that is a whole number from 0 on.

        Raises:
            NotFoundError: it is not there, and there is no default.
            InvalidArgumentError: it is something else.
        """
        if default is not None and name not in self._environ:
            return default
        text = self._text(name)
        if not text.strip().isdecimal():
            raise InvalidArgumentError(
                f"{type(self).__name__}: {name} must be a whole number, got {text!r}"
            )
        return int(text)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} /job:{self.task_type}/task:{self.task_id}>"


def address(host: str, port: int) -> str:
    """ "host:port"; an IPv6 address in brackets."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_into_jobs(addresses: list[str], jobs: Mapping[str, int] | None) -> dict[str, list[str]]:
    """Addresses in the order of ranks as jobs.

    Args:
        addresses: of all processes.
        jobs: how many tasks each job has, in the order of ranks; None for workers alone.

    Raises:
        InvalidArgumentError: the jobs have another number of tasks in all.
    """
    if jobs is None:
        return {"worker": addresses}
    if sum(jobs.values()) != len(addresses):
        raise InvalidArgumentError(
            f"jobs={dict(jobs)} are {sum(jobs.values())} tasks, and there are "
            f"{len(addresses)} processes",
            remedy="start as many processes as there are tasks",
        )
    found, at = {}, 0
    for job, count in jobs.items():
        found[job] = addresses[at : at + count]
        at += count
    return found


def task_of(rank: int, jobs: Mapping[str, int] | None) -> tuple[str, int]:
    """The job and the number there of a process, as `split_into_jobs` has it."""
    at = 0
    for job, count in (jobs or {}).items():
        if at <= rank < at + count:
            return job, rank - at
        at += count
    return "worker", rank
