"""Products of matrices."""

from __future__ import annotations

import numpy as np

from laminar.engine.graph import Operation
from laminar.engine.ops.linalg.few_bits_matmul import whole_numbers

from ..table import is_half, rank_of, refused, rule
from ..writer import GraphWriter


@rule("MatMul")
def _matmul(w: GraphWriter, op: Operation, a: str, b: str) -> str:
    factors = []
    for name, x, is_turned in (
        (a, op.inputs[0], op.attrs["transpose_a"]),
        (b, op.inputs[1], op.attrs["transpose_b"]),
    ):
        rank = rank_of(x)
        order = [*range(rank - 2), rank - 1, rank - 2]
        factors.append(w.transpose(name, order) if is_turned else name)
    return w.node("MatMul", *factors)


@rule("ByteMatMul")
def _byte_matmul(w: GraphWriter, op: Operation, a: str, b: str) -> str:
    return w.node("MatMulInteger", a, b)


@rule("FewBitsMatMul")
def _few_bits_matmul(w: GraphWriter, op: Operation, x: str, matrix: str, *groups: str) -> str:
    """The file holds a byte for each number; they are made floats where they are multiplied."""
    numbers = w.known(matrix)
    if numbers is None:
        raise refused(op, "its matrix is computed")
    if op.attrs["bits"] == 4:
        numbers = whole_numbers(numbers, op.attrs["columns"])
    given = op.inputs[0].dtype
    wide = "float32" if is_half(given) else given
    made = w.cast_at_run_time(w.constant(numbers), wide)
    if groups:
        places = w.constant(np.arange(numbers.shape[0]) // op.attrs["group_size"])
        scale, zero = (w.node("Gather", w.cast(g, wide), places, axis=0) for g in groups)
        made = w.node("Mul", w.node("Sub", made, zero), scale)
    return w.cast(w.node("MatMul", w.cast(x, wide), made), given)


@rule("Einsum")
def _einsum(w: GraphWriter, op: Operation, *xs: str) -> str:
    return w.node("Einsum", *xs, equation=op.attrs["equation"])
