"""Products of matrices."""

from __future__ import annotations

from laminar.engine.graph import Operation

from ..table import rank_of, rule
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


@rule("Einsum")
def _einsum(w: GraphWriter, op: Operation, *xs: str) -> str:
    return w.node("Einsum", *xs, equation=op.attrs["equation"])
