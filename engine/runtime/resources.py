"""Containers: who owns the state that outlives a step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from .. import forks


class ResourceManager:
    """Named containers of named resources.

    `_containers[container][name]` is a resource; "" is the default container. Guarded by `_lock`.
    """

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._containers: dict[str, dict[str, Any]] = {}

    def get(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that name, made by `make` when there is none."""
        with self._lock:
            held = self._containers.setdefault(container, {})
            if name not in held:
                held[name] = make()
            return held[name]

    def reset(self, containers: Sequence[str] | None = None) -> None:
        """Empty the named containers; without names, all of them."""
        with self._lock:
            for name in list(self._containers) if containers is None else containers:
                self._containers.pop(name, None)


# Named containers are shared by the sessions of a process; each session has its own default one.
SHARED = ResourceManager()


class SessionResources:
    """What a session sees: its own default container, and the shared named ones."""

    def __init__(self) -> None:
        self._own = ResourceManager()

    def get(self, container: str, name: str, make: Callable[[], Any]) -> Any:
        """The resource of that name, made by `make` when there is none."""
        manager = SHARED if container else self._own
        return manager.get(container, name, make)

    def clear(self) -> None:
        """Drop the session's own state."""
        self._own.reset()
