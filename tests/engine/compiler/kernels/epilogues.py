"""An epilogue that shows which elements it was given."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from laminar.engine.compiler.codegen.control import loop
from laminar.engine.compiler.codegen.function import Module, Value
from laminar.engine.compiler.kernels import Buffer, Code, Epilogue, Launch
from laminar.engine.compiler.kernels.addressing import function, load, store, word
from laminar.engine.graph import float32

from .running import Array, Prepared


def adding(
    c: Buffer,
    row_bytes: int,
    of_rows: Buffer,
    of_columns: Buffer,
    vector_bytes: int,
    to: Buffer | None = None,
) -> Epilogue:
    """to[row, column] = C[row, column] + of_rows[row] + of_columns[column] in float32; C itself."""
    code = Code("epilogue", vector_bytes, _write, ())
    return Epilogue(code, (c, row_bytes, of_rows, of_columns, to or c))


def check_epilogue(
    plan: Callable[[Epilogue], list[Launch]],
    operands: list[Array],
    wanted: Array,
    vector_bytes: int,
    threads: int,
    *,
    rtol: float = 1e-5,
    atol: float = 1e-3,
) -> None:
    """That an epilogue sees each element of a result once, when it is complete.

    Args:
        plan: gives launches for the operands as buffers 0 and 1, and the result as buffer 2.
        operands: two of them.
        wanted: the result without the epilogue, of float32.
        vector_bytes: the size of vectors.
        threads: how many run it.
        rtol, atol: how exact it is to be.
    """
    of_rows, of_columns = _added(wanted)
    found = np.full(wanted.shape, 7, np.float32)
    epilogue = adding(Buffer(2), found.strides[-2], Buffer(3), Buffer(4), vector_bytes)
    Prepared(plan(epilogue), [*operands, found, of_rows, of_columns]).run(threads)
    wanted = wanted + of_rows.reshape(*wanted.shape[:-1], 1) + of_columns
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def check_epilogue_scratch(
    plan: Callable[[Epilogue], list[Launch]],
    operands: list[Array],
    wanted: Array,
    vector_bytes: int,
    threads: int,
) -> None:
    """That an epilogue which alone reads the result sees all of it, and no memory has it.

    Args:
        plan: gives launches for the operands as buffers 0 and 1, and the result as buffer 2.
        operands: two of them.
        wanted: the result, of float32.
        vector_bytes: the size of vectors.
        threads: how many run it.
    """
    of_rows, of_columns = _added(wanted)
    own, to = np.full(wanted.shape, 7, np.float32), np.zeros(wanted.shape, np.float32)
    row_bytes = own.strides[-2]
    epilogue = adding(Buffer(2), row_bytes, Buffer(3), Buffer(4), vector_bytes, Buffer(5))
    launches = plan(epilogue._replace(result=0))
    Prepared(launches, [*operands, own, of_rows, of_columns, to]).run(threads)
    wanted = wanted + of_rows.reshape(*wanted.shape[:-1], 1) + of_columns
    np.testing.assert_allclose(to, wanted, rtol=1e-5, atol=1e-3)
    assert (own == 7).all()


def _added(result: Array) -> tuple[Array, Array]:
    """What is added to rows and columns; rows of blocks are not alike, for 61 is a prime."""
    num_rows, num_columns = math.prod(result.shape[:-1]), result.shape[-1]
    of_rows = (np.arange(num_rows) % 61).astype(np.float32)
    return of_rows, np.arange(num_columns, dtype=np.float32) * 0.5


def _write() -> str:
    module = Module()
    fn, (words, row0, rows, column0, columns) = function(module, "epilogue", 5)
    c, stride, of_rows, of_columns, to = (word(fn, words, i) for i in range(5))

    def row(r: Value) -> None:
        i = row0 + r

        def column(s: Value) -> None:
            j = column0 + s
            at = i * stride + j * 4
            x = load(fn, c + at, float32)
            x = x + load(fn, of_rows + i * 4, float32) + load(fn, of_columns + j * 4, float32)
            store(fn, x, to + at)

        loop(fn, fn.number(0), columns, 1, column)

    loop(fn, fn.number(0), rows, 1, row)
    return module.text()
