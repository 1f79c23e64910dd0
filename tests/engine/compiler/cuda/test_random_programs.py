"""Random programs as CUDA C: shapes, orders and reductions mixed, against the reference."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from laminar import ops

from .batch import Case, build, check
from .shim import needs_compiler

pytestmark = needs_compiler

# name -> the number of inputs, and what is made of them; all give arrays of the same three axes.
STEPS: dict[str, tuple[int, Callable[..., Any]]] = {
    "add": (2, lambda x, y: x + ops.tanh(y)),
    "multiply": (2, lambda x, y: ops.sin(x) * y),
    "choose": (2, lambda x, y: ops.where(x > y, x, y * 0.5)),
    "softmax": (1, lambda x: ops.softmax(x, axis=-1)),
    "softmax-inner": (1, lambda x: ops.softmax(x, axis=1)),
    "less-mean": (1, lambda x: x - ops.mean(x, axis=0, keepdims=True)),
    "norm": (1, lambda x: x / (1 + ops.max(ops.abs(x), axis=(1, 2), keepdims=True))),
    "sum": (1, lambda x: ops.tanh(x) * ops.sum(ops.tanh(x), axis=(0, 1, 2), keepdims=True) * 0.01),
    "turn": (1, lambda x: ops.flip(x, axis=1)),
    "roll": (1, lambda x: ops.concatenate([x[:, 1:], x[:, :1]], axis=1)),
    "back-and-forth": (
        1,
        lambda x: ops.transpose(ops.exp(-ops.abs(ops.transpose(x, (2, 0, 1)))), (1, 2, 0)),
    ),
    "running": (1, lambda x: ops.tanh(ops.cumsum(x, axis=2))),
    "gram": (1, lambda x: ops.matmul(ops.tanh(ops.matmul(x, ops.swapaxes(x, 1, 2))), x) * 0.1),
}


def program(seed: int) -> Callable[[Any, Any], list[Any]]:
    """A random graph of some steps, of which several values go out."""
    rng = np.random.default_rng(seed)
    names = rng.choice(sorted(STEPS), rng.integers(3, 12))
    taken = [rng.integers(0, i + 2, STEPS[name][0]) for i, name in enumerate(names)]

    def run(x: Any, y: Any) -> list[Any]:
        values = [x, y]
        for name, given in zip(names, taken, strict=True):
            values.append(STEPS[name][1](*(values[i] for i in given)))
        return [values[-1], ops.sum(values[-2], axis=1), values[len(values) // 2]]

    return run


def test_random_programs_agree_with_the_reference() -> None:
    cases = list[Case]()
    for seed in range(24):
        rng = np.random.default_rng(100 + seed)
        shape = tuple(int(n) for n in rng.integers(1, 12, 3))
        arrays = [rng.normal(size=shape).astype(np.float32) for _ in range(2)]
        case = build(f"program {seed} of {shape}", program(seed), arrays, dynamic=bool(seed % 2))
        cases += [] if case is None else [case._replace(rtol=1e-4)]
    assert len(cases) >= 15  # some need sizes that nobody knows
    check(cases)
