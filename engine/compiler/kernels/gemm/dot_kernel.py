"""The kernel of few rows times a transposed matrix: each element is a sum along contiguous memory.

    C[i, m, n] (+)= sum over k of A[i, m, k] * B[i, n, k]

Lanes run along k, so B is read once, in order, and nothing is copied. A unit of work is a block of
columns of C.
"""

from __future__ import annotations

from ....graph import DType
from ...codegen.control import fold, loop, replaced, when
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes, load_strided, store_strided
from ...target.code import Code
from ..addressing import Words, function, invoke, load, minimum, place, quotient, share

SYMBOL = "dots"

WORDS = (
    *("a", "a_row", "a_batch", "a_batch_2"),
    *("b", "b_column", "b_batch", "b_batch_2"),
    *("c", "c_row", "c_column", "c_batch", "c_batch_2"),
    *("rows", "columns", "inner", "batches", "batches_2"),
    "accumulate",
    *("epilogue", "epilogue_words"),
)

_BLOCK = 32  # columns of a unit
_WIDTH = 8  # columns that are summed up side by side


def code(dtype: DType, vector_bytes: int) -> Code:
    """The kernel."""
    return Code(SYMBOL, vector_bytes, _write, (dtype, vector_bytes))


def _write(dtype: DType, vector_bytes: int) -> str:
    module = Module()
    fn, (args, tid, nth) = function(module, SYMBOL, 3)
    _Writer(fn, args, dtype, vector_bytes // dtype.size).write(tid, nth)
    return module.text()


class _Writer:
    def __init__(self, fn: IRFunction, args: Value, dtype: DType, lanes: int) -> None:
        self.fn = fn
        self.words = Words(fn, args, WORDS)
        self.dtype = dtype
        self.lanes = lanes

    def write(self, tid: Value, nth: Value) -> None:
        fn, words = self.fn, self.words
        blocks = fn.binary("udiv", words["columns"] + (_BLOCK - 1), fn.number(_BLOCK))
        units = words["batches"] * words["batches_2"] * blocks
        first, last = share(fn, units, tid, nth)

        def unit(u: Value) -> None:
            batch, block = quotient(fn, u, blocks)
            i, j = quotient(fn, batch, words["batches_2"])
            a = words["a"] + i * words["a_batch"] + j * words["a_batch_2"]
            b = words["b"] + i * words["b_batch"] + j * words["b_batch_2"]
            c = words["c"] + i * words["c_batch"] + j * words["c_batch_2"]
            begin = block * _BLOCK
            end = minimum(fn, begin + _BLOCK, words["columns"])

            def row(m: Value) -> None:
                to, source = c + m * words["c_row"], a + m * words["a_row"]
                loop(fn, begin, end, _WIDTH, lambda n: self._tile(source, b, to, n, end))

            loop(fn, fn.number(0), words["rows"], 1, row)

            def finish() -> None:
                rows = words["rows"]
                function, arguments = words["epilogue"], words["epilogue_words"]
                invoke(fn, function, arguments, batch * rows, rows, begin, end - begin)

            when(fn, words["epilogue"] != 0, finish)

        loop(fn, first, last, 1, unit)

    def _tile(self, a: Value, b: Value, c: Value, n: Value, end: Value) -> None:
        """Some columns of a row of C."""
        fn, words, lanes, size = self.fn, self.words, self.lanes, self.dtype.size
        stride, inner = words["b_column"], words["inner"]
        # Columns beyond the last one are read as the last one.
        starts = [b + minimum(fn, n + v, end - 1) * stride for v in range(_WIDTH)]
        zeros = fn.splat(fn.constant(0.0, Value(fn, "", self.dtype, 0)), lanes)
        whole = fn.binary("and", inner, -lanes)

        def add(k: Value, sums: list[Value], mask: Value | None) -> list[Value]:
            at = k * size
            x = load(fn, a + at, self.dtype, lanes, mask)
            return [
                fn.call("fmuladd", x, load(fn, start + at, self.dtype, lanes, mask), total)
                for start, total in zip(starts, sums, strict=True)
            ]

        sums = fold(fn, fn.number(0), whole, lanes, [zeros] * _WIDTH, lambda k, s: add(k, s, None))
        mask = first_lanes(fn, inner - whole, lanes)
        sums = replaced(fn, whole < inner, sums, lambda: add(whole, sums, mask))
        there = first_lanes(fn, end - n, _WIDTH)
        at = place(fn, c + n * words["c_column"])
        found = self._gathered([self._total(s) for s in sums])
        (found,) = replaced(
            fn,
            words["accumulate"] != 0,
            [found],
            lambda: [found + load_strided(fn, at, words["c_column"], self.dtype, _WIDTH, there)],
        )
        store_strided(fn, found, at, words["c_column"], there)

    def _total(self, x: Value) -> Value:
        """The sum of the lanes, in the order of a tree."""
        fn, element = self.fn, x.element
        suffix = "f32" if element == "float" else "f64"
        mangled = f"llvm.vector.reduce.fadd.v{x.lanes}{suffix}"
        fn.module.declarations[mangled] = f"declare {element} @{mangled}({element}, {x.type})"
        return fn.instruction(f"call reassoc {element} @{mangled}({element} -0.0, {x})", x.dtype, 0)

    def _gathered(self, values: list[Value]) -> Value:
        """A vector of scalars."""
        fn = self.fn
        kind = f"<{len(values)} x {values[0].element}>"
        name = "poison"
        for i, x in enumerate(values):
            name = fn.named(f"insertelement {kind} {name}, {x}, i64 {i}")
        return Value(fn, name, self.dtype, len(values))
