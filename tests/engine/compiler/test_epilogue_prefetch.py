"""Products whose epilogues go through much memory besides: what is fetched, and the values."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.kernel_target import Target
from laminar.engine.compiler.ir.launch import Buffer
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.plan.compiled_program import CompiledProgram
from laminar.engine.compiler.plan.launches import Launches
from laminar.engine.compiler.schedule.buffer_assignment import assign_buffers
from laminar.engine.compiler.target import llvm
from laminar.engine.graph import float32
from tests.engine.ops.native import every_cluster

rng = np.random.default_rng(0)


def test_what_is_fetched_is_read_or_written_besides_the_result() -> None:
    """Each memory once: the first of the values takes that of the product itself."""
    b = Builder()
    x, w = (b.storage(shape, float32, "input") for shape in ((600, 8), (8, 500)))
    residual = b.storage((600, 500), float32, "input")
    bias = b.storage((500,), float32, "input")
    y = b.compute(lambda s, p, q: p + q, product(b, x, w, float32), bias)
    z = b.compute(lambda s, y, r: s.exp(y) + r, y, residual)
    b.program.outputs = [y, z]
    layout = assign_buffers(b.program, b.copy)
    (kernel,) = layout.kernels
    compiled = CompiledProgram(layout, llvm.vector_bytes(), "")
    target = Target(llvm.vector_bytes(), 1)
    streams = Launches(compiled, compiled.sizes([]).real, target).streams(kernel)
    assert streams == ((Buffer(residual.storage), 2000), (Buffer(z.storage), 2000))


def activated(x: Any, w: Any, b: Any) -> Any:
    y = ops.matmul(x, w) + b
    return y, ops.sigmoid(y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(("rows", "columns"), [(1024, 512), (1030, 515), (4, 70000), (700, 1000)])
def test_values(rows: int, columns: int, dtype: str) -> None:
    x, w, b = (rng.normal(size=size).astype(dtype) for size in ((rows, 9), (9, columns), columns))
    with every_cluster():
        found = laminar.function(activated)(x, w, b)
    y = x.astype(np.float64) @ w + b
    for a, e in zip(found, (y, 1 / (1 + np.exp(-y))), strict=True):
        tolerance = 1e-4 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(np.asarray(a), e, rtol=tolerance, atol=tolerance)
