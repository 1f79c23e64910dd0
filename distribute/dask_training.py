"""A training by parameter servers on the workers of a Dask cluster."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from laminar.engine.errors import FailedPreconditionError, InvalidArgumentError, UnavailableError

from .engine_group import (
    Loop,
    check_function,
    check_restarts,
    check_servers,
    place_on,
    task_configs,
    with_restarts,
)

_WHO: Final = "train_on_dask"
_LOOK_SECONDS: Final = 1.0  # between two looks at whether the workers are there
_END_SECONDS: Final = 30.0  # for which those that do not lead are waited for
_START_SECONDS: Final = 60.0


def train_on_dask(
    client: Any,
    train: Callable[..., Any],
    *,
    config: Mapping[str, Any] | None = None,
    num_processes: int | None = None,
    num_servers: int = 1,
    max_restarts: int = 0,
) -> Any:
    """Run a training by `ParameterServer` on Dask's workers; what the function returns.

        def train(config):  # in each process
            strategy = laminar.distribute.ParameterServer(synchronous=True)
            model = ...
            model.compile("adam", "mse", strategy=strategy)
            return model.fit(x, y, epochs=5, resume=config["folder"]).history

        history = train_on_dask(client, train, config={"folder": "/shared/run"}, max_restarts=2)

    Each of Dask's workers is a process, which runs `train` under a TF_CONFIG of its own: the last
    ones are servers, the others workers, the first one leads, and what its function returns is the
    result. In the others the function does not get beyond `ParameterServer()`. Dask's nannies start
    processes again that have died; `fit(resume=...)` in the function goes on then, with the same
    bits if the training is synchronous. The folder is one that each machine reaches.

    Args:
        client: of the cluster, a `distributed.Client`.
        train: the function, of no argument, or of `config`; Dask sends it to its workers.
        config: what it is given.
        num_processes: how many of Dask's workers take part, by default those that are there.
        num_servers: how many of these are servers.
        max_restarts: how often a training that fails is restarted.

    Raises:
        FailedPreconditionError: Dask is missing, or two of its workers are of one process.
        InvalidArgumentError: an argument is out of range.
        UnavailableError: the process that leads is lost, or there are too few.

    Examples:
        >>> laminar.distribute.train_on_dask(None, "train.py")
        Traceback (most recent call last):
        laminar.engine.errors.InvalidArgumentError: train_on_dask: expected a function ...
    """
    check_function(_WHO, train)
    check_restarts(_WHO, max_restarts)
    try:
        import distributed
    except ImportError as cause:
        raise FailedPreconditionError(
            f"{_WHO} needs dask.distributed: {cause}", remedy="pip install 'laminar[dask]'"
        ) from cause
    if not isinstance(client, distributed.Client):
        raise InvalidArgumentError(
            f"{_WHO}: expected a distributed.Client, got {client!r}",
            remedy="client = distributed.Client('tcp://scheduler:8786')",
        )
    size = len(_workers(client)) if num_processes is None else num_processes
    remedy = "start more workers; num_processes counts the servers, too"
    check_servers(_WHO, num_servers, size, remedy)
    loop = Loop(train, config)
    return with_restarts(_WHO, lambda: _trained(client, loop, size, num_servers), max_restarts)


def _trained(client: Any, loop: Loop, size: int, num_servers: int) -> Any:
    """Run it once."""
    import distributed

    try:
        client.wait_for_workers(size, timeout=_START_SECONDS)
    except TimeoutError as cause:
        raise UnavailableError(
            f"{_WHO}: Dask has {len(_workers(client))} workers, and {size} are to take part"
        ) from cause
    workers = _workers(client)[:size]
    places = _places(client, workers)
    futures = [
        client.submit(loop.as_task, text, workers=[where], pure=False, retries=0)
        for where, text in zip(workers, task_configs(places, num_servers), strict=True)
    ]
    try:
        while True:
            try:
                return futures[0].result(timeout=_LOOK_SECONDS)
            except distributed.TimeoutError:
                if workers[0] not in _workers(client):
                    raise UnavailableError(
                        f"{_WHO}: the worker {workers[0]}, which leads the training, is lost",
                        remedy="max_restarts=1, and fit(resume='folder'), go on without you",
                    ) from None
    finally:
        _end(client, futures, workers)


def _workers(client: Any) -> list[str]:
    """The addresses of Dask's workers."""
    return sorted(client.scheduler_info(n_workers=-1)["workers"])


def _places(client: Any, workers: Sequence[str]) -> list[tuple[str, int]]:
    """Where each worker can be reached.

    Raises:
        FailedPreconditionError: two of them are one process.
    """

    def found(host: str) -> tuple[Any, int]:
        return place_on(host), os.getpid()

    told = [
        client.run(found, urlsplit(where).hostname or "localhost", workers=[where])[where]
        for where in workers
    ]
    if len({(host, pid) for (host, _), pid in told}) < len(told):
        raise FailedPreconditionError(
            f"{_WHO}: two of Dask's workers are of one process, and each is a task of its own",
            remedy="LocalCluster(processes=True)",
        )
    return [place for place, _ in told]


def _end(client: Any, futures: Sequence[Any], workers: Sequence[str]) -> None:
    """See that no worker is left serving: those that do not end are started again."""
    import distributed

    there = _workers(client)
    left = {w: f for f, w in zip(futures, workers, strict=True) if w in there}
    if futures[0].done():  # who leads has told the others to end
        with contextlib.suppress(Exception):
            distributed.wait([*left.values()], timeout=_END_SECONDS)
    serving = [where for where, future in left.items() if not future.done()]
    client.cancel(list(futures))  # those of workers that are lost would wait for them
    if serving:
        with contextlib.suppress(Exception):  # workers without nannies end by themselves
            client.restart_workers(serving, timeout=_START_SECONDS)
