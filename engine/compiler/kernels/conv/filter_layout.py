"""Laying out the filters of a convolution as panels of B, transposed for the input's gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ....graph import DType
from ...codegen.control import loop, when
from ...codegen.function import Module, Value
from ...ir.kernel_target import Target
from ...ir.launch import Launch, Scratch, Word
from ...target.code import Code
from ..addressing import Words, function, invoke, quotient, share, word
from ..gemm.pack import COPY, TRANSPOSE, write_copy, write_transpose
from ..gemm.panels import column_of
from ..gemm.tiles import Cut

SYMBOL = "pack_filters"

WORDS = (
    *("filters", "packed"),
    *("groups", "taps", "offsets"),  # the place of each tap among the filters, in bytes
    "transposed",  # 0 or 1: whether a column of B is a row of a tap
    *("rows", "columns"),  # of B, for a tap of a group
    *("filter_row", "filter_group"),
    *("panel_columns", "num_wide_panels", "num_panels"),
    *("packed_group", "packed_panel", "packed_tap", "packed_row"),
)


class Packed(NamedTuple):
    """Where packed filters are; strides in bytes. `skip` follows the rows of each tap."""

    data: Word
    group: int
    panel: int
    tap: int
    row: int
    skip: int


def plan_pack(
    filters: Word,
    offsets: Sequence[int],
    rows: int,
    columns: int,
    groups: int,
    filter_row: int,
    filter_group: int,
    vectors: Cut,
    dtype: DType,
    target: Target,
    *,
    transposed: bool,
) -> tuple[Launch, Packed]:
    """Copy taps to panels: B[tap, k, n] = filters[tap][k, n], or [n, k] if `transposed`.

    Args:
        filters: the taps, one matrix each.
        offsets: where each tap begins, in bytes.
        rows: of B for a tap.
        columns: of B, for each group.
        groups: they follow each other `filter_group` bytes apart within each tap.
        filter_row: bytes from a row of a tap to the next one.
        filter_group: see `groups`.
        vectors: the widths of panels.
        dtype: of the filters.
        target: the vectors.
        transposed: whether the taps are transposed.
    """
    lanes = target.lanes(dtype)
    depth = -(-rows // lanes) * lanes if transposed else rows
    row = vectors.large * target.vector_bytes
    tap = depth * row
    panel = tap * len(offsets) + 256  # panels begin on different lines of a cache
    group = panel * vectors.parts
    data = Scratch(group * groups, "packed_filters")
    values: dict[str, Word] = {
        "filters": filters,
        "packed": data,
        "groups": groups,
        "taps": len(offsets),
        "offsets": tuple(offsets),
        "transposed": int(transposed),
        "rows": rows,
        "columns": columns,
        "filter_row": filter_row,
        "filter_group": filter_group,
        "panel_columns": vectors.large * lanes,
        "num_wide_panels": vectors.num_large,
        "num_panels": vectors.parts,
        "packed_group": group,
        "packed_panel": panel,
        "packed_tap": tap,
        "packed_row": row,
    }
    code = Code(SYMBOL, target.vector_bytes, _write, (dtype, target.vector_bytes))
    launch = Launch(code, tuple(values[name] for name in WORDS))
    return launch, Packed(data, group, panel, tap, row, (depth - rows) * row)


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    write_copy(module, dtype, vector_bytes)
    write_transpose(module, dtype, vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    words = Words(fn, args, WORDS)
    lanes = vector_bytes // dtype.size
    first, last = share(fn, words["groups"] * words["taps"], tid, nth)

    def unit(u: Value) -> None:
        group, tap = quotient(fn, u, words["taps"])
        source = words["filters"] + word(fn, words["offsets"], tap) + group * words["filter_group"]
        target = words["packed"] + group * words["packed_group"] + tap * words["packed_tap"]

        def panel(p: Value) -> None:
            column = column_of(fn, words, p, lanes)
            columns = column_of(fn, words, p + 1, lanes) - column
            to, stride = target + p * words["packed_panel"], words["packed_row"]
            rows, row = words["rows"], words["filter_row"]

            def transpose() -> None:
                invoke(fn, TRANSPOSE, to, source + column * row, columns, rows, stride, row)

            def copy() -> None:
                start = source + column * dtype.size
                invoke(fn, COPY, to, start, rows, stride, row, columns, columns, columns)

            when(fn, words["transposed"] != 0, transpose)
            when(fn, words["transposed"] == 0, copy)

        loop(fn, fn.number(0), words["num_panels"], 1, panel)

    loop(fn, first, last, 1, unit)
    return module.text()
