"""Plans of matrix products: the launches, and the words that they read."""

from __future__ import annotations

import math

import numpy as np

from ....errors import InvalidArgumentError
from ....graph import DType
from ...ir.kernel_target import Target
from ...ir.launch import Epilogue, Launch, Matrix, Scratch, Word
from ...target import host
from ...target.code import Code
from . import any_tile, dot_kernel, transpose
from . import gemm_kernel as kernel
from .any_tile import ANY_SHAPE
from .available_tiles import are_available, choose_tiles, parts_of
from .blocking import (
    Blocks,
    choose_blocks,
    choose_product_grid,
    is_transposed_first,
    may_be_transposed_first,
)
from .epilogue_scratch import plan_epilogue_scratch
from .microkernel import microkernels
from .tiles import Cut, Grid

# Few rows times a transposed matrix are made without transposing it.
_MOST_ROWS_OF_DOTS = 4
_FEWEST_TERMS = 32
# Results of fewer vectors than that in a row are made with their axes exchanged, if that gives more
# of them; the same if B would have to be transposed otherwise.
_FEW_VECTORS = 2
_FEW_VECTORS_OF_TRANSPOSED = 4
# One row times a matrix of so many bytes is a sum of so many others, each over a part of the rows.
_LONG_BYTES = 256 * 1024
_PARTS = 4
# Tiles of so few rows read B too often for many rows; so there is one for these as well, if their
# number is not known yet.
_FEW_ROWS = 2
_MANY_ROWS = 32
# Rows of A are fetched with what stands between them if so much of that is used.
_RUN_SHARE = 7 / 8
# A result as large as that is far away when it is written: what it is made of takes the rest.
_FAR_SHARE = 1 / 2


