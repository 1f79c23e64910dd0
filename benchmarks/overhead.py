"""What laminar itself costs, beside the kernels: import, an eager op, Session.run, a step of fit.

    python benchmarks/overhead.py

Each figure is the least of several repetitions, in microseconds unless it says otherwise.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from timeit import repeat

import numpy as np

import laminar
from laminar import engine, layers, ops


def least(run: Callable[[], object], number: int) -> float:
    """Microseconds of one call."""
    run()
    return min(repeat(run, number=number, repeat=5)) / number * 1e6


def import_time() -> float:
    """Seconds that `import laminar` adds to an empty interpreter."""
    program = "import time; t = time.perf_counter(); import laminar; print(time.perf_counter() - t)"
    return min(
        float(
            subprocess.run(
                [sys.executable, "-c", program], capture_output=True, text=True, check=True
            ).stdout
        )
        for _ in range(5)
    )


def eager_add() -> float:
    """`a + b` of two small tensors."""
    a = ops.ones((4, 4))
    return least(lambda: a + a, 2000)


def session_run() -> float:
    """`Session.run` of one small matrix product, fed."""
    graph = engine.Graph()
    with graph.as_default():
        x = engine.placeholder("float32", [None, 4])
        y = x @ np.ones((4, 4), "float32")
    value = np.ones((2, 4), "float32")
    with engine.Session(graph=graph) as session:
        return least(lambda: session.run(y, {x: value}), 2000)


def small_model() -> laminar.Sequential:
    """A 64-32-10 perceptron."""
    model = laminar.Sequential(
        [layers.Input((64,)), layers.Dense(32, activation="relu"), layers.Dense(10)]
    )
    model.compile(
        "sgd", laminar.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"]
    )
    return model


def fit_step() -> float:
    """A step of `fit` at batch 32, metrics on, without a progress bar."""
    model = small_model()
    x = np.random.default_rng(0).normal(size=(32 * 200, 64)).astype("float32")
    y = np.zeros(len(x), "int64")
    model.fit(x[:64], y[:64], verbose=0)
    times = []
    for _ in range(5):
        start = time.perf_counter()
        model.fit(x, y, verbose=0)
        times.append((time.perf_counter() - start) / 200 * 1e6)
    return min(times)


def predict_row() -> float:
    """`predict` of one row."""
    model = small_model()
    row = np.ones((1, 64), "float32")
    return least(lambda: model.predict(row, verbose=0), 200)


def main() -> None:
    print(f"import laminar          {import_time() * 1e3:10.1f} ms")
    print(f"eager add               {eager_add():10.1f} us")
    print(f"Session.run             {session_run():10.1f} us")
    print(f"fit step, 64-32-10 MLP  {fit_step():10.1f} us")
    print(f"predict, one row        {predict_row():10.1f} us")


if __name__ == "__main__":
    main()
