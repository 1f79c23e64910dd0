"""Graphs as text: an operation a line."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.functions import while_loop
from laminar.engine.graph import TensorSpec
from laminar.engine.graph.text import graph_text, operation_text, spec_text
from laminar.engine.ops.linalg.matmul import matmul
from laminar.engine.ops.math.arithmetic import add
from laminar.engine.ops.nn.activations import relu
from laminar.engine.passes import StepGraph


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        (TensorSpec([None, 32], "float32"), "f32[?, 32]"),
        (TensorSpec([], "int64"), "i64[]"),
        (TensorSpec(None, "bfloat16"), "bf16[...]"),
        (TensorSpec([2], "uint8"), "u8[2]"),
        (TensorSpec([2], "bool"), "bool[2]"),
        (TensorSpec([], "resource"), "handle"),
    ],
)
def test_types_are_short(spec: TensorSpec, text: str) -> None:
    assert spec_text(spec) == text


def line_of(op: Any) -> str:
    """The line of an operation, with its place in this file as LINE."""
    return re.sub(r"test_text.py:\d+", "LINE", operation_text(op))


def test_an_operation_alone() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [None, 4], name="x")
        w: Any = eng.constant(np.ones((3, 4), np.float32), name="w")
        with eng.device("cpu:0"):
            y: Any = matmul(x, w, transpose_b=True, name="y")
        with eng.control_dependencies([y]):
            z: Any = relu(y, name="z")
        done = eng.group(z, name="done")
    assert (
        line_of(y.op) == "%y: f32[?, 3] = MatMul(%x, %w, transpose_b=True) on /device:cpu:0  # LINE"
    )
    assert repr(y.op) == operation_text(y.op)
    assert line_of(z.op) == "%z: f32[?, 3] = Relu(%y) after %y  # LINE"
    assert line_of(w.op) == "%w: f32[3, 4] = Const(<12 values>)  # LINE"
    assert line_of(done) == "%done = NoOp() after %z  # LINE"


def test_a_step_is_numbered_and_what_is_given_has_its_name() -> None:
    v = eng.Variable(np.ones((4, 3), np.float32), name="dense/kernel")

    @eng.function
    def f(x: Any) -> Any:
        return relu(add(x @ v, eng.constant(0.5)))

    concrete = f.concrete(TensorSpec([None, 4]))
    step = StepGraph(concrete.outputs, [*concrete.inputs, *concrete.captured_inputs])
    text = re.sub(r"test_text.py:\d+", "LINE", step.text())
    assert text.splitlines() == [
        "given %x: f32[?, 4]",
        "given %dense/kernel: handle",
        "%0: f32[4, 3] = ReadVariable(%dense/kernel)  # ReadVariable, LINE",
        "%1: f32[?, 3] = MatMul(%x, %0)  # MatMul, LINE",
        "%2: f32[] = Const(0.5)  # Const, LINE",
        "%3: f32[?, 3] = Add(%1, %2)  # Add, LINE",
        "%4: f32[?, 3] = Relu(%3)  # Relu, LINE",
        "gives %4",
    ]


def test_what_is_inside_of_an_operation_follows_it() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [], name="x")
        (y,) = while_loop(lambda a: a < 10.0, lambda a: (a * 2.0,), (x,))
        loop = y.op
        lines = graph_text([x.op, loop], [y], [x]).splitlines()
    assert lines[0] == "given %x: f32[]"
    assert lines[1].startswith("%0:0: f32[], %0:1: i32[] = While(")
    assert lines[2] == "    condition:"
    assert lines[3].startswith("        given %")
    assert any(re.match(r"        %\d+: bool\[\] = Less\(", line) for line in lines)
    assert "    body:" in lines
    assert any(re.match(r"        %\d+: f32\[\] = Mul\(", line) for line in lines)
    assert lines[-1] == "gives %0:0"
