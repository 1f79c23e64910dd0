"""Products of other sizes need no other code than those that were asked for with the first."""

from __future__ import annotations

import itertools

import pytest

from laminar.engine.compiler.ir.kernel_target import Target
from laminar.engine.compiler.ir.launch import Buffer, Launch, Matrix, codes_in
from laminar.engine.compiler.kernels import plan_gemm
from laminar.engine.compiler.target.code import Code
from laminar.engine.graph import float32

ROWS = [1, 2, 4, 5, 9, 16, 17, 40, 64, 300]


class LoadedCode(frozenset[Code]):
    """The codes that are loaded."""

    def has(self, code: Code) -> bool:
        return code in self


def planned(rows: int, columns: int, inner: int, how: str, target: Target) -> list[Launch]:
    """The launches of a product; `how` tells which operands are transposed ("nt": the second)."""
    a = Matrix(Buffer(0), 1, rows) if how[0] == "t" else Matrix(Buffer(0), inner, 1)
    b = Matrix(Buffer(1), 1, inner) if how[1] == "t" else Matrix(Buffer(1), columns, 1)
    return plan_gemm(a, b, Matrix(Buffer(2), columns, 1), rows, columns, inner, float32, target)


@pytest.mark.slow
@pytest.mark.parametrize("how", ["nn", "tn", "nt", "tt"])
@pytest.mark.parametrize(("columns", "inner"), [(3, 64), (12, 300), (1, 33), (5, 7), (70, 100)])
@pytest.mark.parametrize("vector_bytes", [16, 32, 64])
def test_other_rows_need_no_other_code(
    how: str, columns: int, inner: int, vector_bytes: int
) -> None:
    target = Target(vector_bytes, 2, has_sizes=True)
    for first, rows in itertools.permutations(ROWS, 2):
        loaded = LoadedCode(codes_in(planned(first, columns, inner, how, target)))
        needed = codes_in(planned(rows, columns, inner, how, target._replace(available=loaded)))
        assert loaded >= set(needed), (first, rows)
