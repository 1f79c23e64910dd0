"""One of the processes that `laminar launch` starts: the script, with all workers as its strategy.

What it prints goes to FOLDER/worker-<rank>.log, and that of worker 0 to the terminal, too; without
a folder all goes to the terminal, lines of other workers with their number before them.
"""

from __future__ import annotations

import argparse
import io
import os
import runpy
import sys
from typing import Any, TextIO

from laminar.engine.compiler.native.threads import set_threads
from laminar.engine.io.places import make_folder

from .multi_worker import MultiWorker, use_by_default
from .parents import die_with_parent
from .resolvers.mpi import mpi_place


class _Numbered(io.TextIOBase):
    """A stream whose lines begin with the number of the worker."""

    def __init__(self, stream: TextIO, rank: int) -> None:
        self._stream = stream
        self._mark = f"[{rank}] "
        self._is_at_begin = True

    def write(self, text: str) -> int:
        lines = text.splitlines(keepends=True)
        for line in lines:
            self._stream.write(self._mark + line if self._is_at_begin else line)
            self._is_at_begin = line.endswith("\n")
        return len(text)

    def flush(self) -> None:
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()


class _Both(io.TextIOBase):
    """A stream that writes to two."""

    def __init__(self, stream: TextIO, log: TextIO) -> None:
        self._stream = stream
        self._log = log

    def write(self, text: str) -> int:
        self._log.write(text)
        return self._stream.write(text)

    def flush(self) -> None:
        self._log.flush()
        self._stream.flush()

    def fileno(self) -> int:
        return self._stream.fileno()

    def isatty(self) -> bool:
        return self._stream.isatty()


def _redirect(rank: int, folder: str | None) -> None:
    """Send what is printed where it belongs."""
    if folder is None:
        if rank:
            sys.stdout, sys.stderr = _Numbered(sys.stdout, rank), _Numbered(sys.stderr, rank)
        return
    make_folder(folder, "laminar launch: --logs")
    path = os.path.join(folder, f"worker-{rank}.log")
    log = open(path, "a", buffering=1, encoding="utf-8")  # noqa: SIM115  # as long as the process
    if rank:  # native code's output, too
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    else:
        sys.stdout, sys.stderr = _Both(sys.stdout, log), _Both(sys.stderr, log)


def main() -> None:
    """Run the script."""
    parent = os.getppid()
    parser = argparse.ArgumentParser()
    parser.add_argument("--logs")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--elastic", action="store_true")
    parser.add_argument("program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    given = parser.parse_args()
    die_with_parent(parent)
    place = mpi_place(os.environ)
    rank, beside = (0, 1) if place is None else (place.rank, place.local_size)
    _redirect(rank, given.logs)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    set_threads(given.threads or max(1, (cores or 1) // beside))
    use_by_default(MultiWorker(elastic=given.elastic))
    sys.argv = [given.program, *given.arguments]
    sys.path[0] = os.path.dirname(os.path.abspath(given.program))
    _run(given.program)


def _run(program: str) -> Any:
    return runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
