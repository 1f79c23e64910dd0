"""Plans of floats times a matrix in few bits."""

from __future__ import annotations

from ....graph import float32
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch, Scratch, Word
from . import weight_product_kernel as kernel

# Of so few rows the time is that of reading B, along so many of its rows at once.
_FEW_ROWS = 2
_STREAMED = 4
# So many rows of a strip are copied.
_COPIED = 256


def plan_weight_product(
    a: Buffer,
    b: Buffer,
    c: Buffer,
    totals: Buffer,
    groups: tuple[Buffer, Buffer] | None,
    rows: int,
    columns: int,
    inner: int,
    bits: int,
    group_size: int,
    target: Target,
) -> list[Launch]:
    """C = A B, in float32, where B has numbers of few bits; see FewBitsMatMul.

    Args:
        a: (rows, inner).
        b: (inner, bytes of `columns` numbers).
        c: (rows, columns).
        totals: (rows, groups): the sums of the numbers of A in each group; not read for numbers of
            8 bits without groups.
        groups: scale and zero, (groups, columns); None: 1 and 0.
        rows: of A and C.
        columns: of B and C.
        inner: rows of B, at least 1.
        bits: of a number, 4 or 8.
        group_size: rows of B with one scale.
        target: the vectors.
    """
    width = kernel.columns_of_strip(target.vector_bytes)
    copies = rows > _FEW_ROWS
    block = min(_COPIED, group_size) if copies else _STREAMED
    num_blocks = -(-group_size // block)
    num_groups = -(-inner // group_size)
    strip_bytes = width * float32.size
    waiting = (1 - (-columns // width)) * strip_bytes  # a strip more may begin at a line
    scale, zero = groups or (0, 0)
    b_row = -(-columns * bits // 8)
    values: dict[str, Word] = {
        "a": a,
        "a_row": inner * float32.size,
        "b": b,
        "b_row": b_row,
        "c": c,
        "c_row": columns * float32.size,
        "rows": rows,
        "columns": columns,
        "inner": inner,
        "group": group_size,
        "num_groups": num_groups,
        "block": block,
        "num_blocks": num_blocks,
        "sums": Scratch(rows * waiting, "sums") if num_blocks > 1 else 0,
        "sums_row": waiting,
        "ahead": block * b_row,
        "scale": scale,
        "zero": zero,
        "totals": totals,
        "totals_row": num_groups * float32.size,
        "copy": Scratch(strip_bytes * block * target.threads, "copy") if copies else 0,
        "copy_bytes": strip_bytes * block,
    }
    words = tuple(values[name] for name in kernel.WORDS)
    code = kernel.code(bits, target.vector_bytes, grouped=groups is not None, copies=copies)
    return [Launch(code, words)]
