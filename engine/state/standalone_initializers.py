"""Initial values that are computed from other variables, made so that they stand alone.

An initializer runs alone, or with others in any order. So what an initial value reads of another
variable becomes that variable's InitializedValue: what it holds, or else its own initial value.
The operations from there on are made once more for it, once for all initial values of a graph:
draws of one generator stay in order, and those that are seen elsewhere still fail before their
variables are initialised. Where a step runs an initializer too, `passes/initialized_values.py` has
its value come first.

State of an `InitialValues`:
    values[handle id]: the initial value of a variable of the graph;
    twins[operation id]: what takes the place of an operation; itself where nothing need;
    assigned[operation id]: the handles that have been assigned to before a twin runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..graph import Graph, GraphTensor, Operation
from ..graph.operation import OpDefinition
from ..ops.state.variable import assign, ensure_initialized, initialized_value, read_variable


class InitialValues:
    """What a graph knows of the initial values of its variables; see `Graph.attached`."""

    def __init__(self) -> None:
        self.values: dict[int, GraphTensor] = {}
        self.twins: dict[int, Operation] = {}
        self.assigned: dict[int, frozenset[int]] = {}

    def alone(self, value: GraphTensor) -> GraphTensor:
        """An initial value that needs no variable to be initialised before."""
        if not self.values:
            return value
        graph = value.graph
        with graph.control_dependencies(None), graph.name_scope(None):
            for op in self._unknown(value.op):
                self.twins[op.id] = self._twin(graph, op)
        return self.twins[value.op.id].outputs[value.value_index]

    def _unknown(self, last: Operation) -> Iterator[Operation]:
        """What an operation needs and has no twin yet, inputs first, and itself.

        What goes back to the start of a loop comes after what takes it.
        """
        seen = {last.id}
        stack = [(last, iter(_sources(last)))] if last.id not in self.twins else []
        while stack:
            op, rest = stack[-1]
            following = next((x for x in rest if x.id not in seen and x.id not in self.twins), None)
            if following is None:
                stack.pop()
                yield op
            else:
                seen.add(following.id)
                stack.append((following, iter(_sources(following))))

    def _twin(self, graph: Graph, op: Operation) -> Operation:
        """What takes the place of an operation whose sources have twins."""
        sources = [self.twins.get(x.id, x) for x in _sources(op)]
        before = frozenset[int]().union(*(self.assigned.get(x.id, ()) for x in sources))
        needed = [x for x in op.inputs if id(x) in self.values and id(x) not in before]
        if op.definition in (assign, initialized_value, ensure_initialized):
            needed = []
        given = [(x, self.values[id(x)]) for x in needed]
        if needed and op.definition is read_variable:
            twin = self._made(graph, initialized_value, given[0], {}, op)
        elif needed or sources != _sources(op):
            inputs = [self.twins.get(x.op.id, x.op).outputs[x.value_index] for x in op.inputs]
            twin = self._made(graph, op.definition, inputs, op.attrs, op)
            ensured = [self._made(graph, ensure_initialized, pair, {}, op) for pair in given]
            twin.control_inputs += ensured
        else:
            twin = op
        self.twins[twin.id] = twin
        if op.definition is assign:
            before |= {id(op.inputs[0])}
        if before:
            self.assigned[twin.id] = before
        return twin

    def _made(
        self,
        graph: Graph,
        definition: OpDefinition,
        inputs: Sequence[GraphTensor],
        attrs: Mapping[str, Any],
        like: Operation,
    ) -> Operation:
        """An operation in the place of `like`."""
        op = graph.add(definition, inputs, attrs, name=f"{like.name}/initial")
        op.device, op.colocation = like.device, like.colocation
        op.location, op.layer = like.location, like.layer
        controls = [self.twins.get(c.id, c) for c in like.control_inputs]
        op.control_inputs = list({c.id: c for c in controls}.values())
        return op


def _sources(op: Operation) -> list[Operation]:
    """What an operation waits for."""
    return [*(x.op for x in op.inputs), *op.control_inputs]
