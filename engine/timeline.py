"""What a program did when: events of Python, of operations, and of native kernels by thread.

Nothing is recorded unless a `Timeline` is active; then plans and clusters are run so that they
tell. Times are in nanoseconds of the system's monotonic clock, which native code reads too.
"""

from __future__ import annotations

import functools
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


# The time on the clock of all events: that of native code, where a call of it takes least.
now: Callable[[], int] = (
    time.monotonic_ns
    if time.get_clock_info("monotonic").implementation == "clock_gettime(CLOCK_MONOTONIC)"
    else functools.partial(time.clock_gettime_ns, CLOCK)
)


class Event(NamedTuple):
    """Something that took time.

    Attributes:
        name: what it was.
        category: "epoch", "python", "data", "plan", "op", "kernel" or "transfer".
        start, end: in nanoseconds.
        thread: the identifier of the thread, as Python knows it.
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
class NativeRuns:
    """Runs of a compiled plan for some sizes.

    Times are of the journals that native code writes: (when it began, when it ended, the thread).

    Attributes:
        cluster: a `NativeCluster`, which can tell what its kernels compute.
        key: the sizes.
        name: of the cluster.
        calls: (run, 3), of the calls.
        kernels: (run, kernel, thread, 3), of the parts of kernels that the threads of a pool did; 0
            for what did not run.
    """

    cluster: Any
    key: Any
    name: str
    calls: Any
    kernels: Any


class NativeJournals:
    """What native code writes down, in memory of its own, while a timeline is recorded.

    Attributes:
        calls: what is ready to be called for this timeline.
    """

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self._journals: list[Any] = []
        self._clocks: Callable[[], tuple[int, int]] | None = None
        self._begun = (0, 0)

    def add(self, journal: Any, clocks: Callable[[], tuple[int, int]]) -> None:
        """Take a journal; `clocks` tells its time and that of timelines, at one moment."""
        if self._clocks is None:
            self._clocks, self._begun = clocks, clocks()
        self._journals.append(journal)

    def finish(self) -> list[NativeRuns]:
        """All runs; what was ready for them is dropped."""
        if self._clocks is None:
            return []
        (first, start), (last, end) = self._begun, self._clocks()
        pace = (end - start) / max(last - first, 1)
        found = [
            journal.runs(lambda times: start + ((times - first) * pace).astype(times.dtype))
            for journal in self._journals
        ]
        for calls in self.calls:
            calls.forget()
        self.calls.clear()
        self._journals.clear()
        return found


class Loop:
    """The batches of a loop, as `fit` has one.

    Attributes:
        name: of a step.
        first: the number of the first batch.
        thread: that runs it.
        times: for each batch, when it was asked for and when it came; at last when the loop ended.
    """

    def __init__(self, name: str, first: int) -> None:
        self.name = name
        self.first = first
        self.thread = threading.get_ident()
        self.times: list[int] = []

    def events(self, end: int) -> Iterator[Event]:
        """The making of batches, and the steps between them; one that still runs, up to `end`."""
        times = self.times if len(self.times) % 2 else [*self.times, end]
        for i in range(0, len(times) - 1, 2):
            asked, came, done = times[i : i + 3]
            yield Event("next batch", "data", asked, came, self.thread)
            name = f"{self.name} {self.first + i // 2}"
            yield Event(name, "python", came, done, self.thread)


class Timeline:
    """Events as they are recorded; any thread may add.

    Args:
        run_plan: runs a plan, in a step's context on its feeds, and records its operations.
        has_steps: whether the steps of training are told of by who records.

    Attributes:
        start, end: when it began and ended.
        events: in the order in which they ended; all of them from `finish` on.
        native: journals of native plans.
        runs: of native plans, from `finish` on.
        threads: names of threads by their identifiers.
    """

    def __init__(
        self,
        run_plan: Callable[[Any, Any, Sequence[Any]], list[Any]],
        *,
        has_steps: bool = False,
    ) -> None:
        self.run_plan = run_plan
        self.has_steps = has_steps
        self.start = now()
        self.end = 0
        self.events: list[Event] = []
        self.native = NativeJournals()
        self.runs: list[NativeRuns] = []
        self.threads: dict[int, str] = {}
        self._loops: list[Loop] = []

    def add(self, event: Event) -> None:
        """Note an event; lists are appended to by one thread at a time."""
        self.name_thread()
        self.events.append(event)

    def name_thread(self) -> None:
        """Remember what this thread is called."""
        if threading.get_ident() not in self.threads:
            self.threads[threading.get_ident()] = threading.current_thread().name

    def last_step(self) -> int:
        """When the last step of a loop of this thread ended, or its batch came; 0 for none."""
        thread = threading.get_ident()
        return next((x.times[-1] for x in reversed(self._loops) if x.thread == thread), 0)

    def finish(self) -> None:
        """Put together what was recorded."""
        self.end = now()
        for thread in threading.enumerate():
            if thread.ident is not None:
                self.threads.setdefault(thread.ident, thread.name)
        for loop in self._loops:
            self.events.extend(loop.events(self.end))
        self.runs += self.native.finish()

    @contextmanager
    def span(self, name: str, category: str = "python", **arguments: Any) -> Iterator[None]:
        """A block whose time is an event."""
        start = now()
        try:
            yield
        finally:
            thread = threading.get_ident()
            self.add(Event(name, category, start, now(), thread, "", arguments))

    def batches(self, batches: Iterator[Any], name: str, first: int) -> Iterator[Any]:
        """The batches of a loop, which is recorded with its steps."""
        loop = Loop(name, first)
        self.name_thread()
        self._loops.append(loop)
        note = loop.times.append
        note(now())
        try:
            for batch in batches:
                note(now())
                yield batch
                note(now())
        finally:
            if len(loop.times) % 2 == 0:  # in a step, which the loop was left from
                note(now())


class Recording:
    """`active`: the timeline that is recorded, None for none. There is one in a process at a time;
    `lock` guards its beginning and end."""

    active: Timeline | None = None
    lock = threading.Lock()


def recorded(batches: Iterator[Any], name: str, first: int = 0) -> Iterator[Any]:
    """The batches of a loop; a timeline, if one is recorded, is told of them and of the steps."""
    timeline = Recording.active
    if timeline is None or (timeline.has_steps and name == "step"):
        return batches
    return timeline.batches(batches, name, first)
