"""Processes that another engine has started, as the tasks of a training by parameter servers."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import warn

from .parameter_server import end_what_is_led
from .resolvers.mpi import free_port
from .resolvers.resolver import address


def check_function(who: str, train: Any) -> None:
    """InvalidArgumentError unless `train` can be called."""
    if not callable(train):
        raise InvalidArgumentError(f"{who}: expected a function that trains, got {train!r}")


def check_servers(who: str, num_servers: Any, size: int, remedy: str) -> None:
    """InvalidArgumentError unless so many of the processes can be servers."""
    is_number = isinstance(num_servers, int) and not isinstance(num_servers, bool)
    if not is_number or not 1 <= num_servers < size:
        raise InvalidArgumentError(
            f"{who}: of {size} processes at least one is a server, and one a worker; "
            f"got num_servers={num_servers!r}",
            remedy=remedy,
        )


def check_restarts(who: str, max_restarts: Any) -> None:
    """InvalidArgumentError unless it is a number of restarts."""
    if isinstance(max_restarts, bool) or not isinstance(max_restarts, int) or max_restarts < 0:
        raise InvalidArgumentError(
            f"{who}: max_restarts must be a whole number from 0 on, got {max_restarts!r}"
        )


def with_restarts(who: str, train: Callable[[], Any], max_restarts: int) -> Any:
    """What `train` gives, which is called again, with a warning, where it fails.

    Args:
        who: whose name the warning has.
        train: the whole training, once.
        max_restarts: how often it is called again.

    Raises:
        InvalidArgumentError: from `train`, at once: another try would fail the same way.
        Exception: of the last try.
    """
    for left in range(max_restarts, 0, -1):
        try:
            return train()
        except InvalidArgumentError:
            raise
        except Exception as error:
            line = str(error).partition("\n")[0]
            warn(f"{who}: the training failed and is restarted, {left} restarts are left: {line}")
    return train()


def place_on(host: str) -> tuple[str, int]:
    """A host, and a port that is free on it now; called there."""
    return host, free_port(socket.gethostbyname(host))


def task_configs(places: Sequence[tuple[str, int]], num_servers: int) -> list[str]:
    """TF_CONFIG for each process: the last ones are servers, and the first one leads.

    Args:
        places: the host and the port of each.
        num_servers: how many of them are servers.
    """
    hosts = {host for host, _ in places}
    if len(hosts) == 1:  # of one machine: nobody else need reach them
        places = [("127.0.0.1", port) for _, port in places]
    addresses = [address(*place) for place in places]
    workers = len(addresses) - num_servers
    cluster = {"worker": addresses[:workers], "ps": addresses[workers:]}
    told = []
    for rank in range(len(addresses)):
        job, task = ("worker", rank) if rank < workers else ("ps", rank - workers)
        told.append(json.dumps({"cluster": cluster, "task": {"type": job, "index": task}}))
    return told


class Loop:
    """The function of a user's in one process.

    Args:
        loop: the function.
        config: what it is given, None for nothing.
    """

    def __init__(self, loop: Callable[..., Any], config: Mapping[str, Any] | None) -> None:
        self._loop, self._config = loop, None if config is None else dict(config)

    def __call__(self) -> Any:
        """Train, or serve until the training has ended; gives what the function gives."""
        found = None
        try:
            with contextlib.suppress(SystemExit):  # of one that has served
                found = self._loop() if self._config is None else self._loop(dict(self._config))
        finally:
            end_what_is_led()
        return found

    def as_task(self, config: str) -> Any:
        """The same in a process that the engine keeps, under a TF_CONFIG for this call."""
        before = os.environ.get("TF_CONFIG")
        os.environ["TF_CONFIG"] = config
        try:
            return self()
        finally:
            if before is None:
                os.environ.pop("TF_CONFIG", None)
            else:
                os.environ["TF_CONFIG"] = before
