"""The process that one framework runs in: prepares a workload, then times blocks when told to.

    python -m benchmarks.worker FRAMEWORK                           which workloads it has
    python -m benchmarks.worker FRAMEWORK WORKLOAD CORES [--tiny]   one workload
    python -m benchmarks.worker laminar WORKLOAD CORES --explain    why it takes what it takes

One line of JSON goes out for each line that comes in ({"seconds": length of a block}), after a
first one that tells what was prepared. What frameworks print goes to the standard error.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import sys
from collections.abc import Callable
from statistics import median
from time import perf_counter
from typing import IO, Any

from . import fresh
from .cases import Case
from .explain import explained
from .isa import keep_products
from .machine import pin, versions
from .problems import Problem
from .workloads import FRAMEWORKS, WORKLOADS

SAMPLE_SECONDS = 5e-3  # a sample of quick calls takes at least this long
WARM_UP_SECONDS = 0.5
WARM_UP_RUNS = 3
EXPLAINED_SECONDS = 1.0  # that a step is timed before it is explained
SLOW_SECONDS = 0.5  # a run that takes longer needs no warming up


def module_of(framework: str) -> Any:
    """The module that knows the workloads in a framework."""
    return importlib.import_module(f".frameworks.{FRAMEWORKS[framework][0]}", __package__)


def cases_of(framework: str, is_tiny: bool) -> dict[str, Callable[[Problem], Case]]:
    """All workloads that a framework has."""
    own: dict[str, Callable[[Problem], Case]] = module_of(framework).CASES
    return {**own, **fresh.cases(framework, own, is_tiny)}


def limit_threads(framework: str, count: int) -> None:
    """Tell torch, which reads no environment for its second pool; the others have read theirs."""
    if framework.startswith("torch"):
        torch = importlib.import_module("torch")
        torch.set_num_threads(count)
        torch.set_num_interop_threads(1)


def warm_up(case: Case) -> int:
    """Run until the pace is steady; gives the number of runs of a sample."""
    start, runs, fastest = perf_counter(), 0, float("inf")
    while runs < WARM_UP_RUNS or perf_counter() - start < WARM_UP_SECONDS:
        before = perf_counter()
        case.run()
        fastest = min(fastest, perf_counter() - before)
        runs += 1
        if fastest > SLOW_SECONDS:
            break
    return max(1, round(SAMPLE_SECONDS / fastest))


def measure(case: Case, number: int, seconds: float) -> float:
    """The median time of a step over a block.

    The first sample, which fills the caches after another framework ran, is left out.
    """
    start = perf_counter()
    samples = [case.sample(number)]
    if perf_counter() - start < SLOW_SECONDS and not case.is_fresh_process:
        samples.clear()
    start = perf_counter()
    while not samples or perf_counter() - start < seconds:
        samples.append(case.sample(number))
    return median(samples)


def peak_bytes() -> int | None:
    """The most memory that this process has held."""
    try:
        import resource  # not on Windows
    except ImportError:
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def serve(case: Case, is_tiny: bool, lines: IO[str], replies: IO[str]) -> None:
    """Answer requests for blocks until there are no more."""

    def reply(**values: Any) -> None:
        print(json.dumps(values), file=replies, flush=True)

    checks = case.checks()
    number = 1 if is_tiny or case.is_fresh_process else warm_up(case)
    reply(checks=checks)
    for line in lines:
        seconds = measure(case, number, json.loads(line)["seconds"])
        reply(seconds=seconds, peak_bytes=peak_bytes())


def main() -> None:
    """Serve the process that started this one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("framework", choices=FRAMEWORKS)
    parser.add_argument("workload", choices=WORKLOADS, nargs="?")
    parser.add_argument("cores", type=int, nargs="*")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--explain", action="store_true")
    options = parser.parse_args()
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    if options.cores:
        pin(options.cores)
    keep_products(options.framework, os.environ)
    cases = cases_of(options.framework, options.tiny)
    if options.workload is None:
        packages = FRAMEWORKS[options.framework][1]
        about = {"workloads": [*cases], "versions": versions(packages)}
        print(json.dumps(about), file=replies, flush=True)
        return
    limit_threads(options.framework, len(options.cores))
    problem = WORKLOADS[options.workload].problem(options.tiny)
    if options.explain:
        case = cases[options.workload](problem)
        case.checks()
        step = measure(case, 1 if options.tiny else warm_up(case), EXPLAINED_SECONDS)
        print(json.dumps(explained(case, step)), file=replies, flush=True)
        return
    serve(cases[options.workload](problem), options.tiny, sys.stdin, replies)


if __name__ == "__main__":
    main()
