"""A page of what `python -m benchmarks --json FILE` has measured, with a plot for each number of
threads.

    python -m benchmarks.page benchmarks/results/cpu.json folder

The documentation has the page of benchmarks/results/cpu.json (docs/hooks.py).
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

_LEFT, _WIDTH, _BAR, _GAP = 330, 760, 16, 8  # of plots, in pixels
_MOST = 1.5  # times the best peer: bars end there
_LAMINAR, _SLOWER, _TEXT = "#3f51b5", "#c62828", "#888888"  # read on light and on dark pages

_HEAD = """# How fast

Times of laminar and its peers on one machine, measured in turns by `python -m benchmarks`, which
also compares what they compute. {machine}

A ratio is laminar's time by that of the fastest peer: below 1, laminar is faster.
"""


def pages(document: Mapping[str, Any]) -> dict[str, str]:
    """The page how_fast.md, and its plots, by the names of their files."""
    machine = document["machine"]
    told = f"{machine['processor']}, {machine['cores']} cores, {machine['system']}."
    versions = [
        f"{name} {made[next(iter(made))]}" for name, made in document["frameworks"].items() if made
    ]
    lines = [_HEAD.format(machine=f"The machine: {told} The versions: {', '.join(versions)}.")]
    lines += [f"- {note}" for note in document["notes"]]
    made = {}
    for threads in sorted({result["threads"] for result in document["results"]}):
        results = [result for result in document["results"] if result["threads"] == threads]
        count = f"{threads} thread" + ("s" if threads > 1 else "")
        lines += ["", f"## With {count}", ""]
        compared = [result for result in results if result["ratio"]]
        if compared:
            name = f"how_fast_{threads}.svg"
            made[name] = plot(compared, f"time of laminar / time of the fastest peer, {count}")
            lines += [f"![laminar's time by that of the fastest peer, {count}]({name})", ""]
        lines += table(results)
    return {"how_fast.md": "\n".join(lines) + "\n"} | made


def table(results: Sequence[Mapping[str, Any]]) -> list[str]:
    """The times of all frameworks, in the lines of a Markdown table."""
    names = list(dict.fromkeys(e["framework"] for r in results for e in r["entries"]))
    lines = [f"| workload | {' | '.join(names)} | ratio |", "|---|" + "---|" * (len(names) + 1)]
    for result in results:
        entries = {e["framework"]: e for e in result["entries"]}
        cells = [quantity(entries.get(name), result["unit"]) for name in names]
        ratio = f"{result['ratio']['middle']:.2f}" if result["ratio"] else ""
        lines.append(f"| {result['title']} | {' | '.join(cells)} | {ratio} |")
    return lines


def quantity(entry: Mapping[str, Any] | None, unit: str) -> str:
    """A time, or an amount of memory, with a unit that suits it; empty where there is none."""
    if entry is None or entry["seconds"] is None or entry["error"]:
        return ""
    middle = entry["seconds"]["middle"]
    if unit == "B":
        return f"{middle / 2**20:.0f} MiB"
    size, name = next(
        (s, n) for s, n in ((1, "s"), (1e-3, "ms"), (1e-6, "us"), (0, "ns")) if middle >= s
    )
    return f"{middle / (size or 1e-9):.3g} {name}"


def plot(results: Sequence[Mapping[str, Any]], title: str) -> str:
    """Bars of ratios, with a line at 1, as an SVG picture."""
    unit = (_WIDTH - _LEFT - 60) / _MOST  # pixels of a ratio of 1
    height = 50 + len(results) * (_BAR + _GAP)
    one = _LEFT + unit
    shapes = [f'<text x="{_LEFT}" y="20" font-weight="bold">{escape(title)}</text>']
    for number, result in enumerate(results):
        y = 36 + number * (_BAR + _GAP)
        ratio = result["ratio"]["middle"]
        color = _LAMINAR if ratio <= 1 else _SLOWER
        width = unit * min(ratio, _MOST)
        text, name = y + _BAR - 4, escape(result["workload"])
        shapes += [
            f'<text x="{_LEFT - 8}" y="{text}" text-anchor="end">{name}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR}" fill="{color}"/>',
            f'<text x="{_LEFT + width + 6:.1f}" y="{text}">{ratio:.2f}</text>',
        ]
    shapes.append(
        f'<line x1="{one:.1f}" x2="{one:.1f}" y1="30" y2="{height - 10}" stroke="{_TEXT}" '
        'stroke-dasharray="4 3"/>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" '
        f'width="{_WIDTH}" height="{height}" font-family="sans-serif" font-size="12" '
        f'fill="{_TEXT}">\n' + "\n".join(shapes) + "\n</svg>\n"
    )


def main(arguments: Sequence[str]) -> int:
    """Write the page of a file into a folder."""
    if len(arguments) != 2:
        print("usage: python -m benchmarks.page FILE.json FOLDER", file=sys.stderr)
        return 2
    source, folder = map(Path, arguments)
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages(json.loads(source.read_text(encoding="utf-8"))).items():
        (folder / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
