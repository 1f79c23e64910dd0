"""Clusters whose servers are processes of their own, which can be killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from .local_cluster import spec_of

ROOT = Path(__file__).resolve().parents[3]


class SpawnedCluster:
    """Processes by the names of their tasks, such as "worker:0"."""

    def __init__(self, jobs: Mapping[str, int], options: Sequence[str] = ()) -> None:
        self.spec = spec_of(jobs)
        self._options = options
        self.processes: dict[str, subprocess.Popen[str]] = {}
        names = [f"{job}:{i}" for job, n in jobs.items() for i in range(n)]
        for name in names:
            self._spawn(name)
        for name in names:
            self._wait(name)

    def _spawn(self, name: str) -> None:
        job, _, task = name.partition(":")
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
        self.processes[name] = subprocess.Popen(
            [
                *(sys.executable, "-m", "laminar.distribute.server"),
                *("--cluster", json.dumps(self.spec.as_dict()), "--job", job, "--task", task),
                *self._options,
            ],
            env={**environment, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def _wait(self, name: str) -> None:
        """Until a server says that it serves."""
        output = self.processes[name].stdout
        assert output is not None
        assert "serves at" in output.readline()

    def target(self, name: str) -> str:
        """That of a task."""
        job, _, task = name.partition(":")
        return f"grpc://{self.spec.task_address(job, int(task))}"

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a process a signal."""
        process = self.processes[name]
        process.send_signal(number)
        if number in (signal.SIGKILL, signal.SIGTERM):
            process.wait(20)
            assert process.stdout is not None
            process.stdout.close()
        if number == signal.SIGSTOP:  # each thread stops when it comes to it
            deadline = time.monotonic() + 20
            while _runs(process.pid) and time.monotonic() < deadline:
                time.sleep(0.001)

    def start(self, name: str) -> None:
        """A new process at the address of one that has ended."""
        self._spawn(name)
        self._wait(name)

    def stop(self) -> None:
        """End them all."""
        for process in self.processes.values():
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.kill()
                process.wait(20)
            if process.stdout is not None:
                process.stdout.close()


@contextmanager
def spawned_cluster(
    jobs: Mapping[str, int], options: Sequence[str] = ()
) -> Iterator[SpawnedCluster]:
    """A cluster for the time of a block."""
    cluster = SpawnedCluster(jobs, options)
    try:
        yield cluster
    finally:
        cluster.stop()


def _runs(pid: int) -> bool:
    """Whether a thread of a process has not been stopped."""
    for status in Path(f"/proc/{pid}/task").glob("*/stat"):
        state = status.read_text().rpartition(")")[2].split()[0]
        if state not in "TtZX":
            return True
    return False
