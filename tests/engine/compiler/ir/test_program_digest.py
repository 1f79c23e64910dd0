"""The digest of a loop program: equal for equal content, else another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.printing import program_text
from laminar.engine.compiler.ir.program import KernelCall, Loop, LoopProgram, Statement
from laminar.engine.compiler.ir.sizes import symbolic_size
from laminar.engine.compiler.lower.cluster_body import ClusterLowering
from laminar.engine.compiler.lower.rules.sharding import ShareRows
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.target.fingerprint import NoDigestError
from laminar.engine.graph import DType, float32, float64

from ..families import FAMILIES, Case, cases
from ..planners import NotPlanned

N = symbolic_size(0)
WITH_KERNELS = ["products", "few bits", "rows", "convolved", "moved", "drawn"]


def lowered(case: Case) -> LoopProgram:
    sizes = NativeCluster(case.body)._sizes
    given = [int(x) if i in sizes else x.shape for i, x in enumerate(case.inputs)]
    return ClusterLowering(case.body, given, 0).program


def calls(statements: Sequence[Statement]) -> Iterator[KernelCall]:
    for s in statements:
        if isinstance(s, KernelCall):
            yield s
        elif isinstance(s, Loop):
            yield from calls([*s.test, *s.body])


def another(value: Any) -> Any:
    """A value of the same kind that is another one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, DType):
        return float64 if value == float32 else float32
    if isinstance(value, str):
        return f"{value}!"
    if value is None:
        return 1
    if isinstance(value, tuple) and type(value) is tuple:
        return (*value, 1)
    if isinstance(value, tuple):  # a NamedTuple
        return value._replace(**{value._fields[0]: another(value[0])})  # type: ignore[attr-defined]  # one has it
    return replace(value, images=value.images + 1)  # the geometry of a convolution


@pytest.mark.parametrize("family", WITH_KERNELS)
def test_kernel_calls_are_told_apart_by_their_parameters(family: str) -> None:
    build, arrays = FAMILIES[family]
    found = 0
    for case in cases(build, arrays):
        program, same = lowered(case), lowered(case)
        assert program.digest == same.digest
        for call, twin in zip(calls(program.statements), calls(same.statements), strict=True):
            assert call.planner == twin.planner
            assert hash(call.planner) == hash(twin.planner)
            planner, digests = twin.planner, {program.digest}
            for f in fields(planner):
                twin.planner = replace(planner, **{f.name: another(getattr(planner, f.name))})
                assert twin.planner != planner
                digests.add(same.digest)
            assert len(digests) == 1 + len(fields(planner))
            twin.planner = planner
            found += 1
    assert found


def sum_of(rows: int, *, name: str = "", scale: float = 2.0, value: float = 1.0) -> LoopProgram:
    b = Builder(1)
    x = b.storage((rows, 3), float32, "input")
    b.program.storages[x.storage].name = b.label = name
    c = b.array(np.full(3, value, np.float32), float32)
    y = b.compute(lambda s, x, c: x * scale + c, x, b.broadcast(c, (rows, 3)))
    b.program.outputs = [b.reduce("sum", y, [0])]
    return b.program


def test_programs_are_told_apart_by_content_alone() -> None:
    first = sum_of(N, name="x")
    assert first.digest == sum_of(N, name="other").digest
    others = [sum_of(7), sum_of(N, scale=3.0), sum_of(N, value=0.0), sum_of(N, value=-0.0)]
    assert len({x.digest for x in (first, *others)}) == 5


def test_programs_are_told_apart_by_how_their_sizes_follow() -> None:
    digests = set()
    for index, count in ((0, 2), (1, 2), (1, 3)):
        b = Builder(1)
        x = b.storage((N, 3), float32, "input")
        rows = b.derive(ShareRows(N, index, count))
        b.program.outputs = [b.narrow(x, [0, 0], (rows, 3), [1, 1])]
        digests.add(b.program.digest)
    assert len(digests) == 3


def test_one_size_for_equal_rules() -> None:
    b = Builder(1)
    x = b.storage((N, 300), float32, "input")
    for _ in range(2):
        b.reduce("sum", x, [0])
    text = program_text(b.program)
    assert text.startswith("n1 = NumParts(size=n0, row_bytes=1200)\nx0: float32[n0, 300] input\n")
    assert text.count("in n1 parts") == 2


def test_a_planner_that_is_not_laminars_own_has_no_digest() -> None:
    b = Builder()
    x = b.storage((3,), float32, "input")
    b.kernel_call("reads", [x], [((3,), float32)], NotPlanned())
    with pytest.raises(NoDigestError, match="NotPlanned"):
        _ = b.program.digest


def test_parameters_are_printed() -> None:
    build, arrays = FAMILIES["convolved"]
    texts = [program_text(lowered(case)) for case in cases(build, arrays)]
    assert any(", strides=[1, 1], padding=[[1, 1], [1, 1]], dilation=[1, 1]" in t for t in texts)
