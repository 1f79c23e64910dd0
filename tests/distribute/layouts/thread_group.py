"""A group whose processes are threads of this one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from laminar.distribute.collectives.group import Group


class _Room:
    """What the threads of a group tell each other; `parts` are the rooms of its parts."""

    def __init__(self, size: int) -> None:
        self.told: list[Any] = [None] * size
        self.meeting = threading.Barrier(size)
        self.lock = threading.Lock()
        self.parts: dict[tuple[int, ...], _Room] = {}


class ThreadGroup(Group):
    """One of `size` threads; they share a room."""

    timeout_seconds = 20.0

    def __init__(self, room: _Room, rank: int) -> None:
        self._room = room
        self.rank, self.size = rank, len(room.told)

    def _every(self, said: Any) -> list[Any]:
        self._room.told[self.rank] = said
        self._room.meeting.wait(self.timeout_seconds)
        found = list(self._room.told)
        self._room.meeting.wait(self.timeout_seconds)
        return found

    def sum(self, arrays: Sequence[Any]) -> list[Any]:
        every = self._every([np.array(a) for a in arrays])
        return [sum(parts[1:], start=parts[0]) for parts in zip(*every, strict=True)]

    def gather_rows(self, rows: Any, counts: Sequence[int]) -> Any:
        return np.concatenate(self._every(np.array(rows)))

    def exchange(self, record: bytes) -> list[bytes]:
        return self._every(record)

    def broadcast(self, arrays: Sequence[Any], root: int = 0) -> None:
        for a, value in zip(arrays, self._every([np.array(a) for a in arrays])[root], strict=True):
            a[...] = value

    def part(self, ranks: Sequence[int]) -> Group:
        with self._room.lock:
            room = self._room.parts.setdefault(tuple(ranks), _Room(len(ranks)))
        return ThreadGroup(room, list(ranks).index(self.rank))


def by_each(size: int, run: Callable[[Group], Any]) -> list[Any]:
    """What `run` gives in each of so many threads."""
    room = _Room(size)
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: run(ThreadGroup(room, rank)), range(size)))
