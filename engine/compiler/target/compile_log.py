"""What was compiled, when and why."""

from __future__ import annotations

import sys
import threading
from typing import NamedTuple

# A compile that takes longer is reported while it runs.
_LONG_SECONDS = 1.0


class Compile(NamedTuple):
    """One kernel that was made.

    Attributes:
        what: the operations or layers it is for.
        fresh: whether it was compiled; otherwise it was read from the cache on disk.
        seconds: how long that took.
        num_bytes: of object code.
    """

    what: str
    fresh: bool
    seconds: float
    num_bytes: int


class Event(NamedTuple):
    """A cluster that was compiled for inputs of certain forms, and why.

    Attributes:
        cluster: its name: the operation it begins with.
        reason: why it had to be compiled.
        inputs: the shapes it was compiled for; None where any size goes.
        num_kernels: how many native kernels it runs.
        kernels: those that were made for it.
        seconds: how long it all took.
        arena_bytes: of memory that it works in, for the sizes of that run: what is needed at once
            of all that is neither given, nor a variable, nor a result.
    """

    cluster: str
    reason: str
    inputs: tuple[tuple[int | None, ...], ...]
    num_kernels: int
    kernels: tuple[Compile, ...]
    seconds: float
    arena_bytes: int

    def __str__(self) -> str:
        fresh = sum(k.fresh for k in self.kernels)
        return (
            f"{self.cluster}: {self.reason}; {self.num_kernels} kernels, {fresh} compiled, "
            f"{len(self.kernels) - fresh} from the cache on disk, {self.seconds * 1e3:.0f} ms, "
            f"works in {self.arena_bytes / 2**20:.1f} MiB"
        )


class _Watch(threading.local):
    """The compiles of the event that this thread is in."""

    def __init__(self) -> None:
        self.compiles: list[Compile] = []


_watch = _Watch()


def note(compile: Compile) -> None:
    """Remember a compile."""
    _watch.compiles.append(compile)


def begin() -> None:
    """Begin an event."""
    _watch.compiles = []


def compiles() -> tuple[Compile, ...]:
    """The compiles since `begin`."""
    return tuple(_watch.compiles)


class LongCompileNote:
    """Tells on the standard error that a compile goes on, once it has taken a second."""

    def __init__(self, what: str) -> None:
        self._timer = threading.Timer(_LONG_SECONDS, self._tell, [what])
        self._timer.daemon = True

    @staticmethod
    def _tell(what: str) -> None:
        print(f"laminar: compiling {what} (once; it is kept on disk)...", file=sys.stderr)

    def __enter__(self) -> LongCompileNote:
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
