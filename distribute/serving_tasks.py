"""Tasks that serve until the program that leads a training has ended.

Each has a queue on its own device, and waits for what comes there: the exit code.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from laminar.engine import FIFOQueue, Graph, RunOptions, Session, SessionConfig, device, no_op
from laminar.engine.errors import AbortedError, DeadlineExceededError, UnavailableError

from .cluster_spec import ClusterSpec
from .servers import Server

_ANSWER_SECONDS: Final = 5.0


def serve_until_end(server: Server, credentials: Any) -> int:
    """Serve until `end_tasks` is called elsewhere; gives the exit code that it was given."""
    definition = server.server_def
    name = f"/job:{definition.job_name}/task:{definition.task_index}"
    with Graph().as_default():
        code = _end_of(name).dequeue()
        config = SessionConfig(device_filters=[name], credentials=credentials)
        with Session(server.target, config=config) as session:
            return int(session.run(code))


def end_tasks(spec: ClusterSpec, own: tuple[str, int] | None, code: int, credentials: Any) -> None:
    """Have the servers and workers that serve until the end do so; those that are lost have.

    Args:
        spec: of the cluster.
        own: the job and the task of this process, None if it is none of these.
        code: their exit code.
        credentials: of the cluster.
    """
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
