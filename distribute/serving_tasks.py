"""Tasks that serve until the program that leads a training has ended.

Each has a queue on its own device, and waits for what comes there: that the program lives, and at
its end the exit code.
"""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

from laminar.engine import FIFOQueue, Graph, RunOptions, Session, SessionConfig, device, no_op
from laminar.engine.errors import AbortedError, DeadlineExceededError, UnavailableError

from .cluster_spec import ClusterSpec
from .servers import Server

_ANSWER_SECONDS: Final = 5.0
_ALIVE: Final = -1  # no exit code: who leads is there


def serve_until_end(server: Server, credentials: Any, timeout_seconds: float) -> int:
    """Serve until `end_tasks` is called elsewhere; gives the exit code that it was given.

    Raises:
        UnavailableError: nothing was heard of the program that leads for so long.
    """
    definition = server.server_def
    name = f"/job:{definition.job_name}/task:{definition.task_index}"
    limit = RunOptions(timeout_in_ms=max(1, int(timeout_seconds * 1000)))
    with Graph().as_default():
        told = _end_of(name).dequeue()
        config = SessionConfig(device_filters=[name], credentials=credentials)
        with Session(server.target, config=config) as session:
            while True:
                try:
                    code = int(session.run(told, options=limit))
                except DeadlineExceededError as cause:
                    raise UnavailableError(
                        f"{name} has heard nothing of the program that leads the training for "
                        f"{timeout_seconds:g} s",
                        remedy="see why it has ended, and start all tasks again; "
                        "fit(resume='folder') goes on where it was",
                    ) from cause
                if code != _ALIVE:
                    return code


class Beats:
    """Tells the tasks that serve, now and then, that the program that leads them lives.

    Args:
        spec: of the cluster.
        own: the job and the task of this process, None if it is none of these.
        every_seconds: how often.
        credentials: of the cluster.
    """

    def __init__(
        self,
        spec: ClusterSpec,
        own: tuple[str, int] | None,
        every_seconds: float,
        credentials: Any,
    ) -> None:
        self._told = spec, own, credentials
        self._every = every_seconds
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="laminar-beats", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Tell them no more."""
        self._ends.set()
        self._thread.join()

    def _run(self) -> None:
        spec, own, credentials = self._told
        while not self._ends.wait(self._every):
            _tell(spec, own, _ALIVE, credentials)


def end_tasks(spec: ClusterSpec, own: tuple[str, int] | None, code: int, credentials: Any) -> None:
    """Have the servers and workers that serve until the end do so; those that are lost have.

    Args:
        spec: of the cluster.
        own: the job and the task of this process, None if it is none of these.
        code: their exit code.
        credentials: of the cluster.
    """
    _tell(spec, own, code, credentials)


def _tell(spec: ClusterSpec, own: tuple[str, int] | None, code: int, credentials: Any) -> None:
    for job in ("worker", "ps"):
        for task in spec.task_indices(job):
            if (job, task) == own:
                continue
            name = f"/job:{job}/task:{task}"
            config = SessionConfig(device_filters=[name], credentials=credentials)
            with Graph().as_default():
                told = _end_of(name).enqueue(np.int64(code))
                _run(spec.task_address(job, task), told, config)


def answers(address: str, config: SessionConfig) -> bool:
    """Whether a task is there."""
    with Graph().as_default():
        return _run(address, no_op(), config)


def _end_of(name: str) -> FIFOQueue:
    with device(name):
        return FIFOQueue(-1, np.int64, shapes=[()], shared_name="parameter_server_end")


def _run(address: str, fetch: Any, config: SessionConfig) -> bool:
    """Run an operation on a task; False if it is not there."""
    limit = RunOptions(timeout_in_ms=int(_ANSWER_SECONDS * 1000))
    try:
        with Session(f"grpc://{address}", config=config) as session:
            session.run(fetch, options=limit)
    except (AbortedError, DeadlineExceededError, UnavailableError):
        return False
    return True
