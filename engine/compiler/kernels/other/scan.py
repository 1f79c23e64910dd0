"""Running sums and products along an axis, and first-order recurrences.

A vector of columns is carried along the axis, in one order; threads share the columns.
"""

from __future__ import annotations

from ....graph import DType
from ...codegen.control import fold, loop
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch
from ...target.code import Code
from ..addressing import Words, function, load, quotient, share, store

_SYMBOL = "scan"
_NAMES = ("x", "factor", "y", "outer", "size", "inner", "reverse")


def plan_scan(
    kind: str,
    x: Buffer,
    factor: Buffer | None,
    y: Buffer,
    shape: tuple[int, int, int],
    dtype: DType,
    target: Target,
    *,
    reverse: bool,
) -> list[Launch]:
    """y[o, i, c] = x[o, i, c] + y[o, i - 1, c], or times it, or plus factor[o, i, c] times it.

    Args:
        kind: "sum", "prod" or "recurrence"; only the last has a factor.
        x: (outer, size, inner).
        factor: of the shape of x.
        y: the same.
        shape: outer, size and inner.
        dtype: of all.
        target: the vectors.
        reverse: whether it runs from the end.
    """
    code = Code(_SYMBOL, target.vector_bytes, _write, (kind, dtype, target.vector_bytes))
    return [Launch(code, (x, 0 if factor is None else factor, y, *shape, int(reverse)))]


def _write(kind: str, dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (block, tid, nth) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    lanes = vector_bytes // dtype.size
    x, factor, y, outer, size, inner, reverse = (words[name] for name in _NAMES)
    blocks = fn.binary("udiv", inner + (lanes - 1), lanes)
    first, last = share(fn, outer * blocks, tid, nth)
    row_bytes = inner * dtype.size
    is_back = reverse != 0
    begin = fn.select(is_back, (size - 1) * row_bytes, fn.number(0))
    step = fn.select(is_back, fn.number(0) - row_bytes, row_bytes)
    neutral = fn.splat(fn.constant(int(kind == "prod"), Value(fn, "", dtype, 0)), lanes)

    def column(unit: Value) -> None:
        o, c = quotient(fn, unit, blocks)
        start = o * size * row_bytes + c * vector_bytes + begin
        left = inner - c * lanes
        mask = first_lanes(fn, left, lanes)

        def element(i: Value, carried: list[Value]) -> list[Value]:
            at = start + i * step
            new = load(fn, x + at, dtype, lanes, mask)
            found = _combined(fn, kind, carried[0], new, factor + at, mask)
            store(fn, found, y + at, mask)
            return [found]

        fold(fn, fn.number(0), size, 1, [neutral], element)

    loop(fn, first, last, 1, column)
    return module.text()


def _combined(
    fn: IRFunction, kind: str, before: Value, new: Value, factor: Value, mask: Value
) -> Value:
    if kind == "sum":
        return before + new
    if kind == "prod":
        return before * new
    return new + load(fn, factor, new.dtype, new.lanes, mask) * before
