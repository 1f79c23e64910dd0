"""How operations of TensorFlow are written with those of laminar: the table, and what rules get.

A rule is registered under the names of ops of TensorFlow. It gets a `Call` and gives what the node
gives: a tensor, several, an operation, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ...errors import InvalidArgumentError, UnimplementedError
from ...graph import Graph, GraphTensor, TensorShape
from ...ops.core.entries import known_value
from ...ops.core.op_def import OpDef
from ...ops.state import variable as variables
from .graph_def import Node


class Reference(NamedTuple):
    """What stands for a variable: a reference to it, or the handle of one.

    Attributes:
        handle: of the variable.
        shape, dtype: of the variable.
        value: what it holds after an update; None where it is to be read.
    """

    handle: GraphTensor
    shape: TensorShape
    dtype: str
    value: GraphTensor | None = None

    @property
    def attrs(self) -> dict[str, Any]:
        """The attributes of the ops that read and update it."""
        return {"shape": self.shape, "dtype": self.dtype}

    def read(self) -> Any:
        """The value."""
        if self.value is not None:
            return self.value
        return variables.read_variable(self.handle, **self.attrs)

    def assign(self, value: Any) -> Any:
        """Store a value, and give it."""
        return variables.assign(self.handle, value, **self.attrs)

    def add(self, value: Any) -> Any:
        """Add to the variable, and give the sum."""
        return variables.assign_add(self.handle, value, **self.attrs)

    def subtract(self, value: Any) -> Any:
        """Subtract from the variable, and give the difference."""
        return variables.assign_sub(self.handle, value, **self.attrs)


class SummedTo(NamedTuple):
    """Axes over which a gradient is summed so that it has the shape that `shape` holds.

    `other` is the shape of the other operand. What is summed may have more axes behind those of
    the two together, as products of matrices have.
    """

    shape: Any
    other: Any


class Call:
    """A node with what it takes.

    Attributes:
        node: as it stands in the file.
        graph: that it is added to.
        inputs: tensors, `Reference`s, or `SummedTo`.
        scope: that will stand before all names of the graph.
    """

    def __init__(self, node: Node, graph: Graph, inputs: Sequence[Any], scope: str) -> None:
        self.node, self.graph, self.name = node, graph, node.name
        self.inputs, self.scope = inputs, scope

    def __len__(self) -> int:
        return len(self.inputs)

    def __getitem__(self, index: int) -> Any:
        """The value of an input."""
        if not -len(self.inputs) <= index < len(self.inputs):
            raise InvalidArgumentError(f"expected more than {len(self.inputs)} inputs")
        found = self.inputs[index]
        if isinstance(found, SummedTo):
            raise UnimplementedError("axes of a gradient are only summed over here")
        return found.read() if isinstance(found, Reference) else found

    @property
    def values(self) -> list[Any]:
        """The values of all inputs."""
        return [self[i] for i in range(len(self.inputs))]

    def reference(self, index: int) -> Reference:
        """An input that is a variable."""
        found = self.inputs[index] if index < len(self.inputs) else None
        if not isinstance(found, Reference):
            raise InvalidArgumentError(f"the input {index} is no variable")
        return found

    def known(self, index: int) -> Any:
        """The number, or the list of numbers, that an input is known to hold.

        Raises:
            UnimplementedError: a run decides it.
        """
        x = self[index]
        found = x.op.attrs["value"].tolist() if x.op.type == "Const" else known_value(x)
        if not isinstance(found, int | float | list):
            raise UnimplementedError(
                f"the input {index} is an axis, or a number of things, which a run computes here",
                remedy="make it a constant of the graph",
            )
        return found

    def known_list(self, index: int) -> list[int]:
        """As `known`, where one number stands for a list of it."""
        found = self.known(index)
        return found if isinstance(found, list) else [found]


Rule = Callable[[Call], Any]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register a rule for ops of these names."""

    def register(fn: Rule) -> Rule:
        RULES.update(dict.fromkeys(names, fn))
        return fn

    return register


def direct(call: Call, op: OpDef, *inputs: Any, **attrs: Any) -> Any:
    """The op itself, under the node's name."""
    return call.graph.add(op, inputs, attrs, name=f"{call.name}/")
