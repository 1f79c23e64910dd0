"""What Ray Train asks of a framework: to tell each process of a group who the others are."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

from .parameter_server import end_what_is_led
from .resolvers.mpi import free_port
from .resolvers.resolver import address


@dataclass
class LaminarConfig(BackendConfig):  # type: ignore[misc]  # Ray is Any here
    """Has Ray Train use `LaminarBackend`.

    Attributes:
        num_servers: how many of the processes are servers.
    """

    num_servers: int = 1

    @property
    def backend_cls(self) -> type[Any]:
        """What sets up a group."""
        return LaminarBackend


class LaminarBackend(Backend):  # type: ignore[misc]  # Ray is Any here
    """Sets TF_CONFIG in all processes of a group, also of one that takes the place of another."""

    def on_start(self, worker_group: Any, backend_config: LaminarConfig) -> None:
        """Called when all processes are there, before they train."""
        found = worker_group.execute(_place)
        hosts = {host for host, _ in found}
        if len(hosts) == 1:  # of one machine: nobody else need reach them
            found = [("127.0.0.1", port) for _, port in found]
        addresses = [address(*place) for place in found]
        workers = len(addresses) - backend_config.num_servers
        cluster = {"worker": addresses[:workers], "ps": addresses[workers:]}
        told = []
        for rank in range(len(addresses)):
            job, task = ("worker", rank) if rank < workers else ("ps", rank - workers)
            text = json.dumps({"cluster": cluster, "task": {"type": job, "index": task}})
            told.append(worker_group.execute_single_async(rank, _set_config, text))
        ray.get(told)


def _place() -> tuple[str, int]:
    """Where this process can be reached."""
    host = ray.util.get_node_ip_address()
    return host, free_port(socket.gethostbyname(host))


def _set_config(text: str) -> None:
    os.environ["TF_CONFIG"] = text


class Loop:
    """The function of a user's in one process.

    Args:
        loop: the function.
        config: what it is given, None for nothing.
    """

    def __init__(self, loop: Callable[..., Any], config: Mapping[str, Any] | None) -> None:
        self._loop, self._config = loop, config

    def __call__(self) -> Any:
        """Train, or serve until the training has ended; gives what the function gives."""
        found = None
        with contextlib.suppress(SystemExit):  # of one that has served
            found = self._loop() if self._config is None else self._loop(dict(self._config))
            end_what_is_led()
        return found
