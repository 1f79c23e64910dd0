"""What is recomputed takes no memory in between: its second computation stands where it is used."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.program import KernelCall, View
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.schedule.fusion import fuse
from laminar.engine.graph import float32, uint32

from .planners import NotPlanned

ROWS, UNITS, DEPTH, PART = 1024, 48, 16, 4


class Part(layers.Layer):
    """Some dense layers, recomputed together or not."""

    def __init__(self, recomputed: bool, dropout: float) -> None:
        super().__init__()
        self.inner = [layers.Dense(UNITS, activation="tanh") for _ in range(PART)]
        self.drops = [layers.Dropout(dropout, seed=i) for i in range(PART)]
        self.go = laminar.remat(self.through) if recomputed else self.through

    def build(self, shape: Any) -> None:
        for layer in self.inner:
            layer.build(shape)

    def through(self, x: Any, training: bool) -> Any:
        for dense, drop in zip(self.inner, self.drops, strict=True):
            x = drop(dense(x), training=training)
        return x

    def call(self, x: Any, training: bool = False) -> Any:
        return self.go(x, training)


def trained(recomputed: bool, dropout: float) -> tuple[list[float], list[np.ndarray], int]:
    """Losses, weights, and the bytes that a step works in."""
    laminar.set_random_seed(11)
    parts = [Part(recomputed, dropout) for _ in range(DEPTH // PART)]
    model = laminar.Sequential([layers.Input((UNITS,)), *parts, layers.Dense(1)])
    model.compile("sgd", "mse")
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, UNITS)).astype(np.float32)
    history = model.fit(x, x[:, :1], batch_size=ROWS, epochs=3, verbose=0)
    ((_, event),) = model.explain_compiles()
    return history.history["loss"], model.get_weights(), event.arena_bytes


@pytest.mark.parametrize("dropout", [0.0, 0.25])
def test_a_step_holds_the_results_of_one_part(dropout: float) -> None:
    losses, weights, all_bytes = trained(False, dropout)
    again, others, few_bytes = trained(True, dropout)
    np.testing.assert_allclose(again, losses, rtol=1e-6)
    for a, b in zip(weights, others, strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-5, atol=1e-6)
    one = ROWS * UNITS * 4
    # The results of all layers, and of bools where there is dropout a quarter besides.
    assert all_bytes >= DEPTH * one * (1.25 if dropout else 1)
    # Those between the parts, those of one part, and what a gradient passes through.
    assert few_bytes <= (DEPTH // PART + (3 if dropout else 1) * PART + 4) * one
    assert few_bytes < 0.7 * all_bytes


def test_a_map_behind_a_fence_joins_no_kernel_before_it() -> None:
    b = Builder()
    x, dy = (b.storage((8, 32), float32, "input") for _ in range(2))
    w = b.storage((32, 32), float32, "input")

    def doubled(x: Any) -> View:
        return b.compute(lambda s, v: v + v, x)

    first = doubled(x)
    middle, gradient = product(b, first, w, float32), product(b, dy, w, float32)
    assert isinstance(middle, View)
    assert isinstance(gradient, View)
    fenced, same = b.fenced([x, x])
    assert fenced == same != x
    second = doubled(fenced)
    result = b.compute(lambda s, p, q: p * q, gradient, second)
    b.program.outputs = [middle, result]
    kernels = fuse(b.program)
    home = {n: k for k, kernel in enumerate(kernels) for n in kernel.writes}
    assert home[first.storage] < home[middle.storage] < home[gradient.storage]
    assert home[second.storage] == home[result.storage] == home[gradient.storage]


def test_what_is_early_is_not_when_it_is_behind_a_fence() -> None:
    b = Builder()
    x = b.storage((8, 4), float32, "input")
    (fenced,) = b.fenced([b.copy(x)])

    key = b.reduce("sum", fenced, (1,))
    (words,) = b.kernel_call("words", [key], [((8,), uint32)], NotPlanned(), hoisted=True)
    b.program.outputs = [b.copy(x), words]
    order = [s.name for s in b.program.statements if isinstance(s, KernelCall)]
    kernels = fuse(b.program)
    assert order == ["words"]
    assert kernels[0].call is None
    assert kernels[-1].call is not None or kernels[-2].call is not None


@pytest.mark.slow
def test_larger_models_hold_the_root_of_it() -> None:
    """As the paper says: four times as deep, twice as much."""

    def held(depth: int) -> int:
        root = int(depth**0.5)
        names = [laminar.Variable(np.eye(8, dtype=np.float32)) for _ in range(depth)]

        @laminar.function
        def run(x: Any) -> Any:
            with laminar.GradientTape() as tape:
                y = x
                for start in range(0, depth, root):

                    def part(y: Any, start: int = start) -> Any:
                        for w in names[start : start + root]:
                            y = ops.sin(ops.matmul(y, w))
                        return y

                    y = laminar.remat(part)(y)
                loss = ops.sum(y)
            return tape.gradient(loss, names)

        x = laminar.ops.ones((4096, 8))
        run(x)
        (cluster,) = run.concrete(x).clusters
        assert isinstance(cluster.native, NativeCluster)
        (event,) = cluster.native.events
        return event.arena_bytes

    assert held(64) <= 2.2 * held(16)
