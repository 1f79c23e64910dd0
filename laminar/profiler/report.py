"""What a timeline comes to: the most expensive kernels, and why; where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from laminar.callbacks.display import format_bytes, format_seconds
from laminar.engine.timeline import NativeRuns, Timeline

from .roofline import Roofline

_MOST = 10  # kernels of the table
_WIDE = 110  # columns that have room for all
_NEAR = 0.5  # of the roofline: what is nearer is as fast as it can be, about
_SMALL = 5e-6  # seconds: what takes less is calls and barriers
_LATEST = np.iinfo(np.int64).max


@dataclass(frozen=True)
class KernelTotal:
    """All runs of a kernel in a trace.

    Attributes:
        operations: that it is for.
        what: the functions that it computes.
        sizes: the shapes that it is about.
        runs: how often it ran.
        seconds: from the first thread's beginning to the last one's end, all runs together.
        busy_seconds: that threads were in it.
        flops, num_bytes: of one run.
        share: of the wall time of the trace.
        of_roofline: the least time that it can take, over the time that it took.
        is_parallel: whether threads share it.
        bound: "compute" or "memory", whichever is more of that least time.
        line: where the user's program made it.

    Examples:
        >>> model = laminar.Sequential([layers.Input((8,)), layers.Dense(1)])
        >>> model.compile("sgd", "mse")
        >>> with laminar.profiler.trace("folder", show=False) as trace:
        ...     history = model.fit(np.ones((8, 8)), np.ones((8, 1)), epochs=3, verbose=0)
        >>> trace.report.kernels[0].runs
        3
    """

    operations: tuple[str, ...]
    what: str
    sizes: str
    runs: int
    seconds: float
    busy_seconds: float
    flops: int
    num_bytes: int
    share: float
    of_roofline: float
    bound: str
    is_parallel: bool
    line: str

    @property
    def name(self) -> str:
        """The first operation, and how many more there are."""
        first, more = (self.operations or ("?",))[0], len(self.operations) - 1
        return f"{first} +{more}" if more > 0 else first

    @property
    def why(self) -> str:
        """Why it takes that long, in words."""
        if self.seconds / self.runs < _SMALL:
            return "small: starting it takes longer"
        if self.of_roofline >= _NEAR:
            return f"at the limit of {self.bound}"
        if not self.is_parallel:
            return f"one thread; {self.bound} is used to {100 * self.of_roofline:.0f} %"
        return f"{self.bound} is used to {100 * self.of_roofline:.0f} %"


@dataclass(frozen=True, repr=False)
class TraceReport:
    """What a trace has found; shown, a table of the most expensive kernels.

    Attributes:
        path: of the file with the timeline.
        seconds: from the beginning to the end.
        kernels: the most expensive first.
        categories: seconds by category, of the thread that recorded; what is inside of another
            event of the same category is counted once.
        accounted: the share of the wall time in which an event of that thread is known.

    Examples:
        >>> with laminar.profiler.trace("folder", show=False) as trace:
        ...     y = ops.ones((3,)) + 1
        >>> trace.report.kernels  # nothing was compiled
        []
    """

    path: Path
    seconds: float
    kernels: Sequence[KernelTotal]
    categories: dict[str, float]
    accounted: float

    def __repr__(self) -> str:
        rows = [self._head(), *map(self._row, self.kernels[:_MOST])]
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
        lines = [
            "  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)).rstrip() for r in rows
        ]
        return "\n".join([*lines, self._total()])

    def show(self) -> None:
        """Print the table, by rich."""
        from rich.console import Console  # heavy
        from rich.table import Table
        from rich.text import Text

        console = Console(highlight=False)
        is_wide = console.width >= _WIDE
        table = Table(
            title=f"the most expensive kernels of {format_seconds(self.seconds)}",
            title_justify="left",
        )
        # The sizes stand below the name, and where there is little room the reason too.
        table.add_column("kernel, sizes" if is_wide else "kernel, sizes, why", overflow="fold")
        for head in self._head()[2:-1]:
            table.add_column(head, justify="right", no_wrap=True)
        if is_wide:
            table.add_column("why", overflow="fold")
        for kernel in self.kernels[:_MOST]:
            name, sizes, *numbers, why = self._row(kernel)
            about = Text(name)
            if sizes:
                about.append(f"\n{sizes}", "dim")
            if not is_wide:
                about.append(f"\n{why}", "italic")
            table.add_row(about, *map(Text, [*numbers, *[why] * is_wide]))
        console.print(table)
        console.print(self._total(), markup=False)

    @staticmethod
    def _head() -> tuple[str, ...]:
        return ("kernel", "sizes", "runs", "time", "share", "flop/s", "bytes/s", "why")

    @staticmethod
    def _row(kernel: KernelTotal) -> tuple[str, ...]:
        each = kernel.seconds / kernel.runs or 1e-12
        return (
            kernel.name,
            kernel.sizes,
            str(kernel.runs),
            format_seconds(kernel.seconds),
            f"{100 * kernel.share:.1f} %",
            f"{kernel.flops / each / 1e9:.1f} G",
            f"{format_bytes(kernel.num_bytes / each)}",
            kernel.why,
        )

    def _total(self) -> str:
        parts = ", ".join(f"{name} {format_seconds(s)}" for name, s in self.categories.items())
        return (
            f"{format_seconds(self.seconds)}, {100 * self.accounted:.0f} % of it accounted for: "
            f"{parts or 'nothing'}; {self.path}"
        )


def kernel_totals(timeline: Timeline, machine: Roofline | None) -> list[KernelTotal]:
    """All kernels of a timeline, the most expensive first."""
    wall = max(timeline.end - timeline.start, 1) * 1e-9
    totals = []
    for row, runs, seconds, busy in _sums(timeline):
        flops = 0 if row is None else row.flops * row.runs
        size = 0 if row is None else (row.read_bytes + row.written_bytes) * row.runs
        least = 0.0 if machine is None else machine.seconds(flops, size)
        is_compute = machine is not None and flops / machine.flops > size / machine.num_bytes
        totals.append(
            KernelTotal(
                operations=() if row is None else row.operations,
                what="" if row is None else row.what,
                sizes="" if row is None else row.sizes,
                runs=runs,
                seconds=seconds,
                busy_seconds=busy,
                flops=flops,
                num_bytes=size,
                share=seconds / wall,
                of_roofline=min(1.0, least * runs / seconds) if seconds else 0.0,
                bound="compute" if is_compute else "memory",
                is_parallel=row is not None and row.is_parallel,
                line="" if row is None or not row.lines else row.lines[0],
            )
        )
    return sorted(totals, key=lambda kernel: -kernel.seconds)


def _sums(timeline: Timeline) -> Iterator[tuple[Any, int, float, float]]:
    """Of each kernel what it computes, how often it ran, the seconds of that and of its threads."""
    found: dict[Any, tuple[Any, int, float, float]] = {}
    for runs, rows in rows_of_runs(timeline):
        known: dict[Any, list[int]] = {}
        for number, row in enumerate(rows):
            # A kernel may be started in parts: a product, then what sums its parts.
            known.setdefault(-1 - number if row is None else row.number, []).append(number)
        for part, numbers in known.items():
            times = runs.kernels[:, numbers]  # (run, start, thread, 3)
            began, ended = times[..., 0], times[..., 1]
            ran = ended > 0
            first = np.where(ran, began, _LATEST).min(-1)
            spent = np.maximum(ended.max(-1) - first, 0).sum() * 1e-9
            count = int(ran.any((1, 2)).sum())
            if not count:
                continue
            key = id(runs.cluster), runs.key, part
            _, more, seconds, busy = found.get(key, (None, 0, 0.0, 0.0))
            busy += float(np.where(ran, ended - began, 0).sum()) * 1e-9
            found[key] = rows[numbers[0]], more + count, seconds + float(spent), busy
    return iter(found.values())


def rows_of_runs(timeline: Timeline) -> Iterable[tuple[NativeRuns, list[Any]]]:
    """The runs of each plan with what its kernels compute, None where that is not known."""
    for runs in timeline.runs:
        if len(runs.calls):
            rows, count = runs.cluster.kernels_of(runs.key), runs.kernels.shape[1]
            yield runs, rows if len(rows) == count else [None] * count


def seconds_by_category(timeline: Timeline, thread: int) -> tuple[dict[str, float], float]:
    """The seconds of each category of events of a thread, and the share of all together."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for event in timeline.events:
        if event.thread == thread:
            spans.setdefault(event.category, []).append((event.start, event.end))
    for runs in timeline.runs:
        mine = runs.calls[runs.calls[:, 2] == thread, :2]
        if len(mine):
            spans.setdefault("plan", []).extend(map(tuple, mine.tolist()))
    wall = max(timeline.end - timeline.start, 1)
    everything = [span for found in spans.values() for span in found]
    seconds = {name: _union(found) * 1e-9 for name, found in sorted(spans.items())}
    return seconds, _union(everything) / wall


def _union(spans: Iterable[tuple[int, int]]) -> int:
    """How much time the spans cover."""
    total, reached = 0, 0
    for start, end in sorted(spans):
        total += max(0, end - max(start, reached))
        reached = max(reached, end)
    return total
