"""One graph over several tasks: parts of a model, replicas of it, several steps at a time.

All of it against NumPy, in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.distribute import replica_device_setter
from tests.distribute.cluster.local_cluster import LocalCluster, local_cluster

rng = np.random.default_rng(0)
X, Y = rng.normal(size=(12, 5)), rng.normal(size=(12, 2))
W1, W2 = rng.normal(size=(5, 4)), rng.normal(size=(4, 2))
RATE = 0.125  # as exact in float32, which it is kept in


@pytest.fixture(scope="module")
def cluster() -> Iterator[LocalCluster]:
    with local_cluster({"ps": 1, "worker": 2}) as found:
        yield found


def reference(steps: int) -> tuple[Any, Any]:
    """Gradient descent on the mean square error of tanh(x w1) w2."""
    w1, w2 = W1.copy(), W2.copy()
    for _ in range(steps):
        hidden = np.tanh(X @ w1)
        dy = 2 * (hidden @ w2 - Y) / Y.size
        d_w1 = X.T @ (dy @ w2.T * (1 - hidden**2))
        w1, w2 = w1 - RATE * d_w1, w2 - RATE * hidden.T @ dy
    return w1, w2


def test_layers_on_tasks_of_their_own(cluster: LocalCluster) -> None:
    """Each layer's weights, products and gradients stay with it."""
    with eng.Graph().as_default() as graph:
        x, y = eng.placeholder("float64", [None, 5]), eng.placeholder("float64", [None, 2])
        with eng.device("/job:worker/task:0"):
            w1 = eng.Variable(W1, name="w1")
            hidden: Any = ops.tanh(x @ w1)
        with eng.device("/job:worker/task:1"):
            w2 = eng.Variable(W2, name="w2")
            output: Any = hidden @ w2
            loss = ops.mean(ops.square(output - y))
        train = optimizers.SGD(RATE).minimize(loss, [w1, w2])
        with eng.Session(cluster.target()) as session:
            session.run(eng.global_variables_initializer())
            for _ in range(5):
                session.run(train, {x: X, y: Y})
            found = session.run([w1, w2])
    for a, b in zip(found, reference(5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    products = [op for op in graph.operations if op.type == "MatMul"]
    for op in products:  # each, and its gradients, beside the weight that it is of
        is_first = "task:0" in op.device
        sizes = {tuple(t.shape) for t in (*op.inputs, *op.outputs)}
        assert ((5, 4) if is_first else (4, 2)) in sizes
    assert {op.device for op in products} == {"/job:worker/task:0", "/job:worker/task:1"}


def test_a_pipeline_of_concurrent_steps(cluster: LocalCluster) -> None:
    """Parts of a batch go through the tasks at the same time; their gradients are summed."""
    with eng.Graph().as_default():
        x, y = eng.placeholder("float64", [None, 5]), eng.placeholder("float64", [None, 2])
        part = eng.placeholder("int64", [])
        with eng.device("/job:worker/task:0"):
            w1 = eng.Variable(W1, name="pipe/w1")
            hidden: Any = ops.tanh(x @ w1)
        with eng.device("/job:worker/task:1"):
            w2 = eng.Variable(W2, name="pipe/w2")
            loss = ops.mean(ops.square(hidden @ w2 - y))
        gives, takes = [], []
        for w, gradient in zip((w1, w2), eng.gradients(loss, [w1, w2]), strict=True):
            with eng.device(w.op.device):
                total = eng.ConditionalAccumulator("float64", w.shape, f"sum/{w.name}")
                gives.append(total.apply_grad(gradient, part))
                takes.append((total.take_grad(4), w))
        update = optimizers.SGD(RATE).apply_gradients(takes)
        with eng.Session(cluster.target()) as session, ThreadPoolExecutor(4) as threads:
            session.run(eng.global_variables_initializer())
            for step in range(5):
                rows = [slice(3 * i, 3 * i + 3) for i in range(4)]
                feeds = [{x: X[r], y: Y[r], part: step} for r in rows]
                list(threads.map(lambda fed: session.run(gives, fed), feeds))
                session.run(update)
            found = session.run([w1, w2])
    for a, b in zip(found, reference(5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_replicas_in_one_graph(cluster: LocalCluster) -> None:
    """Each worker computes half of the batch; the server applies the gradient of the whole."""
    with eng.Graph().as_default() as graph:
        x, y = eng.placeholder("float64", [12, 5]), eng.placeholder("float64", [12, 2])
        with eng.device(replica_device_setter(cluster=cluster.spec)):
            w1 = eng.Variable(W1, name="replicas/w1")
            w2 = eng.Variable(W2, name="replicas/w2")
            losses = []
            for i in range(2):
                with eng.device(f"/job:worker/task:{i}"):
                    half: Any = ops.tanh(x[6 * i : 6 * i + 6] @ w1)
                    losses.append(ops.mean(ops.square(half @ w2 - y[6 * i : 6 * i + 6])))
            train = optimizers.SGD(RATE).minimize((losses[0] + losses[1]) / 2, [w1, w2])
        with eng.Session(cluster.target()) as session:
            session.run(eng.global_variables_initializer())
            for _ in range(5):
                session.run(train, {x: X, y: Y})
            found = session.run([w1, w2])
    for a, b in zip(found, reference(5), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    places = {op.device for op in graph.operations if op.type == "MatMul"}
    assert places == {"/job:worker/task:0", "/job:worker/task:1"}
