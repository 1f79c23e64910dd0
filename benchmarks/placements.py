"""What placements of one training step over several CPU devices take, by policy.

    python -m benchmarks.placements [--units 64] [--devices 4] [--steps 60]

The step trains a stack of three LSTMs, unrolled over 8 times, that names no devices.
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine import (
    Graph,
    Session,
    SessionConfig,
    Variable,
    global_variables_initializer,
    gradients,
    placeholder,
)

LAYERS, TIMES, BATCH, RATE = 3, 8, 32, 0.05
LAST = 20  # the steps whose median counts


def _weights(rng: np.random.Generator, inputs: int, units: int) -> tuple[Variable, Variable]:
    kernel = rng.normal(size=(inputs + units, 4 * units)) / np.sqrt(inputs + units)
    return Variable(kernel.astype("float32")), Variable(np.zeros(4 * units, "float32"))


def _lstm(x: Any, h: Any, c: Any, kernel: Any, bias: Any) -> tuple[Any, Any]:
    gates = ops.concatenate([x, h], axis=1) @ kernel + bias
    i, f, o, g = ops.split(gates, 4, axis=1)
    c = ops.sigmoid(f + 1.0) * c + ops.sigmoid(i) * ops.tanh(g)
    return ops.sigmoid(o) * ops.tanh(c), c


@contextlib.contextmanager
def training(units: int, config: SessionConfig) -> Iterator[tuple[Session, Any, dict[Any, Any]]]:
    """A session, a training step for it, and its feeds."""
    rng = np.random.default_rng(0)
    with Graph().as_default() as graph:
        inputs: Any = placeholder("float32", [BATCH, TIMES, 1], name="inputs")
        sequence: list[Any] = [inputs[:, t] for t in range(TIMES)]
        weights: list[Variable] = []
        for layer in range(LAYERS):
            kernel, bias = _weights(rng, units if layer else 1, units)
            weights += [kernel, bias]
            h = c = ops.zeros((BATCH, units))
            for t, x in enumerate(sequence):
                h, c = _lstm(x, h, c, kernel.value, bias.value)
                sequence[t] = h
        loss = ops.mean(ops.square(ops.stack(sequence, axis=1) - inputs))
        slopes: list[Any] = gradients(loss, weights)
        step = [w.assign_sub(RATE * s) for w, s in zip(weights, slopes, strict=True)]
        initialize = global_variables_initializer()
    with Session(graph=graph, config=config) as session:
        session.run(initialize)
        yield session, step, {inputs: rng.normal(size=(BATCH, TIMES, 1)).astype("float32")}


def measure(policy: str, units: int, devices: int, steps: int) -> tuple[float, int]:
    """The median seconds of the last steps, and how many devices they used."""
    config = SessionConfig(device_count={"cpu": devices}, placement=policy, jit_compile=False)
    with training(units, config) as (session, step, feeds):
        seconds = []
        for _ in range(steps):
            start = time.perf_counter()
            session.run(step, feeds)
            seconds.append(time.perf_counter() - start)
        placement = session.placement
        assert placement is not None
        return statistics.median(seconds[-LAST:]), len(placement.used)


def main(arguments: list[str] | None = None) -> int:
    """Print a line for each policy."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--units", type=int, default=64)
    parser.add_argument("--devices", type=int, default=4)
    parser.add_argument("--steps", type=int, default=60)
    given = parser.parse_args(arguments)
    if min(given.units, given.devices) < 1 or given.steps < LAST:
        parser.error(f"units and devices must be above 0, steps at least {LAST}")
    for policy in ("priority", "simulated", "learned"):
        seconds, used = measure(policy, given.units, given.devices, given.steps)
        print(f"{policy:10} {seconds * 1e3:8.2f} ms on {used} of {given.devices} devices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
