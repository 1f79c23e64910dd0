"""A step of training with the weights on a parameter server, beside TensorFlow's grpc sessions.

    python -m benchmarks.parameter_servers --tensorflow /path/to/python-with-tensorflow

A server process keeps the weights of an MLP 784-H-H-10; a worker reads them, computes the gradients
of a batch of 128, and the server applies SGD. Medians of the steps, in ms.
"""

from __future__ import annotations

import argparse
import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

BATCH, CLASSES, WARM = 128, 10, 30
ROOT = Path(__file__).resolve().parents[1]


def addresses() -> dict[str, list[str]]:
    """A cluster of a server and a worker, at free ports of this machine."""
    found = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            found.append(f"127.0.0.1:{free.getsockname()[1]}")
    return {"ps": found[:1], "worker": found[1:]}


def weights(hidden: int) -> list[tuple[Any, Any]]:
    """Kernels and biases."""
    rng = np.random.default_rng(0)
    sizes = [784, hidden, hidden, CLASSES]
    return [
        (rng.normal(0, 0.05, (a, b)).astype("float32"), np.zeros(b, "float32"))
        for a, b in zip(sizes, sizes[1:], strict=False)
    ]


def batch() -> tuple[Any, Any]:
    """Images and labels."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(BATCH, 784)).astype("float32")
    return x, rng.integers(0, CLASSES, BATCH).astype("int32")


def median_ms(step: Callable[[], Any], count: int) -> float:
    """Of so many steps, after some that warm up."""
    for _ in range(WARM):
        step()
    taken = []
    for _ in range(count):
        start = time.perf_counter()
        step()
        taken.append(time.perf_counter() - start)
    return float(np.median(taken)) * 1e3


def in_laminar(hidden: int, count: int) -> float:
    """The step of laminar."""
    from laminar import engine, ops, optimizers
    from laminar.distribute import Server, replica_device_setter

    cluster = addresses()
    command = [sys.executable, "-m", "laminar.distribute.server", "--cluster", json.dumps(cluster)]
    server = subprocess.Popen(
        [*command, "--job", "ps", "--task", "0"], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert server.stdout is not None
    server.stdout.readline()
    rule = replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")
    try:
        with Server(cluster, "worker", 0) as worker, engine.Graph().as_default():
            with engine.device(rule):
                step = engine.get_or_create_global_step()
                x = engine.placeholder("float32", [None, 784])
                y = engine.placeholder("int32", [None])
                h: Any = x
                for i, (kernel, bias) in enumerate(weights(hidden)):
                    h = ops.relu(h) if i else h
                    w = engine.Variable(kernel, name=f"w{i}")
                    h = h @ w + engine.Variable(bias, name=f"b{i}")
                right = ops.sum(ops.one_hot(y, CLASSES) * ops.log_softmax(h), -1)
                loss = -ops.mean(right)
                train = optimizers.SGD(0.01, name="sgd").minimize(loss, global_step=step)
                init = engine.global_variables_initializer()
            feeds = dict(zip((x, y), batch(), strict=True))
            with engine.Session(worker.target) as session:
                session.run(init)
                return median_ms(lambda: session.run([train, loss], feeds), count)
    finally:
        server.kill()
        server.communicate()


def in_tensorflow(hidden: int, count: int) -> float:
    """The step of TensorFlow 1's API, in a Python that has it."""
    import tensorflow as tf

    v1 = tf.compat.v1
    v1.disable_eager_execution()
    cluster = addresses()
    code = (
        "import json, sys, tensorflow as tf\n"
        "tf.compat.v1.train.Server(json.loads(sys.argv[1]), 'ps', 0).join()"
    )
    server = subprocess.Popen(
        [sys.executable, "-c", code, json.dumps(cluster)], stderr=subprocess.DEVNULL
    )
    try:
        worker = v1.train.Server(cluster, "worker", 0)
        rule = v1.train.replica_device_setter(
            cluster=tf.train.ClusterSpec(cluster), worker_device="/job:worker/task:0"
        )
        with v1.device(rule):
            step = v1.train.get_or_create_global_step()
            x, y = v1.placeholder(tf.float32, [None, 784]), v1.placeholder(tf.int32, [None])
            h = x
            for i, (kernel, bias) in enumerate(weights(hidden)):
                h = tf.nn.relu(h) if i else h
                h = tf.matmul(h, v1.Variable(kernel)) + v1.Variable(bias)
            right = tf.reduce_sum(tf.one_hot(y, CLASSES) * tf.nn.log_softmax(h), -1)
            loss = -tf.reduce_mean(right)
            train = v1.train.GradientDescentOptimizer(0.01).minimize(loss, global_step=step)
            init = v1.global_variables_initializer()
        feeds = dict(zip((x, y), batch(), strict=True))
        with v1.Session(worker.target) as session:
            session.run(init)
            return median_ms(lambda: session.run([train, loss], feeds), count)
    finally:
        server.kill()
        server.wait()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print a row for each width."""
    parser = argparse.ArgumentParser("python -m benchmarks.parameter_servers", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--hidden", nargs="+", type=int, default=[32, 512])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--tensorflow", help="a Python that has TensorFlow")
    parser.add_argument("--own", choices=("laminar", "tensorflow"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.own is not None:
        run = in_laminar if given.own == "laminar" else in_tensorflow
        print(run(given.hidden[0], given.steps))
        return 0
    for hidden in given.hidden:
        found = {"laminar": _ask(sys.executable, "laminar", hidden, given.steps)}
        if given.tensorflow:
            found["tensorflow"] = _ask(given.tensorflow, "tensorflow", hidden, given.steps)
        row = "  ".join(f"{name} {ms:6.2f} ms" for name, ms in found.items())
        ratio = found["laminar"] / found.get("tensorflow", float("nan"))
        print(f"784-{hidden}-{hidden}-10, batch {BATCH}: {row}  laminar / tensorflow {ratio:.2f}")
    return 0


def _ask(python: str, own: str, hidden: int, steps: int) -> float:
    """The median of a process of its own."""
    done = subprocess.run(
        [python, __file__, "--own", own, "--hidden", str(hidden), "--steps", str(steps)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
        cwd=ROOT,
    )
    return float(done.stdout.split()[-1])


if __name__ == "__main__":
    sys.exit(main())
