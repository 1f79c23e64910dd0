"""Graphs that are attributes, in the library of a GraphDef: branches and the bodies of loops.

Such a graph is a function: its inputs are placeholders among the function's nodes, "" stands for an
output that only another branch has, and "^node" among the outputs for an operation that runs though
no output needs it. An attribute names the function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from ..errors import InvalidArgumentError, ResourceExhaustedError
from .graph import Graph
from .graphdef import Message, no_function, write_value
from .library import MOST_NESTED, library_of, most_nodes, tensor_name
from .operation import GraphBody, Operation
from .tensor import GraphTensor

_PLACEHOLDER = "Placeholder"


# Adds the nodes of a function to a graph; gives those of its elements that have the names given.
Fill: TypeAlias = Callable[[Graph, Sequence[str]], list[GraphTensor | Operation]]
# Makes the body `name` in a new graph inside of `outer`, of the names of its inputs, outputs
# (None for one that is missing) and effects.
MakeBody: TypeAlias = Callable[
    [str, Graph, Fill, Sequence[str], Sequence[str | None], Sequence[str]], GraphBody
]
WriteNodes: TypeAlias = Callable[[Any, Sequence[Operation], Mapping[int, str]], None]


class BodyWriter:
    """Writes bodies into the library of a message, each once.

    Args:
        message: of the GraphDef.
        write_nodes: writes operations as nodes; the names of some tensors are given.
    """

    def __init__(self, message: Message, write_nodes: WriteNodes) -> None:
        self._message = message
        self._write_nodes = write_nodes
        self._names: dict[int, str] = {}

    def name_of(self, value: Any, op: Operation) -> str | None:
        """The name of the function that an attribute of an operation is, None if it is none."""
        if not isinstance(value, GraphBody):
            return None
        name = self._names.get(id(value))
        if name is None:
            name = self._names[id(value)] = f"{op.name}/{len(self._message.function)}"
            self._write(self._message.function.add(name=name), value)
        return name

    def _write(self, function: Message, body: GraphBody) -> None:
        operations = _needed(body)
        taken = {op.name for op in operations}
        names: dict[int, str] = {}
        for x in body.inputs:
            if id(x) in names:
                continue
            name = x.op.name
            while name in taken:
                name += "_value"
            taken.add(name)
            names[id(x)] = f"{name}:0"
            node = function.node.add(name=name, op=_PLACEHOLDER)
            for key, value in (("shape", x.shape), ("dtype", x.dtype)):
                write_value(node.attr[key], value, lambda _: None)
        self._write_nodes(function.node, operations, names)
        function.input.extend(names[id(x)] for x in body.inputs)
        for y in body.outputs:
            own = "" if y is None else f"{y.op.name}:{y.value_index}"
            function.output.append(own if y is None else names.get(id(y), own))
        function.output.extend(f"^{op.name}" for op in body.effects)


def _needed(body: GraphBody) -> list[Operation]:
    """The operations of a body that compute its outputs, and its effects."""
    given = {id(x) for x in body.inputs}
    needed: dict[int, Operation] = {}
    wanted = [y.op for y in body.outputs if y is not None and id(y) not in given]
    stack = [*wanted, *body.effects]
    while stack:
        op = stack.pop()
        if op.id in needed:
            continue
        needed[op.id] = op
        stack.extend(x.op for x in op.inputs if id(x) not in given)
        stack.extend(
            c for c in op.control_inputs if c.type != _PLACEHOLDER or id(c.outputs[0]) not in given
        )
    return [op for _, op in sorted(needed.items())]


class BodyReader:
    """Makes the bodies that attributes name, each once.

    Args:
        message: of the GraphDef.
        outer: the graph whose operations have the attributes.
        make: makes a body.
        fill: adds the nodes of a function to a graph.

    Attributes:
        library: the functions by name.
        most: how many nodes all graphs together may have.

    Raises:
        AlreadyExistsError: two functions have one name.
    """

    def __init__(
        self,
        message: Message,
        outer: Graph,
        make: MakeBody,
        fill: Callable[[BodyReader, Message, Graph, Sequence[str]], list[GraphTensor | Operation]],
    ) -> None:
        self.library = library_of(message.function)
        self.most = most_nodes(message)
        self._outer = outer
        self._make = make
        self._fill = fill
        self._made: dict[str, GraphBody] = {}
        self._callers: list[str] = []
        self._count = 0

    def body(self, name: str) -> GraphBody:
        """The body of that name.

        Raises:
            NotFoundError: there is no such function.
            InvalidArgumentError: it contains itself, or is nested too deep.
            ResourceExhaustedError: all bodies together are too large.
        """
        found = self._made.get(name)
        if found is not None:
            return found
        function = self.library.get(name)
        if function is None:
            no_function(name)
        if name in self._callers or len(self._callers) > MOST_NESTED:
            raise InvalidArgumentError(f"the function {name!r} is an attribute inside of itself")
        self._callers.append(name)
        try:
            found = self._made[name] = self._make(
                name,
                self._outer,
                lambda graph, names: self._fill(self, function, graph, names),
                [tensor_name(text) for text in function.input],
                [
                    tensor_name(text) if text else None
                    for text in function.output
                    if not text.startswith("^")
                ],
                [text for text in function.output if text.startswith("^")],
            )
        finally:
            self._callers.pop()
        return found

    def count(self, nodes: int) -> None:
        """Take note of nodes that are about to be written out.

        Raises:
            ResourceExhaustedError: with those of before they are more than `most`.
        """
        self._count += nodes
        if self._count > self.most:
            raise ResourceExhaustedError(
                f"with its functions written out the GraphDef has over {self.most} nodes",
                remedy="if the file is yours, write its functions out before",
            )
