"""An epilogue that shows which elements it was given."""

from __future__ import annotations

from laminar.engine.compiler.emit import Module, Value
from laminar.engine.compiler.kernels import Buffer, Code, Epilogue
from laminar.engine.compiler.kernels.words import function, load, store, word
from laminar.engine.graph import float32


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

        fn.loop(fn.number(0), columns, 1, column)

    fn.loop(fn.number(0), rows, 1, row)
    return module.text()
