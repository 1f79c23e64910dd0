"""What placements of one step over several CPU devices take, by policy.

    python -m benchmarks.placements [--units 64] [--devices 4] [--steps 60] [--random 5]

The step trains a stack of three LSTMs, unrolled over 8 times, that names no devices. With --random
it is a graph made by chance instead, one for each of so many seeds: products of matrices of three
sizes and elementwise operations, each of which takes one or two earlier results.
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
# Of a graph that is made by chance: how many operations, the sizes of matrices, and of how many
# results of its size an operation may take one.
OPERATIONS, SIZES, WIDTH = 60, (32, 128, 384), 6


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


@contextlib.contextmanager
def by_chance(seed: int, config: SessionConfig) -> Iterator[tuple[Session, Any, dict[Any, Any]]]:
    """A session, the ends of a graph that is made by chance, and its feeds."""
    rng = np.random.default_rng(seed)
    with Graph().as_default() as graph:
        fed: dict[Any, Any] = {}
        made: dict[int, list[Any]] = {}  # results by the size of their matrix
        for size in SIZES:
            x: Any = placeholder("float32", [size, size], name=f"x{size}")
            fed[x] = (rng.normal(size=(size, size)) / size).astype("float32")
            made[size] = [x]
        taken: set[int] = set()
        for _ in range(OPERATIONS):
            size = int(rng.choice(SIZES))
            recent = made[size][-WIDTH:]
            a, b = (recent[i] for i in rng.integers(len(recent), size=2))
            kind = rng.integers(3)
            made[size].append(a @ b if kind else ops.tanh(a) + b)
            taken |= {id(a), id(b)}
        ends = [y for found in made.values() for y in found[1:] if id(y) not in taken]
    with Session(graph=graph, config=config) as session:
        yield session, ends, fed


def measure(begun: Any, steps: int) -> tuple[float, int]:
    """The median seconds of the last steps, and how many devices they used.

    Args:
        begun: a context of a session, a step and its feeds.
        steps: how many are taken.
    """
    with begun as (session, step, feeds):
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
    parser.add_argument("--random", type=int, default=0, help="graphs that are made by chance")
    given = parser.parse_args(arguments)
    if min(given.units, given.devices) < 1 or given.steps < LAST:
        parser.error(f"units and devices must be above 0, steps at least {LAST}")
    for seed in range(given.random) or [None]:
        if seed is not None:
            print(f"random graph {seed}")
        for policy in ("priority", "simulated", "learned"):
            config = SessionConfig(
                device_count={"cpu": given.devices}, placement=policy, jit_compile=False
            )
            begun = training(given.units, config) if seed is None else by_chance(seed, config)
            seconds, used = measure(begun, given.steps)
            print(f"{policy:10} {seconds * 1e3:8.2f} ms on {used} of {given.devices} devices")
    return 0


if __name__ == "__main__":
    sys.exit(main())
