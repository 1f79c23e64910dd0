"""Softmax, and numbers brought to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

from laminar.engine.graph import Operation

from ..table import is_half, rule
from ..writer import GraphWriter
from .arrays import over


@rule("Softmax", "LogSoftmax")
def _softmax(w: GraphWriter, op: Operation, x: str) -> str:
    axes = over(op, op.attrs["axes"])
    if len(axes) == 1:
        return w.node(op.type, x, axis=axes[0])
    places = w.ints(axes)
    shifted = w.node("Sub", x, w.node("ReduceMax", x, places, keepdims=1))
    if op.type == "LogSoftmax":
        return w.node("Sub", shifted, w.node("ReduceLogSumExp", shifted, places, keepdims=1))
    powers = w.node("Exp", shifted)
    return w.node("Div", powers, w.node("ReduceSum", powers, places, keepdims=1))


def _scaled(w: GraphWriter, op: Operation, x: str, factors: Sequence[str]) -> str:
    """x * scale + offset, which broadcast to x; all are floats of at least four bytes."""
    for kind, factor in zip(("Mul", "Add"), factors, strict=False):
        wide = w.cast(factor, "float32") if is_half(op.inputs[0].dtype) else factor
        x = w.node(kind, x, wide)
    return x


def _over_root(w: GraphWriter, x: str, mean_square: str, epsilon: float, dtype: str) -> str:
    return w.node("Div", x, w.node("Sqrt", w.node("Add", mean_square, w.constant(epsilon, dtype))))


@rule("Normalize")
def _normalize(w: GraphWriter, op: Operation, x: str, *factors: str) -> list[str]:
    dtype, places = op.inputs[0].dtype, w.ints(over(op, op.attrs["axes"]))
    halves = is_half(dtype)
    wide = w.cast(x, "float32") if halves else x
    mean = w.node("ReduceMean", wide, places, keepdims=1)
    apart = w.node("Sub", wide, mean)
    variance = w.node("ReduceMean", w.node("Mul", apart, apart), places, keepdims=1)
    kind = "float32" if halves else str(dtype)
    y = _over_root(w, apart, variance, op.attrs["epsilon"], kind)
    y = _scaled(w, op, y, factors)
    return [w.cast(y, dtype) if halves else y, mean, variance]


@rule("RMSNorm")
def _rms_norm(w: GraphWriter, op: Operation, x: str, *factors: str) -> list[str]:
    dtype, places = op.inputs[0].dtype, w.ints(over(op, op.attrs["axes"]))
    halves = is_half(dtype)
    wide = w.cast(x, "float32") if halves else x
    square = w.node("ReduceMean", w.node("Mul", wide, wide), places, keepdims=1)
    y = _over_root(w, wide, square, op.attrs["epsilon"], "float32" if halves else str(dtype))
    y = _scaled(w, op, y, factors)
    return [w.cast(y, dtype) if halves else y]
