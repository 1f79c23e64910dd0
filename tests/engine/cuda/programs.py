"""Programs for the fake GPU, whose kernels are NumPy's arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.cuda_program import Argument, Buffer, CudaProgram, Kernel, Launch, Table
from laminar.engine.graph import TensorSpec

from .fake_gpu import Access, KernelFunction, array_at

N = 8


def scale(grid: Any, block: Any, shared: int, arguments: Sequence[int]) -> None:
    """y = x * n."""
    x, y, n = arguments
    array_at(y, [N], "float32")[...] = array_at(x, [N], "float32") * n


def add(grid: Any, block: Any, shared: int, arguments: Sequence[int]) -> None:
    """y = a + b."""
    a, b, y = (array_at(x, [N], "float32") for x in arguments)
    y[...] = a + b


def add_all(grid: Any, block: Any, shared: int, arguments: Sequence[int]) -> None:
    """Each of a table of (variable, change, ...) plus its change."""
    table, count = arguments
    words = array_at(table, [2 * count], "int64").tolist()
    for variable, change in zip(words[::2], words[1::2], strict=True):
        array_at(variable, [N], "float32")[...] += array_at(change, [N], "float32")


def check(grid: Any, block: Any, shared: int, arguments: Sequence[int]) -> None:
    """failed = x[0] < 0."""
    x, failed = arguments
    array_at(failed, [1], "int32")[0] = array_at(x, [N], "float32")[0] < 0


KERNELS: dict[str, KernelFunction] = {
    "scale": scale,
    "add": add,
    "add_all": add_all,
    "check": check,
}
_BYTES = 4 * N
ACCESSES = {
    "scale": lambda a: [Access(a[0], a[0] + _BYTES, False), Access(a[1], a[1] + _BYTES, True)],
    "add": lambda a: [
        Access(a[0], a[0] + _BYTES, False),
        Access(a[1], a[1] + _BYTES, False),
        Access(a[2], a[2] + _BYTES, True),
    ],
}
SPEC = TensorSpec((N,), "float32")


def launch(name: str, *arguments: Argument) -> Launch:
    return Launch(Kernel(name, ""), (1, 1, 1), (N, 1, 1), arguments, name)


X, Y, W = Buffer("input", 0), Buffer("output", 0), Buffer("variable", 0)
T = Buffer("arena", 0, 256)


def step(*, checks: bool = False) -> CudaProgram:
    """t = 3 x; y = t + w + 10; w = w + t."""
    failed = Buffer("arena", 0, 512) if checks else None
    return CudaProgram(
        launches=(
            *([launch("check", X, failed)] if failed else []),
            launch("scale", X, T, 3),
            launch("add", T, W, Y),
            launch("add", Y, Buffer("constant", 0), Y),
            launch("add_all", Table((W, T)), 1),
        ),
        arena_bytes=1024,
        constants=(np.full(N, 10, np.float32),),
        inputs=(SPEC,),
        variables=(SPEC,),
        outputs=(SPEC,),
        written=frozenset({0}),
        failed=failed,
    )
