"""What Ray Train asks of a framework: to tell each process of a group who the others are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import ray
from ray.train.backend import Backend, BackendConfig

from .engine_group import place_on, task_configs


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
        places = worker_group.execute(_place)
        told = [
            worker_group.execute_single_async(rank, _set_config, text)
            for rank, text in enumerate(task_configs(places, backend_config.num_servers))
        ]
        ray.get(told)


def _place() -> tuple[str, int]:
    """Where this process can be reached."""
    return place_on(ray.util.get_node_ip_address())


def _set_config(text: str) -> None:
    os.environ["TF_CONFIG"] = text
