"""Loop programs and kernels as text."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import laminar
from laminar import layers
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.printing import describe, program_text
from laminar.engine.compiler.ir.program import IndirectLoad, Loop, Storage, View, Window
from laminar.engine.compiler.ir.sizes import symbolic_size
from laminar.engine.compiler.schedule.fusion import fuse
from laminar.engine.graph import float32, int32

N = symbolic_size(0)


def lines(text: str) -> list[str]:
    """The lines without what their operations are called."""
    return [line.split("  #")[0] for line in text.splitlines()]


def test_views_and_statements() -> None:
    b = Builder(1)
    x = b.storage((N, 6), float32, "input")
    bias = b.storage((6,), float32, "variable")
    b.label = "dense/Add"
    y = b.compute(lambda s, x, c: s.max(x + c, 0.0), x, b.broadcast(bias, (N, 6)))
    total = b.reduce("sum", y, [1], keepdims=True)
    b.compute(lambda s, y, t: y / t, y, total)
    b.compute(
        lambda s, x, i: x * s.cast(i, float32), b.transpose(x, [1, 0]), b.iota((6, N), 0, int32)
    )
    b.map_into(
        b.narrow(y, [0, 1], (N, 2), [1, 3]), lambda s, x: -x, [b.narrow(x, [0, 0], (N, 2), [1, 1])]
    )
    rows = b.storage((N,), int32, "input")
    start = View(x.storage, (N, 6), (0, 1))
    b.copy(IndirectLoad(start, (b.broadcast(b.reshape(rows, (N, 1)), (N, 6)),), (6,), (N,)))
    b.check(b.compute(lambda s, r: r < 0, rows, dtype=laminar.engine.graph.bool_))
    text = program_text(b.program)
    assert "t2[n0, 6] = max(x0 + v1, 0.0)  # dense/Add" in text.splitlines()
    assert lines(text) == [
        "x0: float32[n0, 6] input",
        "v1: float32[6] variable",
        "t2: float32[n0, 6] temporary",
        "t3: float32[n0, 1] temporary",
        "t4: float32[n0, 6] temporary",
        "t5: float32[6, n0] temporary",
        "x6: int32[n0] input",
        "t7: float32[n0, 6] temporary",
        "t8: bool[n0] temporary",
        "t9: bool[1] temporary",
        "t2[n0, 6] = max(x0 + v1, 0.0)",
        "t3[n0, 1] = sum(t2) along j of [n0, 6]",
        "t4[n0, 6] = t2 / t3",
        "t5[6, n0] = x0[i + 6*j] * float32(i)",
        "t2[1 + 6*i + 3*j] over [n0, 2] = -x0[6*i + j]",
        "t7[n0, 6] = x0[6*x6[i] + j]",
        "t8[n0] = x6 < 0",
        "t9[1] = any(t8) along i of [n0]",
        "stop if t9",
    ]


def test_a_kernel_over_rows() -> None:
    b = Builder(1)
    x = b.storage((N, 6), float32, "input")
    high = b.reduce("max", x, [1], keepdims=True)
    e = b.compute(lambda s, x, m: s.exp(x - m), x, high)
    total = b.reduce("sum", e, [1], keepdims=True)
    y = b.compute(lambda s, e, t: e / t, e, total)
    b.program.outputs = [y]
    (kernel,) = fuse(b.program)
    assert describe(b.program, kernel, {y.storage}).splitlines() == [
        "for [n0, 6], reduced along j",
        "  loads x0",
        "  t1[n0, 1] = max(x0) along j of [n0, 6]",
        "  t2[n0, 6] = exp(x0 - t1)",
        "  t3[n0, 1] = sum(t2) along j of [n0, 6]",
        "  t4[n0, 6] = t2 / t3",
        "  stores t4",
    ]


def test_a_loop_on_a_window() -> None:
    b = Builder(1)
    x = b.storage((5, N), float32, "input")
    total = b.full((N,), 0.0, float32)
    row = Storage(float32, (N,), "window", window=Window(x.storage, 0, N))
    w = b.program.whole(b.program.add(row))
    with b.inside_loop(total.storage) as body:
        new = b.compute(lambda s, t, w: t + w, total, w)
    carried = {total.storage: new}
    b.loop(Loop(5, [], None, body, (w.storage,), carried, (x,), (total.storage,)))
    b.program.outputs = [total]
    assert lines(program_text(b.program))[2:] == [
        "w2: float32[n0] window of x0[n0*iteration]",
        "t3: float32[n0] temporary",
        "t1[n0] = 0.0",
        "loop 5 times",
        "  body",
        "    t3[n0] = t1 + w2",
        "  t1 becomes t3",
        "gives t1",
    ]


def test_a_training_step_is_dumped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_DUMP", str(tmp_path))
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "cache"))
    model = laminar.Sequential(
        [layers.Input((7,)), layers.Dense(65, activation="relu", name="one"), layers.Dense(3)]
    )
    model.compile("sgd", "mse")
    model.fit(np.ones((32, 7), "float32"), np.ones((32, 3), "float32"), verbose=0)
    (program,) = (path.read_text().splitlines() for path in tmp_path.glob("*.loops.txt"))
    assert "x0: float32[n0, 7] input batch_0" in program
    assert any(line.endswith("/one/kernel") for line in program), program
    assert any(" = matmul(x0, v" in line and line.startswith("t") for line in program), program
    assert any(" = max(t" in line and line.endswith("/one/Relu") for line in program), program
    assert any(line.startswith("v") and " becomes t" in line for line in program), program
    (kernels,) = (path.read_text() for path in tmp_path.glob("*.kernels.txt"))
    first = kernels[kernels.index("matmul(x0") :]
    assert "epilogue, for [n0, 65]\n" in first
    assert first.index(", 0.0)  # sequential") < first.index("  stores t")
