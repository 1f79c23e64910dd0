"""Model parallelism: a stack of three LSTMs, each on a device of its own, in one dataflow graph.

    python examples/lstm_stack.py [--steps 100]

The layers are put on devices by `device` alone; what crosses from one to the next is sent and
received. While one layer is at time t the one below is at t + 1. One graph serves any number of
steps at once: several client threads fill the gaps that each step leaves.
"""

from __future__ import annotations

import argparse
import threading
from typing import Any, NamedTuple

import numpy as np

from laminar import ops
from laminar.engine import (
    Graph,
    Session,
    SessionConfig,
    Variable,
    device,
    global_variables_initializer,
    gradients,
    placeholder,
)

LAYERS, UNITS, TIMES = 3, 8, 6
RATE = 0.3


class Training(NamedTuple):
    """A graph that learns to continue waves.

    Attributes:
        graph: it.
        inputs: a placeholder of shape (batch, TIMES, 1).
        targets: the same waves one time later.
        loss: the mean squared error.
        step: operations that update all weights.
        initialize: operation that gives them their first values.
    """

    graph: Graph
    inputs: Any
    targets: Any
    loss: Any
    step: list[Any]
    initialize: Any


def lstm_weights(layer: int, inputs: int) -> tuple[Variable, Variable]:
    """Kernel and bias of the four gates of a layer."""
    rng = np.random.default_rng(layer)
    kernel = rng.normal(size=(inputs + UNITS, 4 * UNITS)) * 2 / np.sqrt(inputs + UNITS)
    bias = np.zeros(4 * UNITS)
    return Variable(kernel, name=f"kernel_{layer}"), Variable(bias, name=f"bias_{layer}")


def lstm(x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    """One time step: c' = f c + i g, h' = o tanh(c'); gates of [x, h] kernel + bias."""
    gates = ops.concatenate([x, h], axis=1) @ kernel + bias
    i, f, o, g = ops.split(gates, 4, axis=1)
    c = ops.sigmoid(f + 1.0) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


def build(devices: int) -> Training:
    """The graph, its layers on `devices` devices."""
    with Graph().as_default() as graph:
        inputs: Any = placeholder("float64", [None, TIMES, 1], name="inputs")
        targets: Any = placeholder("float64", [None, TIMES, 1], name="targets")
        weights: list[Variable] = []
        sequence = [inputs[:, t] for t in range(TIMES)]
        for layer in range(LAYERS):
            with device(f"cpu:{layer % devices}"):
                kernel, bias = lstm_weights(layer, UNITS if layer else 1)
                h = c = ops.zeros_like(ops.tile(inputs[:, 0], (1, UNITS)))
                outputs = []
                for x in sequence:
                    h, c = lstm(x, h, c, kernel.value, bias.value)
                    outputs.append(h)
                sequence, weights = outputs, [*weights, kernel, bias]
        with device(f"cpu:{(LAYERS - 1) % devices}"):
            last = Variable(np.full((UNITS, 1), 1.0 / UNITS), name="last")
            weights.append(last)
            found = ops.stack([h @ last.value for h in sequence], axis=1)
            loss = ops.mean(ops.square(found - targets))
        slopes: list[Any] = gradients(loss, weights)
        step = [w.assign_sub(RATE * slope) for w, slope in zip(weights, slopes, strict=True)]
        initialize = global_variables_initializer()
    return Training(graph, inputs, targets, loss, step, initialize)


def waves(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Sines of random phase, and the same one time later."""
    phase = np.random.default_rng(seed).uniform(0, 2 * np.pi, (32, 1, 1))
    wave = np.sin(phase + 0.5 * np.arange(TIMES + 1)[None, :, None])
    return wave[:, :-1], wave[:, 1:]


def train(steps: int, devices: int, clients: int = 1) -> tuple[float, Any]:
    """`steps` steps by `clients` threads at once; gives the loss after them, and the placement."""
    work = build(devices)
    config = SessionConfig(device_count={"cpu": devices})
    with Session(graph=work.graph, config=config) as session:
        session.run(work.initialize)

        def run(first: int) -> None:
            for i in range(first, steps, clients):
                x, y = waves(i)
                session.run(work.step, {work.inputs: x, work.targets: y})

        threads = [threading.Thread(target=run, args=(i,)) for i in range(clients)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        placement = session.placement
        x, y = waves(steps)
        return float(session.run(work.loss, {work.inputs: x, work.targets: y})), placement


def main(arguments: list[str] | None = None) -> list[float]:
    """Train on one device, on three, and on three with three steps at once; gives the losses."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args(arguments)

    start, _ = train(0, devices=1)
    one, _ = train(options.steps, devices=1)
    three, placement = train(options.steps, devices=LAYERS)
    together, _ = train(options.steps, devices=LAYERS, clients=3)
    print(f"Loss {start:.6f} at first, after {options.steps} steps on one device {one:.6f}")
    print(f"on three devices {three:.6f}, with three steps at once {together:.6f}")
    products = [d for d in placement.decisions if d.type == "MatMul"]
    for i in range(LAYERS):
        count = sum(d.device.endswith(f"cpu:{i}") for d in products)
        print(f"  layer {i}: {count} matrix products on cpu:{i}")
    return [start, one, three, together]


if __name__ == "__main__":
    main()
