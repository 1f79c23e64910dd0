"""A training by replicas that do not wait, as each of its workers runs it, with a ledger.

As a program it is one worker: `python -m tests.distribute.async_training '{"cluster": ...}'`. Each
gradient has a number that no other one has, and its update adds 1 to that row of the ledger.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import sys
import time
from typing import Any

import numpy as np

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import AsyncReplicas, ClusterSpec, Server, replica_device_setter

ROWS = 100_000  # of each incarnation of a worker


def build(spec: ClusterSpec, task: int) -> tuple[Any, Any, AsyncReplicas, Any, Any]:
    """The step, the ledger, the strategy, the number of a gradient, and its update."""
    rule = replica_device_setter(cluster=spec, worker_device=f"/job:worker/task:{task}")
    with eng.device(rule):
        step = eng.get_or_create_global_step()
        ledger = eng.Variable(np.zeros(4 * ROWS, np.float32), name="ledger")
        number = eng.placeholder("int64", [1])
        loss = ops.sum(-ops.take(ledger, number, axis=0))
        replicas = AsyncReplicas(optimizers.SGD(1.0, name="sgd"))
        return step, ledger, replicas, number, replicas.minimize(loss, global_step=step)


def train(
    target: str, spec: ClusterSpec, task: int, steps: int, folder: str, start: int = 0
) -> None:
    """Train until the global step, or until there is a file "stop" in the folder.

    Tell the number of each gradient that has been applied.

    `start` is how often the worker was started before.
    """
    numbers = itertools.count((2 * start + task) * ROWS)
    with eng.Graph().as_default():
        _, _, _, number, update = build(spec, task)

        def one(step_context: Any) -> int:
            mine = next(numbers)  # another attempt is another gradient
            step_context.run_with_hooks(update, {number: [mine]})
            return mine

        with eng.MonitoredTrainingSession(
            master=target,
            is_chief=task == 0,
            checkpoint_dir=folder,
            hooks=[eng.StopAtStepHook(last_step=steps)],
            save_checkpoint_secs=None,
            save_checkpoint_steps=10,
            save_summaries_steps=None,
            save_summaries_secs=None,
            log_step_count_steps=None,
            config=eng.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{task}"]),
            max_wait_secs=60,
        ) as session:
            while not session.should_stop() and not os.path.exists(os.path.join(folder, "stop")):
                print(session.run_step_fn(one), flush=True)
                time.sleep(0.01)


def main(text: str) -> None:
    """Be a worker of a cluster."""
    logging.basicConfig(level=logging.INFO)
    told = json.loads(text)
    spec, lease = ClusterSpec(told.pop("cluster")), told.pop("lease")
    roots = [told["folder"]]
    with Server(spec, "worker", told["task"], lease_seconds=lease, roots=roots) as server:
        train(server.target, spec, **told)


if __name__ == "__main__":
    main(sys.argv[1])
