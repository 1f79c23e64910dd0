"""Plans of bfloat16 matrix products: A and B are copied into tiles of pairs (see pairs.py)."""

from __future__ import annotations

import math

from ...ir.launch import Epilogue, Launch, Matrix, Scratch, Word
from ...target.bfloat16_unit import PairUnit
from ..gemm.epilogue_scratch import plan_epilogue_scratch
from . import pair_pack as pack
from . import pair_product_kernel as kernel

_SIZE = 2  # bytes of an element of A and B
_C_SIZE = 4
# A block of C is at most that many pairs of tiles high and wide.
_BLOCK_ROWS = 4
_BLOCK_COLUMNS = 8
_UNITS_PER_THREAD = 4


def plan_pair_products(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    rows: int,
    columns: int,
    inner: int,
    threads: int,
    unit: PairUnit,
    *,
    batch: tuple[int, ...] = (),
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n], in float32, of bfloat16 A and B.

    Args:
        a: one of its strides is 1: that along k, or else that along rows.
        b: one of its strides is 1: that along columns, or else that along k.
        c: float32; its column stride is 1.
        rows: of A and C.
        columns: of B and C.
        inner: columns of A, rows of B; 0 makes C zero.
        threads: how many there may be.
        unit: what multiplies.
        batch: sizes of the axes of a batch, at most two.
        epilogue: is given each finished block of C; rows are counted through the batch.
    """
    if not (rows and columns and math.prod(batch)):
        return []
    term_tiles = -(-inner // pack.TERMS)
    row_pairs, column_pairs = (-(-n // kernel.PAIR) for n in (rows, columns))
    a_launch, a_tiles, a_bytes = _packed(a, rows, inner, batch, "a")
    b_launch, b_tiles, b_bytes = _packed(b, columns, inner, batch, "b")
    block_rows = min(row_pairs, _BLOCK_ROWS)
    row_blocks = -(-row_pairs // block_rows) * math.prod(batch)
    wanted = -(-_UNITS_PER_THREAD * threads // row_blocks)
    block_columns = max(1, min(_BLOCK_COLUMNS, column_pairs // wanted))
    strides = _two(c.batch_strides, 0)
    row_bytes = c.row_stride * _C_SIZE
    lines = min(block_rows * kernel.PAIR, rows)
    own = plan_epilogue_scratch(epilogue, lines * row_bytes, threads)
    batches, batches_2 = _two(batch, 1)
    values: dict[str, Word] = {
        "a": a_tiles,
        "a_batch": a_bytes,
        "b": b_tiles,
        "b_batch": b_bytes,
        "c": 0 if own["own"] else c.data,
        "c_row": row_bytes,
        "c_batch": strides[0] * _C_SIZE,
        "c_batch_2": strides[1] * _C_SIZE,
        "rows": rows,
        "columns": columns,
        "batches": batches,
        "batches_2": batches_2,
        "row_pairs": row_pairs,
        "column_pairs": column_pairs,
        "term_tiles": term_tiles,
        "block_rows": block_rows,
        "block_columns": block_columns,
        "rest": Scratch(threads * kernel.REST_BYTES, "rest_of_pairs"),
        "epilogue": epilogue.code if epilogue else 0,
        "epilogue_words": epilogue.words if epilogue else 0,
        **own,
    }
    product = Launch(kernel.code(unit), tuple(values[name] for name in kernel.WORDS))
    return [a_launch, b_launch, product]


def _two(sizes: tuple[int, ...], missing: int) -> tuple[int, int]:
    outer, inner = (missing,) * (2 - len(sizes)) + sizes
    return outer, inner


def _packed(
    matrix: Matrix, lines: int, terms: int, batch: tuple[int, ...], name: str
) -> tuple[Launch, Scratch, int]:
    """The copy into tiles, where they are, and their bytes for each product of the batch.

    What is the same for all products of a batch is copied once.
    """
    is_b = name == "b"
    # In memory the terms of a line are side by side, or the lines.
    line_stride, term_stride = matrix.row_stride, matrix.column_stride
    if is_b:
        line_stride, term_stride = term_stride, line_stride
    across = line_stride == 1 if is_b else term_stride != 1
    line_tiles, term_tiles = 2 * -(-lines // kernel.PAIR), -(-terms // pack.TERMS)
    num_bytes = line_tiles * term_tiles * pack.TILE_BYTES
    is_shared = not any(matrix.batch_strides)
    outer, nested = (1, 1) if is_shared else _two(batch, 1)
    strides = (0, 0) if is_shared else _two(matrix.batch_strides, 0)
    to = Scratch(max(num_bytes, 1) * outer * nested, f"pairs_of_{name}")
    values: dict[str, Word] = {
        "source": matrix.data,
        "stride": (term_stride if across else line_stride) * _SIZE,
        "batch": strides[0] * _SIZE,
        "batch_2": strides[1] * _SIZE,
        "batches_2": nested,
        "lines": lines,
        "terms": terms,
        "batches": outer * nested,
        "line_tiles": line_tiles,
        "term_tiles": term_tiles,
        "to": to,
    }
    code = pack.code(by_pairs=is_b, across=across)
    words = tuple(values[word] for word in pack.WORDS)
    return Launch(code, words), to, 0 if is_shared else num_bytes
