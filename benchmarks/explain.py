"""Why a step of laminar takes what it takes: its floor, what is reached, its costliest kernels.

The floor of a kernel is the time that its arithmetic takes at the rate of a product of matrices, or
that its bytes take at the rate of a copy of so many bytes, whichever is more: both are measured on
the same cores. That of a step is the sum over its kernels as they were compiled; merging them more
could lower it. What is left of a step is Python, calls, and threads that wait for each other.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.table import Table

from .cases import Case
from .processes import Worker, WorkerError
from .report import UNITS
from .workloads import Workload

_SECONDS = 0.6  # that a case runs under the trace, about
_MOST_RUNS = 2000
_KERNELS = 8  # of the table


def explained(case: Case, step_seconds: float) -> dict[str, Any]:
    """What the kernels of a warm case take; times in seconds of a step.

    Args:
        case: of laminar.
        step_seconds: what a step takes when nothing is recorded.
    """
    from laminar.profiler import trace  # only laminar's worker has it
    from laminar.profiler.roofline import roofline

    runs = max(3, min(_MOST_RUNS, round(_SECONDS / (step_seconds * case.steps))))
    with tempfile.TemporaryDirectory() as folder, trace(folder, show=False) as recorded:
        for _ in range(runs):
            case.run()
    steps = runs * case.steps
    machine = roofline()
    kernels = []
    for total in recorded.report.kernels if recorded.report else ():
        times = total.runs / steps
        kernels.append(
            {
                "name": total.name,
                "what": total.what,
                "sizes": total.sizes,
                "runs": times,
                "seconds": total.seconds / steps,
                "flops": total.flops * times,
                "bytes": total.num_bytes * times,
                "floor": machine.seconds(total.flops, total.num_bytes) * times,
                "bound": total.bound,
                "line": total.line,
            }
        )
    return {
        "seconds": step_seconds,
        "flops_rate": machine.flops,
        "rates": machine.rates,
        "kernels": kernels,
    }


def explain_all(
    plan: Sequence[tuple[Workload, Sequence[int]]], *, tiny: bool, isa: str | None, console: Console
) -> bool:
    """Print why workloads take what they take on some cores; gives whether all is known."""
    table = Table(title="floors", title_justify="left")
    for i, column in enumerate(
        ("workload", "threads", "step", "kernels", "floor", "reached", "dearest")
    ):
        table.add_column(column, justify="right" if 0 < i < 6 else "left")
    is_known = True
    for workload, cores in plan:
        found = _measured(workload.name, cores, tiny=tiny, isa=isa, console=console)
        if found is None:
            is_known = False
            continue
        threads = len(cores)
        console.print(*texts(workload.title, threads, found), sep="\n", highlight=False)
        kernels = found["kernels"]
        if kernels:
            dearest = max(kernels, key=lambda k: k["seconds"])
            inside, floor = (sum(k[key] for k in kernels) for key in ("seconds", "floor"))
            table.add_row(
                workload.title,
                str(threads),
                *map(shown, (found["seconds"], inside, floor)),
                f"{floor / found['seconds']:.0%}",
                f"{dearest['name']}, {dearest['seconds'] / found['seconds']:.0%}",
            )
    console.print(table)
    return is_known


def _measured(
    name: str, cores: Sequence[int], *, tiny: bool, isa: str | None, console: Console
) -> dict[str, Any] | None:
    """What a worker says of a workload; None, and why is printed, where it failed."""
    with Worker("laminar", workload=name, cores=cores, tiny=tiny, isa=isa, explains=True) as worker:
        try:
            return worker.receive()
        except WorkerError as error:
            console.print(f"{name}: {error}", markup=False, highlight=False)
            return None


def texts(title: str, threads: int, found: dict[str, Any]) -> list[Any]:
    """The sums, and the table of the most expensive kernels."""
    kernels = found["kernels"]
    head = (
        f"{title}; {threads} thread{'s' if threads > 1 else ''}: {shown(found['seconds'])} a step"
    )
    if not kernels:
        return [f"{head}: no native kernels"]
    inside = sum(k["seconds"] for k in kernels)
    floor = sum(k["floor"] for k in kernels)
    table = Table(show_edge=False, pad_edge=False)
    for i, column in enumerate(
        ("kernel", "sizes", "runs", "time", "of the step", "flop", "bytes", "floor", "reached")
    ):
        table.add_column(column, justify="left" if i < 2 else "right", no_wrap=i != 1)
    rest = kernels[_KERNELS:]
    for k in kernels[:_KERNELS]:
        table.add_row(*row(k["name"], k["sizes"], [k], found["seconds"]))
    if rest:
        table.add_row(*row(f"{len(rest)} more", "", rest, found["seconds"]))
    table.add_row(*row("all", "", kernels, found["seconds"]))
    return [
        head,
        f"kernels {shown(inside)} when recorded; their floor {shown(floor)}, "
        f"{floor / found['seconds']:.0%} of the step; products reach "
        f"{found['flops_rate'] / 1e9:.0f} Gflop/s, copies "
        + ", ".join(f"{rate / 1e9:.0f} GB/s to {amount(size)}" for size, rate in found["rates"]),
        table,
        "",
    ]


def row(name: str, sizes: str, kernels: Sequence[dict[str, Any]], step: float) -> list[str]:
    """A line of the table, of one kernel or of several."""
    total = {
        key: sum(k[key] for k in kernels) for key in ("runs", "seconds", "flops", "bytes", "floor")
    }
    seconds = total["seconds"]
    return [
        name,
        sizes,
        f"{total['runs']:.3g}",
        shown(seconds),
        f"{seconds / step:.0%}",
        f"{total['flops'] / 1e6:.3g} M",
        amount(total["bytes"]),
        shown(total["floor"]),
        f"{total['floor'] / seconds:.0%}" if seconds else "-",
    ]


def shown(seconds: float) -> str:
    scale, unit = next((u for u in UNITS["s"] if seconds >= u[0]), UNITS["s"][-1])
    return f"{seconds / scale:.3g} {unit}"


def amount(num_bytes: float) -> str:
    scale, unit = next((u for u in UNITS["B"] if num_bytes >= u[0]), UNITS["B"][-1])
    return f"{num_bytes / scale:.3g} {unit}"
