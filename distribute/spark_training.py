"""A training by parameter servers in the tasks of a barrier stage of Spark."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError

from .engine_group import (
    Loop,
    check_function,
    check_restarts,
    check_servers,
    place_on,
    task_configs,
    with_restarts,
)

_WHO: Final = "train_on_spark"


def train_on_spark(
    context: Any,
    train: Callable[..., Any],
    *,
    config: Mapping[str, Any] | None = None,
    num_processes: int = 2,
    num_servers: int = 1,
    max_restarts: int = 0,
) -> Any:
    """Run a training by `ParameterServer` in a barrier stage of Spark; what the function returns.

    Spark runs all tasks of such a stage at once, each in a Python process, and ends all if one
    fails. Each runs `train` under a TF_CONFIG of its own: the last ones are servers, the others
    workers, the first one leads, and what its function returns is the result. In the others the
    function does not get beyond `ParameterServer()`. A stage that has failed is begun again by the
    driver; `fit(resume=...)` in the function goes on then, with the same bits if the training is
    synchronous. The folder is one that each machine reaches.

    Args:
        context: a `pyspark.SparkContext`, which has a slot for each process.
        train: the function, of no argument, or of `config`; Spark sends it to its tasks.
        config: what it is given.
        num_processes: how many tasks the stage has.
        num_servers: how many of these are servers.
        max_restarts: how often a training that fails is restarted.

    Raises:
        FailedPreconditionError: PySpark is missing.
        InvalidArgumentError: an argument is out of range.
        Exception: Spark's, of the last failure.

    Examples:
        >>> laminar.distribute.train_on_spark(None, "train.py")
        Traceback (most recent call last):
        laminar.engine.errors.InvalidArgumentError: train_on_spark: expected a function ...
    """
    check_function(_WHO, train)
    check_restarts(_WHO, max_restarts)
    check_servers(_WHO, num_servers, num_processes, "num_processes counts the servers, too")
    try:
        import pyspark
    except ImportError as cause:
        raise FailedPreconditionError(
            f"{_WHO} needs PySpark: {cause}", remedy="pip install 'laminar[spark]'"
        ) from cause
    if not isinstance(context, pyspark.SparkContext):
        raise InvalidArgumentError(
            f"{_WHO}: expected a pyspark.SparkContext, got {context!r}",
            remedy="context = session.sparkContext",
        )
    task = _Task(Loop(train, config), num_servers)

    def stage() -> Any:
        tasks = context.parallelize(range(num_processes), num_processes).barrier()
        return tasks.mapPartitions(task).collect()[0]

    return with_restarts(_WHO, stage, max_restarts)


class _Task:
    """What a task of the stage does.

    Args:
        loop: the function.
        num_servers: how many tasks are servers.
    """

    def __init__(self, loop: Loop, num_servers: int) -> None:
        self._loop, self._num_servers = loop, num_servers

    def __call__(self, rows: Any) -> Iterator[Any]:
        """Gives what the function gives, in the task that leads."""
        from pyspark import BarrierTaskContext

        stage = BarrierTaskContext.get()
        host, port = place_on(socket.gethostbyname(socket.gethostname()))
        told = [place.rpartition(":") for place in stage.allGather(f"{host}:{port}")]
        places = [(name, int(number)) for name, _, number in told]
        rank = stage.partitionId()
        found = self._loop.as_task(task_configs(places, self._num_servers)[rank])
        if not rank:
            yield found
