"""Plans of products of bytes."""

from __future__ import annotations

from ....graph import int32
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch, Scratch, Word
from ...target.byte_unit import ByteUnit
from . import byte_product_kernel as kernel
from . import byte_sums_kernel

# Of so few rows the time is that of reading B, along so many of its rows at once.
_FEW_ROWS = 4
_STREAMED = 4
# So many rows of a strip are copied.
_COPIED = 2048


def plan_byte_product(
    a: Buffer,
    totals: Buffer,
    b: Buffer,
    c: Buffer,
    rows: int,
    columns: int,
    inner: int,
    target: Target,
    unit: ByteUnit,
) -> list[Launch]:
    """C[m, n] = sum over k of A[m, k] * B[k, n], of int8, in int32; beyond its range modulo 2^32.

    Args:
        a: (rows, inner rounded up to a multiple of 4), zeros beyond `inner`.
        totals: (rows,), the sum of each row of A, int32.
        b: (inner, columns).
        c: (rows, columns).
        rows: of A and C.
        columns: of B and C.
        inner: rows of B, at least 1.
        target: the vectors.
        unit: what multiplies.
    """
    width = target.vector_bytes
    copies = rows > _FEW_ROWS
    block = min(_COPIED, -(-inner // 4) * 4) if copies else _STREAMED
    num_blocks = -(-inner // block)
    waiting = (1 - (-columns // width)) * width * int32.size  # a strip more may begin at a line
    values: dict[str, Word] = {
        "a": a,
        "a_row": -(-inner // 4) * 4,
        "b": b,
        "b_row": columns,
        "c": c,
        "c_row": columns * int32.size,
        "rows": rows,
        "columns": columns,
        "inner": inner,
        "block": block,
        "num_blocks": num_blocks,
        "sums": Scratch(rows * waiting, "sums") if num_blocks > 1 else 0,
        "sums_row": waiting,
        "ahead": block * columns,
        "totals": totals,
        "copy": Scratch(block * width * target.threads, "copy") if copies else 0,
        "copy_bytes": block * width,
    }
    words = tuple(values[name] for name in kernel.WORDS)
    return [Launch(kernel.code(unit, width, copies=copies), words)]


def plan_byte_sums(
    a: Buffer,
    totals: Buffer,
    b: Buffer,
    c: Buffer,
    rows: int,
    columns: int,
    inner: int,
    target: Target,
    unit: ByteUnit,
) -> list[Launch]:
    """C[m, n] = sum over k of A[m, k] * B[n, k]; arguments as of `plan_byte_product`.

    B is (columns, inner).
    """
    values: dict[str, Word] = {
        "a": a,
        "a_row": -(-inner // 4) * 4,
        "b": b,
        "b_row": inner,
        "c": c,
        "c_row": columns * int32.size,
        "rows": rows,
        "columns": columns,
        "inner": inner,
        "totals": totals,
    }
    words = tuple(values[name] for name in byte_sums_kernel.WORDS)
    return [Launch(byte_sums_kernel.code(unit, target.vector_bytes), words)]
