"""Which rule writes which operation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from laminar.engine.errors import UnimplementedError
from laminar.engine.graph import DType, GraphTensor, Operation


class Nodes(Protocol):
    """What writes nodes: a `writer.GraphWriter`."""

    def node(self, kind: str, *inputs: str, name: str | None = None, **attributes: Any) -> str:
        """A node with one output; its name."""

    def constant(self, value: Any, dtype: Any = None) -> str:
        """A constant; its name."""

    def cast(self, name: str, dtype: Any) -> str:
        """A value as another element type."""


# `rule(writer, operation, *names of the inputs)` gives the name, or names, of the outputs.
Rule = Callable[..., str | Sequence[str]]

RULES: dict[str, Rule] = {}


def rule(*types: str) -> Callable[[Rule], Rule]:
    """Decorator: the function writes operations of these types."""

    def add(function: Rule) -> Rule:
        for name in types:
            RULES[name] = function
        return function

    return add


def rows(table: dict[str, str], **attributes: Any) -> None:
    """Operations that a node of ONNX computes as it is: laminar's types, and ONNX's."""

    def row(node: str) -> Rule:
        def write(w: Nodes, op: Operation, *names: str) -> str:
            return w.node(node, *names, **attributes)

        return write

    for name, node in table.items():
        RULES[name] = row(node)


def refused(op: Operation, reason: str) -> UnimplementedError:
    """The error for an operation that cannot be written."""
    return UnimplementedError(
        f"export: {op.type} ({op.name!r}) cannot be written as ONNX: {reason}",
        remedy='use format="laminar", or a model without it',
    )


def rank_of(x: GraphTensor) -> int:
    """The number of axes of a tensor.

    Raises:
        UnimplementedError: it is not known.
    """
    if x.shape.rank is None:
        raise refused(x.op, "the number of its axes is not known")
    return x.shape.rank


def is_half(dtype: DType) -> bool:
    """Whether elements have two bytes: they are computed with in float32."""
    return dtype.is_floating and dtype.size == 2
