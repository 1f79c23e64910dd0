"""Processes that use the cores while others are measured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

_SPIN = """
import os, sys
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, [int(sys.argv[1])])
starter = os.getppid()
print("spinning", flush=True)
while os.getppid() == starter:  # a benchmark that is killed leaves no load behind
    for _ in range(100_000):
        pass
"""


@contextmanager
def foreign_load(cores: Sequence[int], count: int) -> Iterator[None]:
    """A block during which `count` processes, each in a session of its own, spin on `cores`.

    The first is on the first core, and so on, from the beginning again where there are more.
    """
    started = list[subprocess.Popen[str]]()
    try:
        for i in range(count):
            command = [sys.executable, "-c", _SPIN, str(cores[i % len(cores)])]
            process = subprocess.Popen(
                command, stdout=subprocess.PIPE, text=True, start_new_session=True
            )
            started.append(process)
        for process in started:
            assert process.stdout is not None
            process.stdout.readline()  # it spins from now on
        yield
    finally:
        for process in started:
            process.kill()
            process.communicate()
