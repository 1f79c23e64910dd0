"""A small training by replicas on parameter servers, as each of its workers runs it.

As a program it is one worker: `python -m tests.distribute.replica_training '{"cluster": ...}'`.
What a worker trains on is a function of the step and of its number.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import ClusterSpec, Server, SyncReplicas, replica_device_setter

ROWS, WIDTH, BATCH = 50, 4, 6
RATE = 0.1


def data(replica: int, step: int) -> tuple[Any, Any]:
    """The ids (BATCH,) and targets (BATCH, 2) of a worker in a step."""
    rng = np.random.default_rng(1000 * step + replica)
    return rng.integers(0, ROWS, BATCH), rng.normal(size=(BATCH, 2)).astype("float32")


def initial() -> tuple[Any, Any]:
    """A table of embeddings, and a matrix."""
    rng = np.random.default_rng(7)
    table = rng.normal(size=(ROWS, WIDTH)).astype("float32")
    return table, rng.normal(size=(WIDTH, 2)).astype("float32")


def reference(replicas: int, steps: int) -> tuple[Any, Any]:
    """What one process makes of the batches of all, in float64: SGD on the mean of the losses."""
    table, w = (x.astype("float64") for x in initial())
    for step in range(steps):
        d_table, d_w = np.zeros_like(table), np.zeros_like(w)
        for replica in range(replicas):
            ids, y = data(replica, step)
            x = table[ids]
            dy = 2 * (x @ w - y) / y.size / replicas
            d_w += x.T @ dy
            np.add.at(d_table, ids, dy @ w.T)
        table -= RATE * d_table
        w -= RATE * d_w
    return table, w


@dataclass
class Worker:
    """What a worker is told.

    Attributes:
        task: its number; 0 is the chief.
        total, required: how many workers there are, and how many a step waits for.
        steps: when training ends, of the global step.
        own_steps: how many it has data for, None for as many as are asked.
        folder: for checkpoints, "" for none.
        sleep: seconds before each step.
        optimizer: its name.
        timeout: of a step, in seconds.
        version: of the program: 2 trains a bias, too; 3 has a matrix of another shape.
        losses: what it has seen, by step.
    """

    task: int
    total: int
    required: int
    steps: int
    own_steps: int | None = None
    folder: str = ""
    sleep: float = 0.0
    optimizer: str = "sgd"
    timeout: float = 60.0
    version: int = 1
    losses: dict[int, float] = field(default_factory=dict)

    def train(self, target: str, spec: ClusterSpec) -> None:
        """Train until the end."""
        rule = replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{self.task}")
        mine = eng.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{self.task}"])
        with eng.Graph().as_default(), eng.device(rule):
            step = eng.get_or_create_global_step()
            values = initial()
            if self.version == 3:
                values = values[0], values[1][:, :1]
            table, w = (eng.Variable(x, name=n) for x, n in zip(values, "tw", strict=True))
            ids = eng.placeholder("int64", [None], name="ids")
            y = eng.placeholder("float32", [None, 2], name="y")
            found = ops.take(table, ids, axis=0) @ w
            if self.version == 2:
                found = found + eng.Variable(np.zeros(2, "float32"), name="b")
            loss = ops.mean(ops.square(found - y))
            optimizer: Any = optimizers.get(
                {
                    "class_name": self.optimizer,
                    "config": {"learning_rate": RATE, "name": "optimizer"},
                }
            )
            sync = SyncReplicas(optimizer, self.required, self.total, timeout_seconds=self.timeout)
            train = sync.minimize(loss, global_step=step)
            hooks = [
                sync.make_session_run_hook(self.task == 0),
                eng.StopAtStepHook(last_step=self.steps),
            ]
            now = sync.local_step.value

            def one(step_context: Any) -> None:
                number = int(step_context.session.run(now))
                if number >= self.steps:  # it came when all was done
                    step_context.request_stop()
                given = data(self.task, number)
                feeds = dict(zip((ids, y), given, strict=True))
                self.losses[number] = float(step_context.run_with_hooks([loss, train], feeds)[0])

            with eng.MonitoredTrainingSession(
                master=target,
                is_chief=self.task == 0,
                checkpoint_dir=self.folder or None,
                hooks=hooks,
                save_checkpoint_secs=None,
                save_checkpoint_steps=3 if self.folder else None,
                save_summaries_steps=None,
                save_summaries_secs=None,
                log_step_count_steps=None,
                config=mine,
                max_wait_secs=60,
            ) as session:
                while not session.should_stop():
                    if self.own_steps is not None and len(self.losses) == self.own_steps:
                        break
                    time.sleep(self.sleep)
                    session.run_step_fn(one)
                    print(f"worker {self.task} has done {len(self.losses)}", flush=True)


def main(text: str) -> None:
    """Be a worker of a cluster."""
    logging.basicConfig(level=logging.INFO)
    told = json.loads(text)
    spec = ClusterSpec(told.pop("cluster"))
    worker = Worker(**told)
    with Server(spec, "worker", worker.task, lease_seconds=5, roots=[worker.folder or "."]) as s:
        worker.train(s.target, spec)


if __name__ == "__main__":
    main(sys.argv[1])