def plan_gemm(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
    *,
    batch: tuple[int, ...] = (),
    accumulate: bool = False,
    epilogue: Epilogue | None = None,
) -> list[Launch]:
    """C[i, m, n] = sum over k of A[i, m, k] * B[i, k, n]; added to C if `accumulate`.

    Args:
        a: any strides.
        b: one of its strides is 1.
        c: its column stride is 1; it does not overlap `a` and `b`.
        rows: of A and C.
        columns: of B and C.
        inner: columns of A, rows of B; 0 makes C zero.
        dtype: float32 or float64, of all three.
        target: the vectors, and how many threads there may be.
        batch: sizes of the axes of a batch, at most two.
        accumulate: whether the products are added to what C holds.
        epilogue: is given each finished block of C; rows are counted through the batch.

    Raises:
        InvalidArgumentError: strides or a batch that no kernel takes.
    """
    _check(a, b, c, rows, columns, inner, batch)
    num_batches = math.prod(batch)
    if not (rows and columns and num_batches):
        return []
    if target.has_sizes:
        first, *more = plan_gemm(
            *(a, b, c, rows, columns, inner, dtype, target._replace(has_sizes=False)),
            batch=batch,
            accumulate=accumulate,
            epilogue=epilogue,
        )
        is_plain = not (batch or accumulate or epilogue)
        others = _of_other_sizes(a, b, rows, columns, inner, dtype, target, is_plain=is_plain)
        return [first._replace(others=others), *more]
    dots = _as_dots(a, b, c, rows, columns, inner, epilogue is not None)
    if dots:
        return [_plan_dots(*dots, inner, dtype, target, batch, accumulate, epilogue)]
    if rows == 1 and not batch and inner % _PARTS == 0 and _is_long(b, columns, inner, dtype):
        return _plan_in_parts(a, b, c, columns, inner, dtype, target, accumulate, epilogue)
    is_plain = not (batch or accumulate or epilogue)
    if is_plain and _is_made_transposed(a, b, rows, columns, target.lanes(dtype)):
        return _plan_transposed_result(a, b, c, rows, columns, inner, dtype, target)
    if (
        not batch
        and a.row_stride == 1 != a.column_stride
        and is_transposed_first(rows, columns, inner)
    ):
        first, a = _plan_transpose(a, rows, inner, dtype, target)
        rest = (dtype, target)
        second = plan_gemm(
            *(a, b, c, rows, columns, inner, *rest), accumulate=accumulate, epilogue=epilogue
        )
        return [first, *second]
    lanes = target.lanes(dtype)
    sizes = rows, columns, inner, num_batches, dtype
    grid = _with_rows_in_cache(choose_product_grid(*sizes, target), a, rows, dtype)
    alone = choose_product_grid(*sizes, target._replace(threads=1))
    streams = epilogue.streams if epilogue else ()
    streamed = num_batches * rows * sum(stream.row_bytes for stream in streams)
    threads = target.threads
    beside = target.may_be_unaligned(b.data)
    blocks = choose_blocks(
        *(a, b, rows, columns, inner, dtype, grid, num_batches, threads, streamed),
        alone=alone,
        b_may_be_beside=beside,
    )
    fetch_a = _fetched_a(a, blocks, grid, rows, columns, inner, dtype, target)
    ahead = blocks.streams or fetch_a != kernel.A_UNFETCHED
    own = _plan_own(c, blocks, grid, dtype, target, accumulate, epilogue)
    codes = microkernels(
        *(grid.rows, grid.vectors, columns, dtype, target),
        ahead=ahead,
        paced=_is_far(rows, columns, dtype, target) and not own["own"],
    )
    if target.available is not None and not are_available(codes, target.available):
        grid, codes = choose_tiles(
            *(rows, columns, inner, num_batches, dtype, target, ahead, len(target.available))
        )
        blocks = choose_blocks(
            *(a, b, rows, columns, inner, dtype, grid, num_batches, threads, streamed),
            alone=alone,
            b_may_be_beside=beside,
        )
        own = _plan_own(c, blocks, grid, dtype, target, accumulate, epilogue)
    packed_a, a_words = _packed_a(blocks, grid, dtype, target)
    b_words = _packed_b(blocks, grid, dtype, target)
    size = dtype.size
    a_strides = packed_a or (a.row_stride * size, a.column_stride * size)
    shape: dict[str, Word] = {
        "row_stride": a_strides[0],
        "a_stride": a_strides[1],
        "b_stride": b.row_stride * size,
        "c_stride": c.row_stride * size,
        "num_offsets": 1,
        "offsets": (0,),
        "group_stride": 0,
        "b_skip": 0,
    }
    heights = [height for height, _ in parts_of(grid.rows, rows)]
    shapes = [
        tuple((shape | {"rows": n, "b_stride": step})[name] for name in ANY_SHAPE)
        for step in (b.row_stride * size, b_words["packed_b_stride"])
        for n in heights
    ]
    values: dict[str, Word] = {
        "rows": rows,
        "columns": columns,
        "inner": inner,
        "tile_rows": grid.rows.large,
        "num_high_tiles": grid.rows.num_large,
        "num_tiles": grid.rows.parts,
        "panel_columns": grid.vectors.large * lanes,
        "num_wide_panels": grid.vectors.num_large,
        "num_panels": grid.vectors.parts,
        "part_tiles": blocks.part,
        "block_panels": blocks.panels,
        "block_inner": blocks.inner,
        "accumulate": int(accumulate),
        "microkernels": codes,
        "shape": shapes[0],
        "low_shape": shapes[1],
        "shape_of_copy": shapes[2],
        "low_shape_of_copy": shapes[3],
        "epilogue": epilogue.code if epilogue else 0,
        "epilogue_words": epilogue.words if epilogue else 0,
        "num_streams": len(streams) if blocks.streams else 0,
        "streams": tuple(word for stream in streams for word in stream),
        "fetch_a": fetch_a,
        **a_words,
        **b_words,
        **_operands(a, b, c._replace(data=0) if own["own"] else c, dtype, batch),
        **own,
    }
    words = tuple(values[name] for name in kernel.WORDS)
    return [Launch(kernel.code(dtype, target.vector_bytes), words)]


