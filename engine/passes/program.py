"""A program: what a plan is made of, in a graph of its own that passes may rewrite.

The graph that the user built is never edited: `Program.of` copies what is needed of it. Operations
keep their names, so that errors, statistics and placements tell of what the user wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..graph import Graph, GraphTensor, Operation, TensorSpec
from ..ops.core.basic import const_op, placeholder_op
from ..ops.core.registry import OpDef
from .partition import in_order
from .prune import needed_operations


class Program:
    """A graph with what a step gives, takes and runs.

    Attributes:
        graph: holds the operations.
        fetches: the tensors to compute.
        feeds: outputs of placeholders, whose values are given.
        targets: operations to run besides.
    """

    def __init__(
        self,
        graph: Graph,
        fetches: Sequence[GraphTensor],
        feeds: Sequence[GraphTensor],
        targets: Sequence[Operation],
    ) -> None:
        self.graph = graph
        self.fetches = list(fetches)
        self.feeds = list(feeds)
        self.targets = list(targets)

    @classmethod
    def of(
        cls,
        fetches: Sequence[GraphTensor],
        feeds: Sequence[GraphTensor] = (),
        targets: Sequence[Operation] = (),
    ) -> Program:
        """A copy of what computes `fetches` and runs `targets` from `feeds`.

        Each feed becomes a placeholder: with its own name if it was one, else `_feed_<op>_<k>`.
        """
        graph = Graph()
        tensors: dict[int, GraphTensor] = {}
        twins: dict[int, Operation] = {}
        for x in feeds:
            if id(x) in tensors:
                continue
            own = x.op.definition is placeholder_op
            name = x.op.name if own else f"_feed_{x.op.name}_{x.value_index}"
            attrs = {"shape": x.shape, "dtype": x.dtype}
            twin = graph.append(placeholder_op, name, (), attrs, (x.spec,), like=x.op)
            twin.colocation = ()
            tensors[id(x)] = twin.outputs[0]
            if own:
                twins[x.op.id] = twin
        needed = needed_operations(fetches, targets, feeds)
        for op in needed:
            if op.id not in twins:
                specs = tuple(y.spec for y in op.outputs)
                twin = graph.append(op.definition, op.name, (), op.attrs, specs, like=op)
                twins[op.id] = twin
                for y, other in zip(op.outputs, twin.outputs, strict=True):
                    tensors.setdefault(id(y), other)
        for op in needed:
            twin = twins[op.id]
            twin.inputs = tuple(tensors[id(x)] for x in op.inputs)
            twin.control_inputs = [twins[c.id] for c in op.control_inputs if c.id in twins]
        return cls(
            graph,
            [tensors[id(y)] for y in fetches],
            [tensors[id(x)] for x in feeds],
            [twins[op.id] for op in targets],
        )

    def copy(self) -> Program:
        """The same program in another graph."""
        return Program.of(self.fetches, self.feeds, self.targets)

    @property
    def operations(self) -> list[Operation]:
        """What a step runs, inputs before consumers."""
        needed = needed_operations(self.fetches, self.targets, self.feeds)
        return in_order(needed, self.feeds)

    def trim(self) -> None:
        """Drop what nothing needs, and number what stays in an order in which it can run."""
        given = {id(x.op): x.op for x in self.feeds}
        given |= {id(op): op for op in self.operations}
        self.graph.keep(list(given.values()))

    def users(self) -> dict[int, list[Operation]]:
        """By the id of a tensor, the operations that take it."""
        found: dict[int, list[Operation]] = {}
        for op in self.operations:
            for x in op.inputs:
                found.setdefault(id(x), []).append(op)
        return found

    def add(
        self,
        definition: OpDef,
        inputs: Sequence[GraphTensor],
        attrs: Mapping[str, Any] | None = None,
        *,
        like: Operation,
        name: str | None = None,
    ) -> Operation:
        """A new operation in the place of `like`: with its device, control inputs and line.

        Raises:
            LaminarError: the op refuses the inputs.
        """
        specs, full = definition.infer([x.spec for x in inputs], attrs or {})
        unique = self.graph.unique_name(name or f"{like.name}_{definition.type}")
        op = self.graph.append(definition, unique, inputs, full, specs, like=like)
        op.control_inputs = list(like.control_inputs)
        return op

    def replace(self, pairs: Sequence[tuple[GraphTensor, GraphTensor]]) -> None:
        """Have everybody who takes the first tensor of a pair take the second one.

        What waits for an operation whose outputs are all replaced waits for the new ones.
        """
        instead = {id(old): new for old, new in pairs}

        def now(x: GraphTensor) -> GraphTensor:
            while id(x) in instead:
                x = instead[id(x)]
            return x

        makers = {id(new.op) for _, new in pairs}
        gone: dict[int, list[Operation]] = {}
        for old, _ in pairs:
            if all(id(y) in instead for y in old.op.outputs):
                new_ops = {id(op): op for op in (now(y).op for y in old.op.outputs)}
                gone[id(old.op)] = list(new_ops.values())
        for op in self.graph.operations:
            if any(id(x) in instead for x in op.inputs):
                own = {id(y) for y in op.outputs}
                if id(op) not in makers or not any(id(now(x)) in own for x in op.inputs):
                    op.inputs = tuple(now(x) for x in op.inputs)
            if any(id(c) in gone for c in op.control_inputs):
                found = [n for c in op.control_inputs for n in gone.get(id(c), [c])]
                op.control_inputs = list({id(c): c for c in found if c is not op}.values())
        self.fetches = [now(y) for y in self.fetches]
        self.targets = [n for op in self.targets for n in gone.get(id(op), [op])[:1]]


def constant_like(program: Program, value: Any, old: GraphTensor) -> GraphTensor:
    """A constant in the place of a tensor: of its type, on its device."""
    op = old.op
    attrs = {"value": value, "dtype": old.dtype}
    spec = TensorSpec(value.shape, old.dtype)
    name = program.graph.unique_name(f"{op.name}_folded")
    return program.graph.append(const_op, name, (), attrs, (spec,), like=op).outputs[0]
