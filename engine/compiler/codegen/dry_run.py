"""Whether code can be written for what a program computes, found without its loops.

Loops, reads and writes have code for all element types that have a register. What may have none is
a function of a type, or a reduction of it; that shows on one element.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ...graph import DType, int32
from ..ir.expression import Expression
from ..ir.program import Loop, LoopProgram, Pointwise, Reduce, Statement
from ..target import llvm
from .function import IRFunction, Module, Value, scalar_type
from .reductions import Combine
from .scalars import write

_MOST_KNOWN = 4096  # expressions are remembered


def check_writable(program: LoopProgram) -> None:
    """Check that the statements of a program have code.

    Raises:
        NotLoweredError: a function, a reduction or an element type has none.
    """
    _check(program, program.statements)


def _check(program: LoopProgram, statements: Sequence[Statement]) -> None:
    for s in statements:
        if isinstance(s, Loop):
            _check(program, [*s.test, *s.body])
        if not isinstance(s, Pointwise | Reduce):
            continue  # a kernel call brings its own code
        for x in (*s.operands, s.target):
            scalar_type(program.dtype(x))
        if isinstance(s, Reduce):
            _check_reduction(s.kind, program.dtype(s.operand))
        else:
            _check_expression(s.expression, llvm.vector_bytes())


@functools.lru_cache(_MOST_KNOWN)
def _check_expression(expression: Expression, vector_bytes: int) -> None:
    fn = _function(vector_bytes)
    write(fn, expression, [Value(fn, f"%x{i}", t, 0) for i, t in enumerate(expression.dtypes)])


@functools.lru_cache
def _check_reduction(kind: str, dtype: DType) -> None:
    fn = _function(0)
    values = [Value(fn, "%x", dtype, 0), Value(fn, "%place", int32, 0)]
    Combine(kind, dtype).step(fn, values, values)


def _function(vector_bytes: int) -> IRFunction:
    return IRFunction(Module(vector_bytes), "kernel", ())
