"""One workload on several frameworks: short blocks of each in turn, then medians and ratios.

A round is a block of each. One during which other processes ran does not count, and another one
is made for it, for a while.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any, TypeAlias

from .bystanders import Bystanders
from .processes import Framework, Worker, WorkerError
from .workloads import Workload

BLOCK_SECONDS = 0.25
# Idle threads of a library go on spinning for a while, to be quick for the next call.
PAUSE_SECONDS = 0.05
LEAST_ROUNDS = 3
PATIENCE = 3.0  # how much longer than asked for it takes at most, where other processes run


@dataclass(frozen=True)
class Spread:
    """A median and the quartiles around it."""

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) < 2:
            return cls(values[0], values[0], values[0])
        low, _, high = quantiles(values, n=4, method="inclusive")
        return cls(median(values), low, high)


@dataclass
class Entry:
    """What one framework did: seconds of a step in each block; `error` when they mean nothing."""

    framework: str
    blocks: list[float] = field(default_factory=list)
    checks: list[float] = field(default_factory=list)
    peak_bytes: int | None = None
    error: str | None = None

    @property
    def seconds(self) -> Spread:
        return Spread.of(self.blocks)

    @property
    def is_valid(self) -> bool:
        return self.error is None and bool(self.blocks)


@dataclass
class Result:
    """One workload with a number of threads, on all frameworks that have it.

    `is_disturbed` says that other processes ran meanwhile.
    """

    workload: Workload
    threads: int
    entries: list[Entry]
    is_disturbed: bool = False

    def entry(self, framework: str) -> Entry | None:
        return next((e for e in self.entries if e.framework == framework), None)

    @property
    def best_peer(self) -> Entry | None:
        """The fastest of the others."""
        peers = [e for e in self.entries if e.framework != "laminar" and e.is_valid]
        return min(peers, key=lambda e: e.seconds.middle, default=None)

    @property
    def ratio(self) -> Spread | None:
        """Time of laminar / time of the best peer, from block to block."""
        ours, best = self.entry("laminar"), self.best_peer
        if ours is None or best is None or not ours.is_valid:
            return None
        return Spread.of([a / b for a, b in zip(ours.blocks, best.blocks, strict=True)])


def measure(
    workload: Workload,
    frameworks: Sequence[Framework],
    cores: Sequence[int],
    *,
    seconds: float,
    tiny: bool,
) -> Result:
    """Run one workload.

    Args:
        workload: what to run.
        frameworks: those that have it; each runs in a process of its own.
        cores: the cores that all of them are kept on, and so the number of their threads.
        seconds: how long each framework is measured, about; at least `LEAST_ROUNDS` blocks, but a
            single run when `tiny`.
        tiny: run the small problem.
    """
    entries = [Entry(framework.name) for framework in frameworks]
    with ExitStack() as stack:
        running = []
        for entry, framework in zip(entries, frameworks, strict=True):
            worker = Worker(
                framework.name,
                framework.python,
                workload.name,
                cores,
                tiny=tiny,
                isa=framework.isa,
                root=framework.root,
            )
            stack.enter_context(worker)
            try:
                entry.checks = worker.receive()["checks"]
                running.append((entry, worker))
            except WorkerError as error:
                entry.error = str(error)
        rounds = 1 if tiny else max(LEAST_ROUNDS, math.ceil(seconds / BLOCK_SECONDS))
        block = 0.0 if tiny else BLOCK_SECONDS
        begin = time.monotonic()
        kept, disturbed = list[_Round](), list[_Round]()
        while running and len(kept) < rounds:
            done = len(kept) + len(disturbed)
            passed = (time.monotonic() - begin) / (seconds * len(running))
            if passed > (1.0 if len(kept) >= LEAST_ROUNDS else PATIENCE) and done >= LEAST_ROUNDS:
                break
            others = Bystanders(cores)
            found = _round(running, done % len(running), block)
            (disturbed if others.are_busy() and not tiny else kept).append(found)
            running = [(entry, worker) for entry, worker in running if entry.error is None]
    is_disturbed = not tiny and len(kept) < LEAST_ROUNDS
    for replies in [*kept, *disturbed] if is_disturbed else kept:
        for entry, reply in replies:
            entry.blocks.append(reply["seconds"])
            entry.peak_bytes = reply["peak_bytes"]
    for entry in entries:
        if entry.error is None:
            entry.error = workload.judge(entry.checks) or disagreement(workload, entry, entries)
    return Result(workload, len(cores), entries, is_disturbed)


_Round: TypeAlias = list[tuple[Entry, dict[str, Any]]]


def _round(running: Sequence[tuple[Entry, Worker]], first: int, seconds: float) -> _Round:
    """A block of each, from one of them on; what a worker tells, or its error in the entry."""
    found: _Round = []
    for entry, worker in (*running[first:], *running[:first]):
        try:
            found.append((entry, worker.measure(seconds)))
        except WorkerError as error:
            entry.error = str(error)
        time.sleep(PAUSE_SECONDS)
    return found


def disagreement(workload: Workload, entry: Entry, entries: Sequence[Entry]) -> str | None:
    """How the numbers of one framework differ from the median of all, if they do."""
    if workload.tolerance is None:
        return None
    others = [e.checks for e in entries if len(e.checks) == len(entry.checks)]
    middle = [median(numbers) for numbers in zip(*others, strict=True)]
    allowed = workload.tolerance * max(map(abs, middle), default=0)
    for found, expected in zip(entry.checks, middle, strict=True):
        if not abs(found - expected) <= allowed:
            return f"results differ: {entry.checks}, the median of all is {middle}"
    return None
