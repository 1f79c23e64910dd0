"""Measure laminar and its peers on one machine.

    python -m benchmarks --workload train-mlp --threads 1 2 --peers jax keras

A peer may live in another environment: --python torch=/path/to/python. What a change does to
laminar is told by --against ANOTHER_CHECKOUT --peers: both run in turns. With --busy COUNT other
processes use the cores meanwhile. The exit status is 1 when a framework failed or computed
something else than the others. With --explain, laminar alone is measured, and for each workload
its floor, what of it is reached, and its most expensive kernels are printed.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console

from . import machine, report
from .explain import explain_all
from .foreign_load import foreign_load
from .isa import ISAS
from .measurement import Result, measure
from .processes import Framework, WorkerError, find
from .workloads import PEERS, WORKLOADS, Workload

WIDTH = 180  # of what is printed to a file
START_SECONDS = 3.0  # until a framework is loaded, has built its model and is warm


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    width = max(map(len, WORKLOADS))
    parser = argparse.ArgumentParser(
        "python -m benchmarks",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="\n".join(f"{w.name:{width}} {w.title}" for w in WORKLOADS.values()),
    )
    add = parser.add_argument
    add("--workload", nargs="+", choices=WORKLOADS, default=[*WORKLOADS], metavar="NAME")
    add("--threads", nargs="+", type=int, default=[1], metavar="COUNT")
    add("--cores", nargs="+", type=int, help="the cores to use; otherwise the first allowed ones")
    add("--peers", nargs="*", choices=PEERS, help="otherwise all that are installed")
    add("--python", nargs="+", type=interpreter, default=[], metavar="PEER=PATH")
    add("--against", type=Path, metavar="FOLDER", help="a checkout of laminar to compare with")
    add("--isa", choices=ISAS, help="keep all to these instructions, as if there were no others")
    add("--busy", type=int, default=0, metavar="COUNT", help="processes that spin on the cores")
    add("--seconds", type=float, default=3.0, help="time for each framework and workload")
    add("--json", type=Path, metavar="FILE", help="write all that was measured")
    add("--explain", action="store_true", help="say what a step's kernels take, and could take")
    add("--smoke", action="store_true", help="only try everything out, laminar alone, tiny sizes")
    options = parser.parse_args(arguments)
    options.cores = options.cores or machine.usable_cores()
    if not 1 <= min(options.threads) <= max(options.threads) <= len(options.cores):
        parser.error(f"--threads: from 1 to {len(options.cores)}, each needs a core")
    if options.busy < 0:
        parser.error("--busy: must not be negative")
    if not options.seconds > 0:
        parser.error("--seconds: must be more than 0")
    if options.against is not None and not (options.against / "benchmarks").is_dir():
        parser.error(f"--against: {options.against} is no checkout of laminar")
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"--json: there is no folder {options.json.parent}")
    return options


def interpreter(text: str) -> tuple[str, str]:
    """Read "torch=/path/to/python"."""
    peer, equals, path = text.partition("=")
    if not equals or peer not in PEERS:
        raise argparse.ArgumentTypeError(f"expected PEER=PATH, PEER one of {', '.join(PEERS)}")
    return peer, path


def found_frameworks(
    peers: Sequence[str] | None,
    pythons: Mapping[str, str],
    isa: str | None,
    against: Path | None,
    console: Console,
) -> Iterator[Framework]:
    """Laminar and the peers; those that were not asked for by name may be missing."""
    try:
        yield find("laminar", sys.executable, isa)
    except WorkerError as error:
        raise SystemExit(f"laminar: {error}") from error
    if against is not None:
        try:
            yield find("laminar", sys.executable, isa, against.resolve())
        except WorkerError as error:
            raise SystemExit(f"laminar in {against}: {error}") from error
    for peer in PEERS if peers is None else peers:
        try:
            python = pythons.get(peer) or pythons.get(peer.split("-")[0], sys.executable)
            yield find(peer, python, isa)
        except WorkerError as error:
            reason = str(error).splitlines()[-1:]
            if peers is not None:
                raise SystemExit(f"{peer}: {' '.join(reason)}") from error
            console.print(f"without {peer}: {' '.join(reason)}", markup=False, highlight=False)


def expected(
    plan: Sequence[tuple[Workload, int]], frameworks: Sequence[Framework], seconds: float
) -> str:
    """How much there is to measure, and about how long that takes."""
    turns = sum(workload.name in f.workloads for workload, _ in plan for f in frameworks)
    minutes = math.ceil(turns * (seconds + START_SECONDS) / 60)
    listed = ", ".join(framework.name for framework in frameworks)
    return (
        f"{len(plan)} workloads on {listed}: about {minutes} minutes, more where a peer compiles "
        f"for long; --workload and --seconds make it fewer"
    )


def explained(options: argparse.Namespace, console: Console) -> int:
    """Say of each workload why it takes what it takes; gives the exit status."""
    for name, value in machine.describe(options.isa).items():
        console.print(f"{name}: {value}", highlight=False)
    plan = [
        (WORKLOADS[name], options.cores[:threads])
        for name in options.workload
        for threads in options.threads
    ]
    return int(not explain_all(plan, tiny=options.smoke, isa=options.isa, console=console))


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write; gives the exit status."""
    options = parse(arguments)
    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    if options.explain:
        return explained(options, console)
    peers = [] if options.smoke and options.peers is None else options.peers
    begun = datetime.now(UTC).replace(microsecond=0)
    about = machine.describe(options.isa)
    if options.busy:
        about["foreign processes"] = str(options.busy)
    frameworks = list(
        found_frameworks(peers, dict(options.python), options.isa, options.against, console)
    )
    plan: list[tuple[Workload, int]] = [
        (WORKLOADS[name], threads) for name in options.workload for threads in options.threads
    ]
    told = {
        name: value
        for name, value in vars(options).items()
        if name not in ("json", "against", "python")
    }
    told |= {"python": {f.name: f.python for f in frameworks}, "begun": begun.isoformat(" ")}
    if not options.smoke:
        console.print(expected(plan, frameworks, options.seconds), highlight=False)
    results: list[Result] = []
    for workload, threads in plan:
        taking_part = [f for f in frameworks if workload.name in f.workloads]
        place = f"{len(results) + 1} of {len(plan)}: {workload.name}, threads: {threads}"
        with console.status(place):
            cores = options.cores[:threads]
            with foreign_load(cores, options.busy):
                result = measure(
                    workload, taking_part, cores, seconds=options.seconds, tiny=options.smoke
                )
        results.append(result)
        console.print(report.line(result), highlight=False)
        if options.json is not None:  # what is done stays, should a later one be interrupted
            report.write_json(options.json, results, frameworks, about, told)
    report.print_all(results, frameworks, about, console, is_full=not options.smoke)
    return int(any(entry.error for result in results for entry in result.entries))


if __name__ == "__main__":
    sys.exit(main())
