"""What a second process with a core of its own brings: ResNet-20, one batch cut in two.

python -m benchmarks.scaling [--torch /path/to/python] [--batch 64] [--seconds 10]

Each process is pinned to one core, and has one thread. laminar trains by `MultiWorker` over MPI,
PyTorch by DistributedDataParallel over gloo; both have the same weights, images and batches.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import statistics
import subprocess
import sys
from collections.abc import Sequence

from laminar.distribute.launch import mpi_command

from .cases import ROOT
from .processes import FORCED


def measured(python: str, framework: str, size: int, told: dict[str, object]) -> float:
    """The median seconds of a step.

    Raises:
        RuntimeError: a process failed.
    """
    environment = {k: v for k, v in os.environ.items() if k not in FORCED}
    environment |= {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    command = [python, "-m", "benchmarks.scaling_task", framework]
    end = [str(size), json.dumps(told)]
    if framework == "laminar" and size > 1:
        commands = [[*mpi_command(size), *command, "0", *end]]
    else:
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        environment |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        commands = [[*command, str(rank), *end] for rank in range(size)]
    started = [
        subprocess.Popen(c, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)
        for c in commands
    ]
    said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise RuntimeError(f"{framework}: a process ended with an error")
    rounds: list[float] = json.loads(said[0].strip().splitlines()[-1])
    return statistics.median(rounds)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print a row for each framework."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--torch", help="an interpreter that has PyTorch")
    parser.add_argument("--batch", type=int, default=64, help="examples in a step, of both")
    parser.add_argument("--seconds", type=float, default=10.0, help="for each measurement")
    parser.add_argument("--tiny", action="store_true", help="a small network, to try it out")
    given = parser.parse_args(arguments)
    if given.batch < 2 or given.batch % 2 or given.seconds < 0:
        parser.error("--batch must be an even number from 2 on, --seconds not below 0")
    told = {"batch": given.batch, "seconds": given.seconds, "tiny": given.tiny}
    found = {}
    for framework, python in (("laminar", sys.executable), ("torch", given.torch)):
        if python is None:
            continue
        one, two = (measured(python, framework, size, told) for size in (1, 2))
        found[framework] = two
        print(
            f"{framework}: one process {one * 1e3:.1f} ms a step, two {two * 1e3:.1f} ms: "
            f"{one / two:.2f} times as fast",
            flush=True,
        )
    if len(found) > 1:
        print(f"two processes, laminar / torch: {found['laminar'] / found['torch']:.2f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
