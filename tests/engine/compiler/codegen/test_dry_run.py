"""What has no code is found without writing loops, and is what cannot be written."""

from __future__ import annotations

import itertools

import pytest

from laminar import ops
from laminar.engine.compiler.codegen.dry_run import check_writable
from laminar.engine.compiler.codegen.loop_kernel import LoopWriter
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.expression import Apply, Expression, Ref
from laminar.engine.compiler.ir.not_lowered import NotLoweredError
from laminar.engine.compiler.ir.program import Loop, LoopProgram, Pointwise, Reduce, Statement
from laminar.engine.compiler.native.cluster_kernel import NativeCompiler
from laminar.engine.compiler.plan.compiled_program import CompiledProgram
from laminar.engine.compiler.schedule.buffer_assignment import assign_buffers
from laminar.engine.graph import Graph, GraphTensor, as_dtype
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.graphs import needed_operations

DTYPES = [
    as_dtype(name)
    for name in ("bool", "float16", "bfloat16", "float32", "float64", "int8", "uint64", "complex64")
]
KINDS = ["sum", "prod", "max", "min", "any", "all", "argmax", "argmin"]
FUNCTIONS = [("+", 2), ("/", 2), ("sqrt", 1), ("power", 2), ("ldexp", 2), ("logical_not", 1)]


def is_accepted(program: LoopProgram) -> bool:
    try:
        check_writable(program)
    except NotLoweredError:
        return False
    return True


def is_written(b: Builder) -> bool:
    try:
        CompiledProgram(assign_buffers(b.program, b.copy), 32, "tried")
    except NotLoweredError:
        return False
    return True


def test_reductions_are_accepted_that_can_be_written() -> None:
    refused = set()
    for dtype, kind in itertools.product(DTYPES, KINDS):
        b = Builder(1)
        b.program.outputs.append(b.reduce(kind, b.storage((6, 5), dtype, "input"), [1]))
        accepted = is_accepted(b.program)
        assert accepted == is_written(b), (dtype, kind)
        refused |= set() if accepted else {(str(dtype), kind)}
    assert ("bool", "sum") in refused
    assert ("complex64", "sum") in refused
    assert len(refused) < len(DTYPES) * len(KINDS) / 2


def test_expressions_are_accepted_that_can_be_written() -> None:
    refused = set()
    for dtype, (name, count) in itertools.product(DTYPES, FUNCTIONS):
        b = Builder(1)
        x, y = b.storage((6,), dtype, "input"), b.storage((6,), dtype)
        applied = Apply(name, tuple(Ref(i) for i in range(count)), dtype)
        expression = Expression((dtype,) * count, (applied,), Ref(count))
        b.program.statements.append(Pointwise(y, (x,) * count, expression))
        b.program.outputs.append(y)
        accepted = is_accepted(b.program)
        assert accepted == is_written(b), (dtype, name)
        refused |= set() if accepted else {(str(dtype), name)}
    assert {("int8", "/"), ("float16", "+"), ("int8", "sqrt"), ("float64", "ldexp")} <= refused
    assert not {("int8", "+"), ("float64", "power"), ("float32", "ldexp")} & refused


@pytest.mark.parametrize("place", ["test", "body"])
def test_what_loops_contain_is_looked_at(place: str) -> None:
    b = Builder(1)
    x, y = b.storage((6,), as_dtype("bool"), "input"), b.storage((1,), as_dtype("bool"))
    inside: dict[str, list[Statement]] = {"test": [], "body": []}
    inside[place].append(Reduce(y, x, (6,), (0,), "sum"))
    loop = Loop(3, inside["test"], None, inside["body"], (), {}, (x,), (y.storage,))
    with pytest.raises(NotLoweredError, match="sum of bool"):
        check_writable(LoopProgram(b.program.storages, [loop]))


def test_no_loops_are_written_to_find_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(LoopWriter, "write", None)
    monkeypatch.setattr(LoopWriter, "write_epilogue", None)
    with Graph().as_default():
        x = placeholder("float32", [None, 7])
        y = ops.sum(ops.exp(ops.matmul(x, ops.transpose(x))) * 0.25, axis=1)
    assert isinstance(y, GraphTensor)
    operations = needed_operations([y], (), [x])
    accepted = NativeCompiler().accepts(operations)
    assert [op.type for op, is_so in zip(operations, accepted, strict=True) if not is_so] == []
