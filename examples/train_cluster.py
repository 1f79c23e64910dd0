"""Two workers train one model whose weights a parameter server keeps: three terminals.

    python examples/train_cluster.py --job ps
    python examples/train_cluster.py --job worker --task 0
    python examples/train_cluster.py --job worker --task 1

Each worker computes gradients of batches of its own, on the weights of the moment, and sends them
to the parameter server, which applies them: no worker waits for the other. The first worker
initialises, and saves a checkpoint now and then. Kill any of the three and start it again: training
goes on, from the newest checkpoint if it was the parameter server. The server ends with Ctrl-C.
On machines of a network, give the same --ps and --workers everywhere, and credentials to `Server`.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import laminar
from laminar import engine, ops
from laminar.distribute import ClusterSpec, Server

HIDDEN, CLASSES = 64, 10


def network(task: int) -> tuple[Any, Any, Any, Any]:
    """The images, the labels, a step of training and the share of right answers."""
    rng = np.random.default_rng(0)
    with engine.device("/job:ps/task:0"):
        step = engine.get_or_create_global_step()
        w1 = engine.Variable(rng.normal(0, 0.1, (64, HIDDEN)).astype("float32"), name="w1")
        b1 = engine.Variable(np.zeros(HIDDEN, "float32"), name="b1")
        w2 = engine.Variable(rng.normal(0, 0.1, (HIDDEN, CLASSES)).astype("float32"), name="w2")
        b2 = engine.Variable(np.zeros(CLASSES, "float32"), name="b2")
    with engine.device(f"/job:worker/task:{task}"):
        images = engine.placeholder("float32", [None, 64], name="images")
        labels = engine.placeholder("int32", [None], name="labels")
        logits = ops.relu(images @ w1 + b1) @ w2 + b2
        right = ops.mean(ops.cast(ops.argmax(logits, -1) == labels, "float32"))
        losses = ops.sum(ops.one_hot(labels, CLASSES) * ops.log_softmax(logits), -1)
        loss = -ops.mean(losses)
        variables = [w1, b1, w2, b2]
        gradients: Any = engine.gradients(loss, variables)
    updates = [v.assign_sub(0.2 * g) for v, g in zip(variables, gradients, strict=True)]
    return images, labels, engine.group(*updates, step.assign_add(1)), right


def train(server: Server, task: int, steps: int, folder: str) -> float:
    """Train until all workers together have made so many steps; the share of right answers."""
    (x, y), (x_test, y_test) = laminar.datasets.digits.load_data()
    x, x_test = (a.reshape(len(a), -1).astype("float32") / 16 for a in (x, x_test))
    rng = np.random.default_rng(task)
    # This worker needs the parameter server and itself: it does not wait for the others.
    mine = engine.SessionConfig(device_filters=["/job:ps", f"/job:worker/task:{task}"])
    right = 0.0
    with engine.Graph().as_default():
        images, labels, update, accuracy = network(task)
        test = {images: x_test, labels: y_test.astype("int32")}

        def measure(step_context: Any) -> float:
            return float(step_context.session.run(accuracy, test))

        with engine.MonitoredTrainingSession(
            master=server.target,
            is_chief=task == 0,
            checkpoint_dir=folder,
            save_checkpoint_steps=200,
            hooks=[engine.StopAtStepHook(last_step=steps)],
            config=mine,
        ) as session:
            while not session.should_stop():
                rows = rng.integers(0, len(x), 50)
                session.run(update, {images: x[rows], labels: y[rows].astype("int32")})
                if not session.should_stop():  # no hook counts this run
                    right = session.run_step_fn(measure)
    print(f"worker {task}: {right:.1%} of the test digits after {steps} steps of all workers")
    return right


def main(arguments: list[str] | None = None) -> float:
    """Be one of the tasks; a worker gives the share of right answers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--job", choices=("ps", "worker"), required=True)
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--ps", default="localhost:2222", help="where the parameter server is")
    parser.add_argument("--workers", default="localhost:2223,localhost:2224")
    parser.add_argument("--steps", type=int, default=2000, help="of all workers together")
    parser.add_argument("--folder", help="for checkpoints, which all tasks can reach")
    options = parser.parse_args(arguments)
    cluster = ClusterSpec({"ps": [options.ps], "worker": options.workers.split(",")})
    folder = options.folder or str(Path(tempfile.gettempdir()) / "laminar-train-cluster")
    Path(folder).mkdir(parents=True, exist_ok=True)
    with Server(cluster, options.job, options.task, roots=[folder]) as server:
        if options.job == "ps":
            print(f"the parameter server is at {server.target}", flush=True)
            server.join()
            return 0.0
        return train(server, options.task, options.steps, folder)


if __name__ == "__main__":
    main()
