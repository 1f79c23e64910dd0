"""Products of matrices that may begin beside a line of the cache, as only a run knows."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.kernel_target import Target
from laminar.engine.compiler.ir.launch import Launch
from laminar.engine.compiler.ir.program import Operand, View
from laminar.engine.compiler.kernels.gemm import gemm_kernel
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.plan.compiled_program import CompiledProgram
from laminar.engine.compiler.plan.launches import Launches
from laminar.engine.compiler.schedule.buffer_assignment import assign_buffers
from laminar.engine.compiler.target import host
from laminar.engine.graph import float32

ROWS, INNER, COLUMNS = 128, 256, 784


@pytest.fixture(autouse=True)
def l2_cache(monkeypatch: pytest.MonkeyPatch) -> None:
    """That of the processors for which these sizes are near the limits, whatever runs the tests."""
    monkeypatch.setattr(host, "l2_cache", lambda: 2 << 20)


def launch_of(b: Builder, y: View) -> Launch:
    """The launch that multiplies by y."""
    x = b.storage((ROWS, INNER), float32, "input")
    b.program.outputs = [whole(product(b, x, y, float32))]
    compiled = CompiledProgram(assign_buffers(b.program, b.copy), 64, "")
    return Launches(compiled, compiled.sizes([]).real, Target(64, 2)).make()[-1].launch


def in_the_arena(b: Builder) -> View:
    """A matrix that the plan makes, out of what the user gives."""
    x, y = (b.storage(shape, float32, "input") for shape in ((INNER, 128), (128, COLUMNS)))
    return whole(product(b, x, y, float32))


def whole(made: Operand) -> View:
    assert isinstance(made, View)
    return made


def how(launch: Launch) -> object:
    return launch.words[gemm_kernel.WORDS.index("pack_b")]


@pytest.mark.parametrize("role", ["input", "constant"])
def test_what_may_begin_anywhere_is_looked_at_by_each_run(role: str) -> None:
    b = Builder()
    if role == "input":
        y = b.storage((INNER, COLUMNS), float32, role)
    else:
        y = b.array(np.ones((INNER, COLUMNS), np.float32), float32)
    assert how(launch_of(b, y)) == gemm_kernel.B_IF_BESIDE


@pytest.mark.parametrize("role", ["variable", "temporary"])
def test_variables_and_the_arena_begin_at_lines(role: str) -> None:
    """Nothing is made ready for another place, and threads share the tiles as for none."""
    b = Builder()
    y = b.storage((INNER, COLUMNS), float32, role) if role == "variable" else in_the_arena(b)
    launch = launch_of(b, y)
    found = dict(zip(gemm_kernel.WORDS, launch.words, strict=True))
    assert how(launch) == gemm_kernel.B_AS_IT_IS
    assert (found["packed_b"], found["packed_b_bytes"]) == (0, 0)
    b = Builder()
    given = launch_of(b, b.storage((INNER, COLUMNS), float32, "input"))
    assert found["block_panels"] != given.words[gemm_kernel.WORDS.index("block_panels")]
