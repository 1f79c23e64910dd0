"""Elementwise ops that ONNX has as they are: a row each. All others come from their expressions."""

from __future__ import annotations

from laminar.engine.graph import Operation

from ..table import rows, rule
from ..writer import GraphWriter

rows(
    {
        "Identity": "Identity",
        "Relu": "Relu",
        "Sigmoid": "Sigmoid",
        "Softplus": "Softplus",
        "Softsign": "Softsign",
        "Tanh": "Tanh",
        "Reciprocal": "Reciprocal",
        "HardSilu": "HardSwish",
    }
)


@rule("Elu")
def _elu(w: GraphWriter, op: Operation, x: str) -> str:
    return w.node("Elu", x, alpha=float(op.attrs["alpha"]))


@rule("LeakyRelu")
def _leaky_relu(w: GraphWriter, op: Operation, x: str) -> str:
    return w.node("LeakyRelu", x, alpha=float(op.attrs["negative_slope"]))


@rule("AddN")
def _add_n(w: GraphWriter, op: Operation, *xs: str) -> str:
    return w.node("Sum", *xs)


@rule("CustomGradient")
def _custom_gradient(w: GraphWriter, op: Operation, *xs: str) -> list[str]:
    return list(xs[: op.attrs["outputs"]])


@rule("Cast")
def _cast(w: GraphWriter, op: Operation, x: str) -> str:
    return w.cast(x, op.attrs["dtype"])
