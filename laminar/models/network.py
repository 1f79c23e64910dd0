"""Network: the graph of symbolic calls between the inputs and outputs of a model.

State: `nodes` are the calls in an order in which inputs stand before what uses them;
`operations` are the layers and ops called, deepest first, in Keras's order, which is that of the
weights and of the config; `parts` is in how many stretches of calls only what enters each is kept
for the gradient.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from typing import Any

from laminar.distribute.replicas import part_call
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.recording import recorders
from laminar.layers.input import Input, InputLayer
from laminar.layers.layer import Layer
from laminar.layers.remat import remat
from laminar.layers.symbolic import Callee, KerasTensor, Node, unique
from laminar.tree import flatten, map_structure, pack_sequence_as

from .network_inputs import is_input, matched, name_of


class Network:
    """The calls that lead from `inputs` to `outputs` (structures of symbolic tensors).

    Raises:
        InvalidArgumentError: something that is not a symbolic tensor, two layers of one name, or
            outputs that need an input which is not given.
    """

    def __init__(self, inputs: Any, outputs: Any, who: str) -> None:
        self.who = who
        self.inputs_structure = inputs
        self.outputs_structure = outputs
        self.inputs: list[KerasTensor] = self._symbols(inputs, "inputs")
        self.outputs: list[KerasTensor] = self._symbols(outputs, "outputs")
        if len(unique(self.inputs)) != len(self.inputs):
            raise InvalidArgumentError(f"{who}: an input is listed twice")
        self._told: set[str] = set()  # the structures of inputs of which it has warned
        self.parts = 1
        self._order()
        self._check_names()

    def __deepcopy__(self, memo: dict[int, Any]) -> Network:
        for node in self.nodes:  # from the inputs on: a walk back from the outputs may be long
            copy.deepcopy(node.operation, memo)
        inputs, outputs = self.inputs_structure, self.outputs_structure
        new = Network(copy.deepcopy(inputs, memo), copy.deepcopy(outputs, memo), self.who)
        new.parts = self.parts
        return new

    def _symbols(self, structure: Any, what: str) -> list[KerasTensor]:
        leaves = flatten(structure)
        for leaf in leaves:
            if not isinstance(leaf, KerasTensor):
                raise InvalidArgumentError(
                    f"{self.who}: {what} must be symbolic tensors, got {leaf!r}",
                    remedy="start from Input(shape=...) and call layers on it",
                )
        if not leaves:
            raise InvalidArgumentError(f"{self.who}: there are no {what}")
        return leaves

    def _order(self) -> None:
        """Find `nodes` and `operations`, walking back from the outputs."""
        fed = {id(x) for x in self.inputs}
        seen: dict[int, Node] = {}
        first_seen: dict[int, int] = {}
        finished: list[Node] = []
        for output in self.outputs:
            stack = self._makers([output], fed)
            while stack:
                node, done = stack.pop()
                if done:
                    finished.append(node)
                    continue
                if id(node) in seen:
                    continue
                seen[id(node)] = node
                first_seen.setdefault(id(node.operation), len(first_seen))
                stack.append((node, True))
                if isinstance(node.operation, InputLayer) and id(node.outputs[0]) not in fed:
                    raise InvalidArgumentError(
                        f"{self.who}: the outputs need the input {node.operation.name!r}, "
                        f"which is not among the inputs of the model",
                        remedy="add it to inputs=",
                    )
                stack.extend(reversed(self._makers(node.inputs, fed)))
        self.nodes = finished
        unused = [_node_of(x) for x in self.inputs if is_input(x)]  # they are fed all the same
        self._own_nodes = {id(node) for node in (*finished, *unused)}
        self._rank(finished, first_seen)

    def _makers(self, tensors: list[KerasTensor], fed: set[int]) -> list[tuple[Node, bool]]:
        """The calls that made the tensors, not done: of those that are fed, only Inputs."""
        found = []
        for x in tensors:
            if is_input(x) or (x.has_history and id(x) not in fed):
                found.append((_node_of(x), False))
            elif id(x) not in fed:
                raise InvalidArgumentError(
                    f"{self.who}: the outputs need {x!r}, which is not among the inputs, "
                    "and which no layer made",
                    remedy="add it to inputs=",
                )
        return found

    def _rank(self, nodes: list[Node], first_seen: dict[int, int]) -> None:
        depths: dict[int, int] = {}
        of_operation: dict[int, int] = {}
        for node in reversed(nodes):
            key = id(node.operation)
            depth = max(depths.get(id(node), 0), of_operation.get(key, 0))
            depths[id(node)] = of_operation[key] = depth
            for parent in node.parents:
                depths[id(parent)] = max(depth + 1, depths.get(id(parent), 0))
        operations = {id(n.operation): n.operation for n in nodes}
        for x in self.inputs:  # an input that nothing uses is still fed
            if is_input(x):
                operations.setdefault(id(x.history.operation), x.history.operation)
        self.operations: list[Callee] = sorted(
            operations.values(),
            key=lambda op: (-of_operation.get(id(op), 0), first_seen.get(id(op), -1)),
        )

    def _check_names(self) -> None:
        names: set[str] = set()
        for op in self.operations:
            if op.name in names:
                raise InvalidArgumentError(
                    f"{self.who}: two layers are named {op.name!r}",
                    remedy="give each layer of a model a name of its own, or none",
                )
            names.add(op.name)

    @property
    def layers(self) -> list[Layer]:
        """The layers among the operations."""
        return [op for op in self.operations if isinstance(op, Layer)]

    @property
    def input_names(self) -> list[str]:
        """The names of the inputs, in order."""
        return [name_of(x) for x in self.inputs]

    @property
    def output_names(self) -> list[str]:
        """The name of the operation behind each output."""
        return [name_of(y) for y in self.outputs]

    def calls_of(self, operation: Callee) -> list[Node]:
        """The calls of an operation that belong to the network, in order."""
        return [node for node in operation.inbound_nodes if id(node) in self._own_nodes]

    def run(self, inputs: Any) -> Any:
        """Compute the outputs from the inputs, calling each operation as it was called."""
        values: dict[int, Any] = {}
        given = matched(inputs, self.inputs_structure, self.inputs, self.who, self._told)
        for x, value in zip(self.inputs, given, strict=True):
            values[id(x)] = value
        if self.parts > 1 and recorders.active:
            self._run_parts(values)
        else:
            run_calls(self.nodes, values)
        found = pack_sequence_as(self.outputs_structure, [values[id(y)] for y in self.outputs])
        if isinstance(found, list | tuple) and len(found) == 1:
            return found[0]  # a list of one output is that output
        return found

    def _run_parts(self, values: dict[int, Any]) -> None:
        """Run all calls, and keep for the gradient only what enters the parts and the last part."""
        wanted = {id(y) for y in self.outputs}
        stretches = []
        for nodes in reversed(stretches_of(self.nodes, self.parts)):
            made = [y for node in nodes for y in node.outputs]
            stretches.append((nodes, [y for y in made if id(y) in wanted]))
            wanted |= {id(x) for node in nodes for x in node.inputs}
        *firsts, (last, _) = reversed(stretches)
        for nodes, results in firsts:
            own = {id(y) for node in nodes for y in node.outputs}
            used = unique([x for node in nodes for x in node.inputs])
            entering = {id(x): values[id(x)] for x in used if id(x) not in own or id(x) in values}

            def compute(
                entering: dict[int, Any], nodes: list[Node] = nodes, results: Any = results
            ) -> list[Any]:
                inner = dict(entering)
                run_calls(nodes, inner)
                return [inner[id(y)] for y in results]

            for y, value in zip(results, remat(compute)(entering), strict=True):
                values.setdefault(id(y), value)
        run_calls(last, values)


def run_calls(nodes: Sequence[Node], values: dict[int, Any]) -> None:
    """Call operations as they were called, and add what they give to the values by tensor."""
    for node in nodes:
        if all(id(t) in values for t in node.outputs):
            continue
        args, kwargs = node.fill(values)
        result = flatten(part_call(node.operation, args, kwargs))
        for tensor, value in zip(flatten(node.structured_outputs), result, strict=True):
            values.setdefault(id(tensor), value)  # what is fed counts


def stretches_of(nodes: Sequence[Node], count: int) -> list[list[Node]]:
    """The calls in `count` stretches, or fewer, whose results have about as many elements each."""
    sizes = [sum(math.prod(n or 1 for n in y.shape) for y in node.outputs) for node in nodes]
    total, before = max(sum(sizes), 1), 0
    found: dict[int, list[Node]] = {}
    for node, size in zip(nodes, sizes, strict=True):
        found.setdefault(count * before // total, []).append(node)
        before += size
    return list(found.values())


def cut(network: Network) -> Network:
    """The network with an Input for each tensor that enters it in the middle of another one."""
    if all(map(is_input, network.inputs)):
        return network

    def entry(x: KerasTensor) -> KerasTensor:
        if is_input(x):
            return x
        if not x.has_history:  # one that nothing made becomes the input itself
            return InputLayer(input_tensor=x, name=x.name).output_tensor
        return Input(batch_shape=x.shape, dtype=x.dtype, name=x.name)

    inputs = map_structure(entry, network.inputs_structure)
    outputs = network.outputs_structure
    if any(x is not y for x, y in zip(flatten(inputs), network.inputs, strict=True)):
        # The calls once more, on the new inputs.
        outputs = pack_sequence_as(outputs, flatten(network.run(inputs)))
    return Network(inputs, outputs, network.who)


def _node_of(tensor: KerasTensor) -> Node:
    operation, node_index, _ = tensor.history
    return operation.inbound_nodes[node_index]
