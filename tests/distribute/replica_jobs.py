"""Trainings by replicas whose servers and workers are processes, to be killed and stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.distribute.cluster.local_cluster import free_addresses
from tests.distribute.cluster.spawned_cluster import ROOT, SpawnedCluster


class Job:
    """A parameter server and two workers.

    Args:
        folder: for checkpoints and logs, to be made.
        program: the module that a worker runs; it takes what it is told as JSON, with `cluster`,
            `task` and `folder`.
        told: the rest of that.
        lease_seconds: of the server.
    """

    def __init__(
        self, folder: Path, program: str, told: dict[str, Any], lease_seconds: float = 5
    ) -> None:
        self.folder, self.program, self.told = folder, program, told
        folder.mkdir()
        options = ["--root", str(folder), "--lease-seconds", str(lease_seconds)]
        self.cluster = SpawnedCluster({"ps": 1}, options)
        self.spec = {**self.cluster.spec.as_dict(), "worker": free_addresses(2)}
        self.workers = [self.start(i) for i in range(2)]

    def start(self, task: int, **more: Any) -> subprocess.Popen[str]:
        """A worker."""
        told = {"cluster": self.spec, "task": task, "folder": str(self.folder), **self.told, **more}
        environment = {k: v for k, v in os.environ.items() if not k.startswith("OPENBLAS")}
        with (self.folder / f"worker-{task}.log").open("a") as log:
            return subprocess.Popen(
                [sys.executable, "-m", self.program, json.dumps(told)],
                cwd=ROOT,
                env={**environment, "PYTHONPATH": str(ROOT)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def log(self, task: int) -> str:
        """What a worker has logged."""
        return (self.folder / f"worker-{task}.log").read_text()

    def lines(self, task: int, count: int) -> list[str]:
        """The next lines that a worker prints; it must not end before."""
        output = self.workers[task].stdout
        assert output is not None
        found = [output.readline() for _ in range(count)]
        assert all(found), self.log(task)
        return found

    def kill(self, victim: str, **more: Any) -> str:
        """Kill a task, "ps" or the number of a worker, and start it again, told more.

        Gives what a worker has printed that was not read.
        """
        if victim == "ps":
            self.cluster.kill("ps:0")
            self.cluster.start("ps:0")
            return ""
        task = int(victim)
        self.workers[task].send_signal(signal.SIGKILL)
        rest, _ = self.workers[task].communicate()
        self.workers[task] = self.start(task, **more)
        return rest

    def finish(self) -> list[str]:
        """Wait for the end; gives what each worker has printed that was not read."""
        found = []
        for i, worker in enumerate(self.workers):
            found.append(worker.communicate(timeout=60)[0])
            assert worker.returncode == 0, self.log(i)
        return found

    def close(self) -> None:
        """End all."""
        for worker in self.workers:
            if worker.poll() is None:
                worker.kill()
            worker.communicate()
        self.cluster.stop()