def _of_other_sizes(
    a: Matrix,
    b: Matrix,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
    *,
    is_plain: bool,
) -> tuple[Code, ...]:
    """The codes that the same product takes for some other rows, columns or terms."""
    vector = target.vector_bytes
    found = [kernel.code(dtype, vector), any_tile.code(dtype, vector)]
    # Of a single row, both strides are 1 where A is transposed.
    if b.row_stride == 1 and 1 in (a.row_stride, a.column_stride):
        found.append(dot_kernel.code(dtype, vector))
    if is_plain and a.row_stride == 1 and _is_narrow(b, columns, target.lanes(dtype)):
        found.append(transpose.epilogue_code(dtype, vector))
    if a.row_stride == 1 != a.column_stride and may_be_transposed_first(rows, columns, inner):
        found.append(transpose.code(dtype, vector))
    if rows <= _FEW_ROWS:
        grid = choose_product_grid(_MANY_ROWS, columns, inner, 1, dtype, target)
        found += microkernels(grid.rows, grid.vectors, columns, dtype, target)[:1]
    return tuple(code for code in found if target.available is None or target.available.has(code))


def _as_dots(
    a: Matrix, b: Matrix, c: Matrix, rows: int, columns: int, inner: int, has_epilogue: bool
) -> tuple[Matrix, Matrix, Matrix, int, int] | None:
    """The operands if sums along memory are best: few rows of A, and B is transposed.

    A product that gives one column is one of one row, C' = B' A'; an epilogue would notice.
    """
    if inner < _FEWEST_TERMS or a.column_stride != 1 or b.row_stride != 1:
        return None
    if rows <= _MOST_ROWS_OF_DOTS:
        return a, b, c, rows, columns
    if columns == 1 and c.row_stride == 1 and not has_epilogue:
        return _transposed(b), _transposed(a), _transposed(c), 1, rows
    return None


def _is_long(b: Matrix, columns: int, inner: int, dtype: DType) -> bool:
    """Whether reading B is what a product with one row takes the time for."""
    return b.column_stride == 1 and columns * inner * dtype.size >= _LONG_BYTES


def _plan_in_parts(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
    accumulate: bool,
    epilogue: Epilogue | None,
) -> list[Launch]:
    """One row times a matrix: sums over some rows of B each, then the sum of these.

    So each thread reads memory that follows each other: columns of a matrix, whose rows are a power
    of 2 apart, fall on few sets of a cache.
    """
    depth = inner // _PARTS
    memory = Scratch(_PARTS * columns * dtype.size, "parts")
    parts = Matrix(memory, columns, 1, (columns,))
    steps = a.column_stride * depth, b.row_stride * depth
    x, y = (m._replace(batch_strides=(step,)) for m, step in zip((a, b), steps, strict=True))
    first = plan_gemm(x, y, parts, 1, columns, depth, dtype, target, batch=(_PARTS,))
    ones = np.ones(2 * _PARTS, dtype.numpy).view(np.int64)
    x, y = Matrix(tuple(ones.tolist()), 1, 1), Matrix(memory, columns, 1)
    second = plan_gemm(
        *(x, y, c, 1, columns, _PARTS, dtype, target), accumulate=accumulate, epilogue=epilogue
    )
    return [*first, *second]


