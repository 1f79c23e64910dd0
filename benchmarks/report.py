"""What is printed and written: the machine, the table of times and ratios, what went wrong."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from .measurement import Entry, Result, Spread
from .processes import Framework

TORCH_ON_AMD = (
    "torch multiplies matrices with MKL, which does not use AVX-512 on processors of AMD: "
    "a ratio to torch says little about other processors."
)
_RATED_BYTES = 1 << 20  # from here on, what moves bytes is shown by its rate
UNITS = {
    "s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"), (1e-9, "ns")),
    "B": ((2.0**30, "GiB"), (2.0**20, "MiB"), (2.0**10, "KiB")),
}


def show(results: Sequence[Result], frameworks: Sequence[Framework], is_full: bool) -> Table:
    """Times of a step, and laminar's by the best peer's; below 1 laminar is faster."""
    title = "time of a step, or memory: median ± half the distance of the quartiles"
    table = Table(title=title if is_full else "tiny problems, run once: the times mean nothing")
    table.add_column("workload", no_wrap=True)
    table.add_column("threads", justify="right")
    for framework in frameworks:
        table.add_column(framework.name, justify="right", no_wrap=True)
    if len(frameworks) > 1:
        table.add_column("laminar / best peer", justify="right", no_wrap=True)
        table.add_column("best peer")
    for result in results:
        cells = [measured(result.entry(framework.name), result) for framework in frameworks]
        if len(frameworks) > 1:
            cells += ratio_of(result)
        table.add_row(
            result.workload.title if is_full else result.workload.name, str(result.threads), *cells
        )
    return table


def line(result: Result) -> str:
    """A workload's times in one line."""
    times = ", ".join(f"{entry.framework} {measured(entry, result)}" for entry in result.entries)
    return f"{result.workload.name}, threads: {result.threads}: {times}"


def measured(entry: Entry | None, result: Result) -> str:
    if entry is None:
        return "-"
    if not entry.is_valid:
        return "wrong"
    workload, found = result.workload, quantity(entry.seconds, result.workload.unit)
    if workload.num_bytes is not None and workload.num_bytes >= _RATED_BYTES:
        found += f", {workload.num_bytes / entry.seconds.middle / 1e9:.2f} GB/s"
    return found


def quantity(spread: Spread, unit: str) -> str:
    """A time, or an amount of memory, in a unit that suits it."""
    middle, half = spread.middle, (spread.high - spread.low) / 2
    units = UNITS[unit]
    scale, unit = next((u for u in units if abs(middle) >= u[0]), units[-1])
    return f"{middle / scale:.3g} {unit} ±{half / abs(middle):.0%}"


def ratio_of(result: Result) -> list[str]:
    """The ratio with its quartiles, and to whom."""
    ratio, best = result.ratio, result.best_peer
    if ratio is None or best is None:
        return ["-", "-"]
    return [f"{ratio.middle:.2f} ({ratio.low:.2f} to {ratio.high:.2f})", best.framework]


def print_all(
    results: Sequence[Result],
    frameworks: Sequence[Framework],
    machine: Mapping[str, str],
    console: Console,
    *,
    is_full: bool,
) -> None:
    """Print where the figures come from, the figures, and what to know of them."""
    for name, value in machine.items():
        console.print(f"{name}: {value}", highlight=False)
    for framework in frameworks:
        listed = ", ".join(f"{name} {version}" for name, version in framework.versions.items())
        console.print(f"{framework.name}: {listed}", highlight=False, soft_wrap=True)
    console.print(show(results, frameworks, is_full))
    told = notes(results, machine)
    if is_full:
        told += goals(results)
    for note in told:
        console.print(note, markup=False, highlight=False)


def notes(results: Sequence[Result], machine: Mapping[str, str]) -> list[str]:
    """What a reader of the table has to know."""
    found = [
        f"{result.workload.name}, {entry.framework}: {entry.error}"
        for result in results
        for entry in result.entries
        if entry.error is not None
    ]
    found += [
        f"{result.workload.name}, threads: {result.threads}: other processes ran meanwhile, the "
        f"figures are not to be relied on."
        for result in results
        if result.is_disturbed
    ]
    peers = {entry.framework for result in results for entry in result.entries}
    if machine.get("vendor") == "AuthenticAMD" and "torch" in peers:
        found.append(TORCH_ON_AMD)
    return found


def goals(results: Sequence[Result]) -> list[str]:
    """Which goals are met."""
    return [
        f"{result.workload.name}, {entry.framework}: the goal, {goal * 1e6:,.0f} us, is "
        f"{'met' if entry.seconds.middle <= goal else 'missed'}"
        for result in results
        if (goal := result.workload.goal_seconds) is not None
        for entry in result.entries
        if entry.is_valid
    ]


def write_json(
    path: Path,
    results: Sequence[Result],
    frameworks: Sequence[Framework],
    machine: Mapping[str, str],
    options: Mapping[str, Any],
) -> None:
    """Write all that was measured, and how; times in seconds."""
    document = {
        "machine": dict(machine),
        "options": dict(options),
        "frameworks": {framework.name: dict(framework.versions) for framework in frameworks},
        "notes": notes(results, machine),
        "results": [as_json(result) for result in results],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def as_json(result: Result) -> dict[str, Any]:
    ratio, best = result.ratio, result.best_peer
    return {
        "workload": result.workload.name,
        "title": result.workload.title,
        "unit": result.workload.unit,
        "threads": result.threads,
        "is_disturbed": result.is_disturbed,
        "best_peer": best and best.framework,
        "ratio": ratio and asdict(ratio),
        "entries": [
            {**asdict(entry), "seconds": asdict(entry.seconds) if entry.blocks else None}
            for entry in result.entries
        ],
    }
