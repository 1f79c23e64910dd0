"""A process that builds a model, trains it, and prints what that took; see fresh.py.

python -m benchmarks.training_process FRAMEWORK WORKLOAD [--tiny]
"""

from __future__ import annotations

import json
import sys
from time import perf_counter

from . import machine
from .fresh import TRAININGS
from .worker import limit_threads, module_of, peak_bytes
from .workloads import WORKLOADS

ROUNDS = 2  # over all batches, besides the first step and the steps that are compared


def main() -> None:
    """Train."""
    framework, name, *options = sys.argv[1:]
    limit_threads(framework, len(machine.usable_cores()))
    problem = WORKLOADS[name].problem("--tiny" in options)
    case = module_of(framework).CASES[TRAININGS[name]](problem)
    start = perf_counter()
    if problem.batches == 1:
        case.run()
    seconds = perf_counter() - start
    losses = case.checks()
    if problem.batches > 1:
        for _ in range(ROUNDS):
            case.run()
    print()
    print(json.dumps({"seconds": seconds, "bytes": peak_bytes(), "losses": losses}))


if __name__ == "__main__":
    main()