def _plan_transpose(
    a: Matrix, rows: int, inner: int, dtype: DType, target: Target
) -> tuple[Launch, Matrix]:
    """The launch that copies A so that its rows are contiguous, and the copy."""
    lanes = target.lanes(dtype)
    # Rows begin on different lines of a cache.
    stride = -(-inner // lanes) * lanes + host.LINE // dtype.size
    memory = Scratch(-(-rows // lanes) * lanes * stride * dtype.size, "transposed_a")
    launch = transpose.plan(
        *(a.data, a.column_stride * dtype.size, memory, stride * dtype.size),
        *(inner, rows, dtype, target.vector_bytes),
    )
    return launch, Matrix(memory, stride, 1)


def _is_made_transposed(a: Matrix, b: Matrix, rows: int, columns: int, lanes: int) -> bool:
    """Whether C' = B' A' is made, where A is read along its columns, which are contiguous.

    Few columns leave lanes of C without work, and tiles that are high read A across. A transposed B
    would have to be transposed besides.
    """
    is_transposed = a.row_stride == 1 != a.column_stride
    return rows > columns and is_transposed and _is_narrow(b, columns, lanes)


def _is_narrow(b: Matrix, columns: int, lanes: int) -> bool:
    """Whether a product has few columns."""
    if b.column_stride != 1 and columns > 1:
        return columns <= _FEW_VECTORS_OF_TRANSPOSED * lanes
    return columns < _FEW_VECTORS * lanes


def _plan_transposed_result(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
) -> list[Launch]:
    """The launches of C' = B' A', each block of which is copied to C as soon as it is made."""
    lanes, size = target.lanes(dtype), dtype.size
    # Rows begin on different lines of a cache.
    stride = -(-rows // lanes) * lanes + host.LINE // size
    memory = Scratch(columns * stride * size, "transposed_c")
    places = memory, stride * size, c.data, c.row_stride * size
    epilogue = transpose.epilogue(*places, dtype, target.vector_bytes)
    x, y, z = _transposed(b), _transposed(a), Matrix(memory, stride, 1)
    return plan_gemm(x, y, z, columns, rows, inner, dtype, target, epilogue=epilogue)


def _transposed(matrix: Matrix) -> Matrix:
    return matrix._replace(row_stride=matrix.column_stride, column_stride=matrix.row_stride)


def _plan_dots(
    a: Matrix,
    b: Matrix,
    c: Matrix,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
    batch: tuple[int, ...],
    accumulate: bool,
    epilogue: Epilogue | None,
) -> Launch:
    """The launch that makes each element by itself."""
    values: dict[str, Word] = {
        "rows": rows,
        "columns": columns,
        "inner": inner,
        "accumulate": int(accumulate),
        "c_column": dtype.size,
        "epilogue": epilogue.code if epilogue else 0,
        "epilogue_words": epilogue.words if epilogue else 0,
        **_operands(a, b, c, dtype, batch),
    }
    words = tuple(values[name] for name in dot_kernel.WORDS)
    return Launch(dot_kernel.code(dtype, target.vector_bytes), words)


def _check(
    a: Matrix, b: Matrix, c: Matrix, rows: int, columns: int, inner: int, batch: tuple[int, ...]
) -> None:
    if min(rows, columns, inner, *batch, 0) < 0:
        raise InvalidArgumentError(f"plan_gemm: sizes {rows}, {columns}, {inner}, batch {batch}")
    if c.column_stride != 1 and columns > 1:
        raise InvalidArgumentError(f"plan_gemm: C has rows of stride {c.column_stride}, not 1")
    if 1 not in (b.row_stride, b.column_stride) and inner > 1 and columns > 1:
        raise InvalidArgumentError(
            f"plan_gemm: B has strides {b.row_stride} and {b.column_stride}, neither is 1"
        )
    for matrix in (a, b, c):
        if len(matrix.batch_strides) != len(batch) or len(batch) > 2:
            raise InvalidArgumentError(
                f"plan_gemm: batch {batch} with strides {matrix.batch_strides}; at most two axes"
            )


def _operands(
    a: Matrix, b: Matrix, c: Matrix, dtype: DType, batch: tuple[int, ...]
) -> dict[str, Word]:
    size = dtype.size
    outer, nested = (1,) * (2 - len(batch)) + batch
    found: dict[str, Word] = {"batches": outer, "batches_2": nested}
    for name, matrix in (("a", a), ("b", b), ("c", c)):
        strides = (0,) * (2 - len(batch)) + matrix.batch_strides
        found[name] = matrix.data
        found[f"{name}_batch"], found[f"{name}_batch_2"] = (s * size for s in strides)
    return found | {
        "a_row": a.row_stride * size,
        "a_inner": a.column_stride * size,
        "b_inner": b.row_stride * size,
        "b_column": b.column_stride * size,
        "c_row": c.row_stride * size,
    }


def _with_rows_in_cache(grid: Grid, a: Matrix, rows: int, dtype: DType) -> Grid:
    """A grid whose tiles find the lines of their rows of A again for the next k.

    Those of one vector, which are high, do not if rows share few sets of the L1 cache.
    """
    if a.column_stride != 1 or grid.vectors.parts * grid.vectors.large > 1:
        return grid
    most = host.lines_in_l1_cache(a.row_stride * dtype.size)
    return grid._replace(rows=Cut.of(rows, min(grid.rows.large, most)))


def _fetched_a(
    a: Matrix,
    blocks: Blocks,
    grid: Grid,
    rows: int,
    columns: int,
    inner: int,
    dtype: DType,
    target: Target,
) -> int:
    """How what the next part takes of A is fetched, where A and C leave the L2 cache.

    Rows are one run of memory if little stands between those parts of them that are used.
    """
    is_near = rows * (inner + columns) * dtype.size <= host.l2_cache()
    # Shorter vectors take so long for a part that what the next one takes comes in time by itself,
    # and fetching it costs them more.
    if target.vector_bytes < host.LINE or is_near or blocks.streams:
        return kernel.A_UNFETCHED
    if blocks.part >= grid.rows.parts:
        return kernel.A_UNFETCHED
    if blocks.pack_a:
        return kernel.A_BY_INNER
    is_run = a.column_stride == 1 and blocks.inner >= inner >= _RUN_SHARE * a.row_stride
    return kernel.A_BY_ROWS if is_run else kernel.A_UNFETCHED


def _is_far(rows: int, columns: int, dtype: DType, target: Target) -> bool:
    """Whether the memory of a result is beyond the L2 cache."""
    num_bytes = rows * columns * dtype.size
    return target.vector_bytes >= host.LINE and num_bytes >= host.in_l2_cache(_FAR_SHARE)


def _plan_own(
    c: Matrix,
    blocks: Blocks,
    grid: Grid,
    dtype: DType,
    target: Target,
    accumulate: bool,
    epilogue: Epilogue | None,
) -> dict[str, Word]:
    """The words about parts of C in memory of the thread: whole rows, each made at one time."""
    part = blocks.part * grid.rows.large * c.row_stride * dtype.size
    is_whole = blocks.streams and not accumulate
    return plan_epilogue_scratch(epilogue if is_whole else None, part, target.threads)


def _packed_a(
    blocks: Blocks, grid: Grid, dtype: DType, target: Target
) -> tuple[tuple[int, int] | None, dict[str, Word]]:
    """The row and inner stride of copied tiles, and the words about them."""
    if not blocks.pack_a:
        return None, _copies("a", 0, 0, 0, target) | {"packed_a_tile": 0}
    stride = grid.rows.large * dtype.size
    # Tiles begin on different lines of a cache: each k is written to all of them.
    tile = stride * blocks.inner + host.LINE
    words = _copies("a", 1, blocks.part * tile, stride, target)
    return (dtype.size, stride), words | {"packed_a_tile": tile}


def _packed_b(blocks: Blocks, grid: Grid, dtype: DType, target: Target) -> dict[str, Word]:
    """The words about copied panels."""
    stride = grid.vectors.large * target.vector_bytes
    if blocks.pack_b == kernel.B_AS_IT_IS:
        return _copies("b", 0, 0, 0, target) | {"packed_b_panel": 0}
    lanes = target.lanes(dtype)
    depth = -(-blocks.inner // lanes) * lanes  # a transposing copy writes whole blocks
    # Panels begin on different lines of a cache.
    panel = depth * stride + 4 * host.LINE
    words = _copies("b", blocks.pack_b, blocks.panels * panel, stride, target)
    return words | {"packed_b_panel": panel}


def _copies(name: str, how: int, num_bytes: int, stride: int, target: Target) -> dict[str, Word]:
    """The words about the memory for copies of A or B."""
    each = host.whole_lines(num_bytes)
    memory: Word = Scratch(each * target.threads, f"packed_{name}") if how else 0
    return {
        f"pack_{name}": how,
        f"packed_{name}": memory,
        f"packed_{name}_bytes": each,
        f"packed_{name}_stride": stride,
    }
