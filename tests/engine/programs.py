"""Random programs: one list of steps, run by NumPy, at once, in a function, and in a session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from hypothesis import strategies as st

from laminar.engine.ops.array.broadcast import broadcast_like
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add, multiply, square, subtract
from laminar.engine.ops.math.elementary import sin, tanh

# name -> (number of inputs, ours, NumPy's). All map 2 x 2 matrices to 2 x 2 matrices of moderate
# size, and are smooth.
STEPS: dict[str, tuple[int, Callable[..., Any], Callable[..., Any]]] = {
    "add": (2, lambda a, b: add(tanh(a), b), lambda a, b: np.tanh(a) + b),
    "subtract": (2, lambda a, b: subtract(a, tanh(b)), lambda a, b: a - np.tanh(b)),
    "multiply": (2, lambda a, b: multiply(sin(a), tanh(b)), lambda a, b: np.sin(a) * np.tanh(b)),
    "matmul": (2, lambda a, b: matmul(tanh(a), sin(b)), lambda a, b: np.tanh(a) @ np.sin(b)),
    "square": (1, lambda a: square(tanh(a)), lambda a: np.tanh(a) ** 2),
    "row": (1, lambda a: broadcast_like(tanh(a[:1]), a), lambda a: np.tanh(a[[0, 0]])),
    "identity": (1, identity, lambda a: a),
}

Program = list[tuple[str, list[int]]]


@st.composite
def programs(draw: st.DrawFn, inputs: int = 2, most: int = 12) -> Program:
    """Steps that take earlier values: a random acyclic graph, with values used many times."""
    steps: Program = []
    for i in range(draw(st.integers(1, most))):
        name = draw(st.sampled_from(sorted(STEPS)))
        taken = [draw(st.integers(0, inputs + i - 1)) for _ in range(STEPS[name][0])]
        steps.append((name, taken))
    return steps


def run(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """All values of the program on tensors: the inputs, then the result of each step."""
    values = list(inputs)
    for name, taken in program:
        values.append(STEPS[name][1](*(values[i] for i in taken)))
    return values


def reference(program: Program, inputs: Sequence[Any]) -> list[Any]:
    """As `run`, on arrays."""
    values = list(inputs)
    for name, taken in program:
        values.append(STEPS[name][2](*(values[i] for i in taken)))
    return values


def needed(program: Program, wanted: int, inputs: int) -> set[int]:
    """The values that value `wanted` is computed from, itself among them."""
    found: set[int] = set()
    stack = [wanted]
    while stack:
        i = stack.pop()
        if i not in found:
            found.add(i)
            if i >= inputs:
                stack.extend(program[i - inputs][1])
    return found
