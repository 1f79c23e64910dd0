"""What a timeline comes to: the dearest kernels, and why; where the time went."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from laminar.callbacks.display import format_bytes, format_seconds
from laminar.engine.timeline import Timeline

from .roofline import Roofline

_MOST = 10  # kernels of the table
_NEAR = 0.5  # of the roofline: what is nearer is as fast as it can be, about
_SMALL = 5e-6  # seconds: what takes less is calls and barriers


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
            return "small: what starts it takes longer than it"
        if self.of_roofline >= _NEAR:
            return f"at the limit of {self.bound}"
        if not self.is_parallel:
            return f"one thread; {self.bound} is used to {100 * self.of_roofline:.0f} %"
        return f"{self.bound} is used to {100 * self.of_roofline:.0f} %"


@dataclass(frozen=True, repr=False)
class TraceReport:
    """What a trace has found; shown, a table of the dearest kernels.

    Attributes:
        path: of the file with the timeline.
        seconds: from the beginning to the end.
        kernels: the dearest first.
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

        table = Table(
            title=f"the dearest kernels of {format_seconds(self.seconds)}", title_justify="left"
        )
        for i, head in enumerate(self._head()):
            right = 2 <= i <= 6
            table.add_column(head, justify="right" if right else "left", no_wrap=right)
        for kernel in self.kernels[:_MOST]:
            table.add_row(*map(Text, self._row(kernel)))
        console = Console(highlight=False)
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
    """All kernels of a timeline, the dearest first."""
    found: dict[Any, list[Any]] = {}
    wall = max(timeline.end - timeline.start, 1) * 1e-9
    for run, rows in rows_of_runs(timeline):
        seen = set()
        for number, row in enumerate(rows):
            times = run.times[number]
            ran = times[times[:, 1] > 0]
            if not len(ran):
                continue
            # A kernel may be started in parts: a product, then what sums its parts.
            part = -1 - number if row is None else row.number
            entry = found.setdefault((id(run.cluster), run.key, part), [row, 0, 0.0, 0.0])
            entry[1] += part not in seen
            entry[2] += float(ran[:, 1].max() - ran[:, 0].min()) * 1e-9
            entry[3] += float((ran[:, 1] - ran[:, 0]).sum()) * 1e-9
            seen.add(part)
    totals = []
    for row, runs, seconds, busy in found.values():
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


def rows_of_runs(timeline: Timeline) -> Iterable[tuple[Any, list[Any]]]:
    """Each run with what its kernels compute, None where that is not known."""
    known: dict[Any, list[Any]] = {}
    for run in timeline.runs:
        key = id(run.cluster), run.key
        if key not in known:
            rows = run.cluster.kernels_of(run.key)
            known[key] = rows if len(rows) == len(run.times) else [None] * len(run.times)
        yield run, known[key]


def seconds_by_category(timeline: Timeline, thread: int) -> tuple[dict[str, float], float]:
    """The seconds of each category of events of a thread, and the share of all together."""
    spans: dict[str, list[tuple[int, int]]] = {}
    for event in timeline.events:
        if event.thread == thread:
            spans.setdefault(event.category, []).append((event.start, event.end))
    for run in timeline.runs:
        if run.thread == thread:
            spans.setdefault("plan", []).append((run.start, run.end))
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
