"""Reductions along axes, and running sums."""

from __future__ import annotations

from laminar.engine.graph import Operation

from ..table import is_half, rule
from ..writer import GraphWriter
from .arrays import over

_NODES = {
    "Sum": "ReduceSum",
    "Mean": "ReduceMean",
    "Max": "ReduceMax",
    "Min": "ReduceMin",
    "Prod": "ReduceProd",
    "LogSumExp": "ReduceLogSumExp",
    "EuclideanNorm": "ReduceL2",
}


@rule(*_NODES)
def _reduce(w: GraphWriter, op: Operation, x: str) -> str:
    dtype = op.inputs[0].dtype
    wide = w.cast(x, "float32") if is_half(dtype) else x
    axes = w.ints(over(op, op.attrs["axis"]))
    y = w.node(_NODES[op.type], wide, axes, keepdims=int(op.attrs["keepdims"]))
    return w.cast(y, dtype) if is_half(dtype) else y


@rule("Any", "All")
def _logical(w: GraphWriter, op: Operation, x: str) -> str:
    axes = w.ints(over(op, op.attrs["axis"]))
    kind = "ReduceMax" if op.type == "Any" else "ReduceMin"
    found = w.node(kind, w.cast(x, "int32"), axes, keepdims=int(op.attrs["keepdims"]))
    return w.cast(found, "bool")


@rule("Variance")
def _variance(w: GraphWriter, op: Operation, x: str) -> str:
    axes = w.ints(over(op, op.attrs["axis"]))
    apart = w.node("Sub", x, w.node("ReduceMean", x, axes, keepdims=1))
    square = w.node("Mul", apart, apart)
    return w.node("ReduceMean", square, axes, keepdims=int(op.attrs["keepdims"]))


@rule("ArgMax", "ArgMin")
def _arg(w: GraphWriter, op: Operation, x: str) -> str:
    keepdims = int(op.attrs["keepdims"])
    found = w.node(op.type, x, axis=op.attrs["axis"], keepdims=keepdims)
    return w.cast(found, op.outputs[0].dtype)


@rule("Cumsum")
def _cumsum(w: GraphWriter, op: Operation, x: str) -> str:
    axis = w.constant(op.attrs["axis"], "int64")
    reverse, exclusive = int(op.attrs["reverse"]), int(op.attrs["exclusive"])
    return w.node("CumSum", x, axis, reverse=reverse, exclusive=exclusive)
