"""How much of some cores other processes than the measured ones take, where the system tells it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

PROCESSES = Path("/proc")
# What keeps a system going takes less: of a block, so much time of one core.
_TOLERATED_SHARE = 0.1
_TOLERATED_SECONDS = 0.03  # the system counts in ticks, of 10 ms on most


class Bystanders:
    """Other processes on some cores than this one and those that it started, from now on.

    Args:
        cores: numbers of the cores that what is measured is kept on.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self._cores = cores
        self._begin = time.monotonic()
        self._seconds = foreign_seconds(cores)

    def are_busy(self) -> bool:
        """Whether they took more time than what keeps a system going, since this was made."""
        passed = time.monotonic() - self._begin
        taken = foreign_seconds(self._cores) - self._seconds
        return taken > _TOLERATED_SHARE * passed + _TOLERATED_SECONDS


def foreign_seconds(cores: Iterable[int]) -> float:
    """The time that cores were busy, less what this process and those that it started took.

    It is 0 where the system does not tell it.
    """
    names = {f"cpu{core}" for core in cores}
    try:
        lines = [line.split() for line in (PROCESSES / "stat").read_text().splitlines()]
    except OSError:
        return 0.0
    busy = 0
    for name, *numbers in lines:
        if name in names:
            # The fourth and the fifth are idle; those behind the eighth are among the first two.
            busy += sum(map(int, numbers[:3])) + sum(map(int, numbers[5:8]))
    times, parents = dict[int, int](), dict[int, int]()
    for folder in PROCESSES.glob("[0-9]*"):
        try:
            # The name of a program stands in parentheses, and may have any in it.
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        parents[int(folder.name)] = int(fields[1])
        times[int(folder.name)] = sum(map(int, fields[11:15]))  # with its ended children
    own = sum(ticks for process, ticks in times.items() if _is_own(process, parents))
    return (busy - own) / os.sysconf("SC_CLK_TCK")


def _is_own(process: int, parents: dict[int, int]) -> bool:
    """Whether this process is it, or has started it, or what started it, and so on."""
    while process > 1 and process != os.getpid():
        process = parents.get(process, 0)
    return process == os.getpid()
