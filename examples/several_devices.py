"""Several devices in one process: layers on different devices, one batch over several, many steps.

    python examples/several_devices.py [--epochs 5]

The devices are shares of the CPU; with "gpu:0" and "gpu:1" for names it is the same program.
"""

from __future__ import annotations

import argparse
import threading
from typing import Any

import numpy as np

import laminar
from laminar import layers
from laminar.distribute import DataParallel
from laminar.engine import Graph, Session, constant, device, placeholder
from laminar.engine.runtime import SessionConfig

FEATURES = 64


def stack_over_devices(depth: int) -> tuple[Graph, Any, Any]:
    """Model parallelism: layer i of a stack is on device i, written with device scopes alone."""
    rng = np.random.default_rng(0)
    with Graph().as_default() as graph:
        x: Any = placeholder("float32", [None, FEATURES], name="x")
        h = x
        for i in range(depth):
            with device(f"cpu:{i}"):
                kernel = constant(rng.normal(size=(FEATURES, FEATURES)).astype("float32") / 8)
                h = laminar.ops.tanh(h @ kernel)
    return graph, x, h


def concurrent_steps(depth: int, steps: int) -> list[np.ndarray]:
    """Several steps at once fill the gaps that each leaves while it waits for the next device."""
    graph, x, y = stack_over_devices(depth)
    batches = np.random.default_rng(1).normal(size=(steps, 16, FEATURES)).astype("float32")
    results: list[Any] = [None] * steps
    config = SessionConfig(device_count={"cpu": depth})
    with Session(graph=graph, config=config) as session:

        def run(i: int) -> None:
            results[i] = session.run(y, {x: batches[i]})

        threads = [threading.Thread(target=run, args=(i,)) for i in range(steps)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert session.placement is not None
        for decision in session.placement.decisions:
            if decision.type == "MatMul":
                print(f"  {decision}")
    return results


def train(epochs: int, strategy: DataParallel | None) -> float:
    """Data parallelism: every device computes a slice of each batch; gives the last loss."""
    laminar.set_random_seed(1)
    (x, y), _ = laminar.datasets.digits.load_data()
    x = x.reshape(len(x), -1).astype("float32") / 16
    model = laminar.Sequential(
        [
            layers.Input((FEATURES,)),
            layers.Dense(64, activation="relu"),
            layers.Dense(10, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", strategy=strategy)
    history = model.fit(x, y, batch_size=100, epochs=epochs, shuffle=False, verbose=0).history
    return float(history["loss"][-1])


def main(arguments: list[str] | None = None) -> list[float]:
    """Run all three; gives the losses of one device, of two together, and of two on their own."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=5)
    options = parser.parse_args(arguments)

    print("A stack over three devices:")
    results = concurrent_steps(depth=3, steps=4)
    print(f"  {len(results)} steps at once, each of shape {results[0].shape}")
    losses = [train(options.epochs, None), train(options.epochs, DataParallel(["cpu:0", "cpu:1"]))]
    print(f"Loss on one device {losses[0]:.6f}, on two that share each batch {losses[1]:.6f}")
    strategy = DataParallel(2, mode="async", max_staleness=2)
    losses.append(train(options.epochs, strategy))
    print(f"On two without waiting {losses[2]:.6f}; staleness {strategy.staleness.counts}")
    return losses


if __name__ == "__main__":
    main()
