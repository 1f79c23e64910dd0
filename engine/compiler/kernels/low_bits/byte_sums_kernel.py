"""The kernel of products of bytes with a transposed matrix.

    C[m, n] = sum over k of A[m, k] * B[n, k], in int32

Lanes run along k, so B is read once, in order. Threads share the rows of B.
"""

from __future__ import annotations

from ....graph import int8, int32
from ...codegen.control import fold, loop, replaced
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...target.byte_unit import ByteUnit
from ...target.code import Code
from ..addressing import Words, function, load, share, store
from .byte_dots import ByteDots, as_elements

SYMBOL = "byte_sums"
# Strides are in bytes; `totals` has the sum of each row of A.
WORDS = ("a", "a_row", "b", "b_row", "c", "c_row", "rows", "columns", "inner", "totals")


def code(unit: ByteUnit, vector_bytes: int) -> Code:
    """The kernel."""
    return Code(SYMBOL, vector_bytes, _write, (unit.value, vector_bytes))


def _write(unit: str, vector_bytes: int) -> str:
    module = Module(vector_bytes)
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    words = Words(fn, args, WORDS)
    word = {name: words[name] for name in WORDS}
    dots = ByteDots(fn, ByteUnit(unit), vector_bytes // int32.size)
    first, last = share(fn, word["columns"], tid, nth)

    def column(n: Value) -> None:
        def row(m: Value) -> None:
            total = _sum(fn, dots, word, word["a"] + m * word["a_row"], n, vector_bytes)
            if dots.bias:
                bias = load(fn, word["totals"] + m * int32.size, int32) * dots.bias
                total = total - bias
            store(fn, total, word["c"] + m * word["c_row"] + n * int32.size)

        loop(fn, fn.number(0), word["rows"], 1, row)

    loop(fn, first, last, 1, column)
    return module.text()


def _sum(
    fn: IRFunction, dots: ByteDots, word: dict[str, Value], a: Value, n: Value, width: int
) -> Value:
    """The sum of the products of a row of A and one of B."""
    b, inner = word["b"] + n * word["b_row"], word["inner"]
    whole = fn.binary("and", inner, -width)

    def vector(k: Value, sums: list[Value], mask: Value | None) -> list[Value]:
        y, x = (as_elements(fn, load(fn, s + k, int8, width, mask), int32) for s in (b, a))
        return [dots.added(sums[0], dots.left(dots.kept(y)), dots.right(x))]

    zero = fn.splat(fn.constant(0, Value(fn, "", int32, 0)), dots.lanes)
    sums = fold(fn, fn.number(0), whole, width, [zero], lambda k, s: vector(k, s, None))
    rest = first_lanes(fn, inner - whole, width)
    (total,) = replaced(fn, whole < inner, sums, lambda: vector(whole, sums, rest))
    name = f"llvm.vector.reduce.add.v{dots.lanes}i32"
    fn.module.declarations[name] = f"declare i32 @{name}({total.type})"
    return fn.instruction(f"call i32 @{name}({total})", int32, 0)
