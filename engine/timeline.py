"""What a program did when: events of Python, of operations, and of native kernels by thread.

Nothing is recorded unless a `Timeline` is active; then plans and clusters are run so that they
tell. Times are in nanoseconds of the system's monotonic clock, which native code reads too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from .late import later

# The recorder itself knows of callbacks and reports, and stands above the engine.
trace: Callable[..., Any] = later("laminar.profiler.trace", "trace")
CLOCK = getattr(time, "CLOCK_MONOTONIC", 1)  # its number, as the system knows it


def now() -> int:
    """The time on the clock of all events."""
    return time.clock_gettime_ns(CLOCK)


class Event(NamedTuple):
    """Something that took time.

    Attributes:
        name: what it was.
        category: "python", "data", "plan", "op", "kernel" or "transfer".
        start, end: in nanoseconds.
        thread: the identifier of the thread; native threads have small negative numbers.
        device: where it ran.
        arguments: what else is known: bytes, flops, ...
    """

    name: str
    category: str
    start: int
    end: int
    thread: int
    device: str = ""
    arguments: Mapping[str, Any] = {}


@dataclass
class NativeRun:
    """A run of a compiled plan.

    Attributes:
        cluster: a `NativeCluster`, which can tell what its kernels compute.
        key: for which sizes.
        name: of the cluster.
        thread: the thread that called.
        start, end: of the call.
        times: (kernel, thread, 2): when each thread of the pool began and ended its part; 0 for
            what did not run.
    """

    cluster: Any
    key: Any
    name: str
    thread: int
    start: int
    end: int
    times: Any


class Timeline:
    """Events as they are recorded; any thread may add.

    Args:
        run_plan: runs a plan, in a step's context on its feeds, and records its operations.

    Attributes:
        start, end: when it began and ended.
        events: in the order in which they ended.
        runs: of native plans.
        threads: names of threads by their identifiers.
    """

    def __init__(self, run_plan: Callable[[Any, Any, Sequence[Any]], list[Any]]) -> None:
        self.run_plan = run_plan
        self.start = now()
        self.end = 0
        self.events: list[Event] = []
        self.runs: list[NativeRun] = []
        self.threads: dict[int, str] = {}

    def add(self, event: Event) -> None:
        """Note an event; lists are appended to by one thread at a time."""
        self.name_thread()
        self.events.append(event)

    def add_run(self, run: NativeRun) -> None:
        """Note a run of a native plan."""
        self.name_thread()
        self.runs.append(run)

    def name_thread(self) -> None:
        """Remember what this thread is called."""
        if threading.get_ident() not in self.threads:
            self.threads[threading.get_ident()] = threading.current_thread().name

    @contextmanager
    def span(self, name: str, category: str = "python", **arguments: Any) -> Iterator[None]:
        """A block whose time is an event."""
        start = now()
        try:
            yield
        finally:
            thread = threading.get_ident()
            self.add(Event(name, category, start, now(), thread, "", arguments))


class Recording:
    """`active`: the timeline that is recorded, None for none. There is one in a process at a time;
    `lock` guards its beginning and end."""

    active: Timeline | None = None
    lock = threading.Lock()
