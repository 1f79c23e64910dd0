"""Calls of functions, functional conditions and loops of TensorFlow, written out as nodes.

    PartitionedCall:  the body's nodes, in a scope of the call's name
    If, Case:         Switch -> (one body or the other) -> Merge
    While:            Enter -> Merge -> (condition) -> Switch -> (body) -> NextIteration; Exit

A node of the call's name gives its results. What a loop only reads comes by an Enter alone.

Source: tensorflow/core/common_runtime/{lower_if_op,lower_case_op,lower_while_op}.cc, which do the
    same before TensorFlow runs a graph.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...errors import DataLossError, InvalidArgumentError, NotFoundError, UnimplementedError
from ...graph.graphdef import parse_input
from .graph_def import Node

_MOST_NODES = 1_000_000  # that a graph may come to: few functions can call each other very often
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_IFS = frozenset({"If", "StatelessIf"})
_CASES = frozenset({"Case", "StatelessCase"})
_WHILES = frozenset({"While", "StatelessWhile"})
# The ops of loops as a graph has them.
ENTERS, EXITS = frozenset({"Enter", "RefEnter"}), frozenset({"Exit", "RefExit"})
_MERGES, _NEXT = frozenset({"Merge", "RefMerge"}), frozenset({"NextIteration", "RefNextIteration"})
STEERING = ENTERS | EXITS | _MERGES | _NEXT | {"Switch", "RefSwitch"}

# In functions an output has a name: those of ops with several, in their order. All others have one,
# which may be a list.
_NORMALIZED = ("batch_mean", "batch_variance", "reserve_space_1", "reserve_space_2")
_NORMALIZED_GRAD = ("x_backprop", "scale_backprop", "offset_backprop")
OUTPUTS: dict[str, tuple[str, ...]] = {
    "BroadcastGradientArgs": ("r0", "r1"),
    "FusedBatchNorm": ("y", *_NORMALIZED),
    "FusedBatchNormV2": ("y", *_NORMALIZED),
    "FusedBatchNormV3": ("y", *_NORMALIZED, "reserve_space_3"),
    "FusedBatchNormGrad": (*_NORMALIZED_GRAD, "reserve_space_3", "reserve_space_4"),
    "FusedBatchNormGradV2": (*_NORMALIZED_GRAD, "reserve_space_3", "reserve_space_4"),
    "FusedBatchNormGradV3": (*_NORMALIZED_GRAD, "reserve_space_4", "reserve_space_5"),
    "Merge": ("output", "value_index"),
    "Qr": ("q", "r"),
    "RefMerge": ("output", "value_index"),
    "RefSwitch": ("output_false", "output_true"),
    "SoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "SparseSoftmaxCrossEntropyWithLogits": ("loss", "backprop"),
    "StatelessRandomGetKeyCounter": ("key", "counter"),
    "Switch": ("output_false", "output_true"),
    "TensorArrayConcatV3": ("value", "lengths"),
    "TensorArrayGradV3": ("grad_handle", "flow_out"),
    "TensorArrayV3": ("handle", "flow"),
    "TensorListPopBack": ("output_handle", "tensor"),
    "TopK": ("values", "indices"),
    "TopKV2": ("values", "indices"),
    "Unique": ("y", "idx"),
}

Value = tuple[str, int]  # an output of a node


class _Body(NamedTuple):
    """What a function gives where it is written out, and the nodes that run with it."""

    results: list[Value]
    controls: list[str]


def written_out(nodes: Iterable[Node], functions: Iterable[Any]) -> dict[str, Node]:
    """The nodes of a graph by name, without calls of functions.

    Args:
        nodes: of the graph.
        functions: FunctionDefs, of which nodes name some.

    Raises:
        NotFoundError: there is no function of a name.
        UnimplementedError: a function calls itself.
        InvalidArgumentError: two nodes have one name, or there are too many.
        DataLossError: a function is damaged.
    """
    writer = _Writer({function.signature.name: function for function in functions})
    for node in nodes:
        writer.add(node, ())
    return writer.nodes


def split_loop(node: Node, nodes: Mapping[str, Node]) -> None:
    """Put the inputs of a Merge that come round a loop apart."""
    if node.op in _MERGES:
        names = {name for name, _ in node.inputs if name in nodes and nodes[name].op in _NEXT}
        node.late = [x for x in node.inputs if x[0] in names]
        node.inputs = [x for x in node.inputs if x[0] not in names]


class _Writer:
    """Writes out calls; `around` are the functions whose bodies a node stands in."""

    def __init__(self, functions: Mapping[str, Any]) -> None:
        self.functions = functions
        self.nodes: dict[str, Node] = {}

    def add(self, node: Node, around: tuple[str, ...]) -> None:
        """Add a node, or what it stands for."""
        if node.op in _CALLS:
            (name,) = node.functions("f")
            self._call(node, name, around)
        elif node.op in self.functions:
            self._call(node, node.op, around)
        elif node.op in _IFS:
            self._if(node, around)
        elif node.op in _CASES:
            self._case(node, around)
        elif node.op in _WHILES:
            self._while(node, around)
        else:
            self._keep(node)

    def _keep(self, node: Node) -> Node:
        if node.name in self.nodes:
            raise InvalidArgumentError(f"the graph has two nodes {node.name!r}")
        if len(self.nodes) >= _MOST_NODES:
            raise InvalidArgumentError(
                f"functions that call each other make more than {_MOST_NODES:,} nodes"
            )
        self.nodes[node.name] = node
        return node

    def _new(
        self,
        of: Node,
        name: str,
        op: str,
        inputs: Sequence[Value] = (),
        controls: Sequence[str] = (),
        **attrs: Any,
    ) -> str:
        """A node that belongs to a call; gives its name."""
        full = f"{of.name}/{name}"
        return self._keep(Node(full, op, inputs, controls, of.device, attrs)).name

    def _results(self, node: Node, found: _Body) -> None:
        op = "Identity" if len(found.results) == 1 else "IdentityN" if found.results else "NoOp"
        controls = [*node.controls, *found.controls]
        self._keep(Node(node.name, op, found.results, controls, node.device))

    # Bodies

    def _body(
        self,
        of: Node,
        scope: str,
        name: str,
        arguments: Sequence[Value],
        controls: Sequence[str],
        around: tuple[str, ...],
    ) -> _Body:
        """Write out a function whose nodes all wait for `controls`."""
        function = self.functions.get(name)
        if function is None:
            raise NotFoundError(f"node {of.name!r}: the graph has no function {name!r}")
        if name in around:
            raise UnimplementedError(f"node {of.name!r}: the function {name!r} calls itself")
        names = [argument.name for argument in function.signature.input_arg]
        if len(names) != len(arguments):
            raise DataLossError(
                f"node {of.name!r}: the function {name!r} takes {len(names)} inputs, "
                f"got {len(arguments)}"
            )
        given: dict[str, Value] = dict(zip(names, arguments, strict=True))
        prefix = f"{of.name}/{scope}/" if scope else f"{of.name}/"
        ops = {message.name: message.op for message in function.node_def}

        def value(text: str) -> Value:
            if text in given:
                return given[text]
            parts = text.split(":")
            if len(parts) != 3 or parts[0] not in ops or not parts[2].isdigit():
                raise DataLossError(f"function {name!r}: there is no {text!r}")
            return f"{prefix}{parts[0]}", self._place(ops[parts[0]], parts[1], int(parts[2]))

        for message in function.node_def:
            inputs, waits = [], [*controls]
            for text in message.input:
                if not text.startswith("^"):
                    inputs.append(value(text))
                    continue
                source = parse_input(text)[0]
                waits.append(given[source][0] if source in given else prefix + source)
            node = Node(
                prefix + message.name,
                message.op,
                inputs,
                waits,
                message.device or of.device,
                message.attr,
            )
            self.add(node, (*around, name))
        missing = [a.name for a in function.signature.output_arg if a.name not in function.ret]
        if missing:
            raise DataLossError(f"function {name!r} does not say what {missing[0]!r} is")
        results = [value(function.ret[a.name]) for a in function.signature.output_arg]
        return _Body(results, [prefix + source for source in function.control_ret.values()])

    def _place(self, op: str, output: str, index: int) -> int:
        """The number of an output, of those of all names."""
        called = self.functions.get(op)
        names = [*OUTPUTS.get(op, (output,))]
        if called is not None:
            names = [str(argument.name) for argument in called.signature.output_arg]
        if output not in names:
            raise DataLossError(f"{op} has no output {output!r}")
        place: int = names.index(output)
        return place + index

    # Calls

    def _call(self, node: Node, function: str, around: tuple[str, ...]) -> None:
        self._results(node, self._body(node, "", function, node.inputs, node.controls, around))

    def _if(self, node: Node, around: tuple[str, ...]) -> None:
        condition = node.inputs[0]
        (other,), (then,) = node.functions("else_branch"), node.functions("then_branch")
        branches = {"else": (condition, 0, other), "then": (condition, 1, then)}
        self._branches(node, branches, around)

    def _case(self, node: Node, around: tuple[str, ...]) -> None:
        """A branch by its number; the last one, if no other has the number."""
        *others, last = node.functions("branches")
        branches: dict[str, tuple[Value, int, str]] = {}
        no_other: Value = self._constant(node, "no_other", np.array(True)), 0
        for i, name in enumerate(others):
            number = self._constant(node, f"number_{i}", np.array(i, np.int32))
            is_it = self._new(node, f"is_{i}", "Equal", [node.inputs[0], (number, 0)])
            branches[f"branch_{i}"] = (is_it, 0), 1, name
            is_other = self._new(node, f"is_not_{i}", "LogicalNot", [(is_it, 0)])
            no_other = self._new(node, f"after_{i}", "LogicalAnd", [no_other, (is_other, 0)]), 0
        branches[f"branch_{len(others)}"] = no_other, 1, last
        self._branches(node, branches, around)

    def _constant(self, of: Node, name: str, value: Any) -> str:
        return self._new(of, name, "Const", value=value, dtype=str(value.dtype))

    def _branches(
        self,
        node: Node,
        branches: Mapping[str, tuple[Value, int, str]],
        around: tuple[str, ...],
    ) -> None:
        """The one of several functions whose condition holds.

        Args:
            node: the call; its first input decides.
            branches: by a name for each: a condition, which side of it is meant, and the function.
            around: see the class.
        """
        arguments = node.inputs[1:]
        switches: dict[Value, tuple[str, list[str]]] = {}  # by condition: of itself, of arguments
        bodies, ends = [], []
        for scope, (condition, side, function) in branches.items():
            if condition not in switches:
                name = f"switch_{len(switches)}" if len(branches) > 2 else "switch"
                own = self._new(node, name, "Switch", [condition, condition], node.controls)
                switches[condition] = (
                    own,
                    [
                        self._new(
                            node, f"{name}/input_{i}", "Switch", [x, condition], node.controls
                        )
                        for i, x in enumerate(arguments)
                    ],
                )
            own, switched = switches[condition]
            pivot = self._new(node, f"{scope}/pivot", "Identity", [(own, side)])
            given = [(name, side) for name in switched]
            found = self._body(node, scope, function, given, [pivot], around)
            bodies.append(found)
            ends.append(
                (self._new(node, f"{scope}/done", "Identity", [(pivot, 0)], found.controls), 0)
            )
        if len({len(found.results) for found in bodies}) > 1:
            raise DataLossError(f"node {node.name!r}: its functions give different results")
        done = self._new(node, "done", "Merge", ends)
        columns = zip(*(found.results for found in bodies), strict=True)
        merged = [self._new(node, f"output_{i}", "Merge", xs) for i, xs in enumerate(columns)]
        self._results(node, _Body([(name, 0) for name in merged], [done]))

    def _while(self, node: Node, around: tuple[str, ...]) -> None:
        (cond,), (body,) = node.functions("cond"), node.functions("body")
        varying = self._varying(node, body)
        frame = {
            "frame_name": f"{node.name}/frame".encode(),
            "parallel_iterations": node.attr("parallel_iterations", 10),
        }
        enters = [
            self._new(
                node, f"enter_{i}", "Enter", [x], node.controls, **frame, is_constant=not varies
            )
            for i, (x, varies) in enumerate(zip(node.inputs, varying, strict=True))
        ]
        backs = {i: f"{node.name}/next_{i}" for i, varies in enumerate(varying) if varies}
        shapes = node.attr("output_shapes", []) or node.attr("_output_shapes", [])
        now: list[Value] = []
        for i, enter in enumerate(enters):
            if i not in backs:
                now.append((enter, 0))
                continue
            seen = {"_output_shapes": [shapes[i]]} if i < len(shapes) else {}
            inputs: list[Value] = [(enter, 0), (backs[i], 0)]
            now.append((self._new(node, f"merge_{i}", "Merge", inputs, **seen), 0))
        first = next(iter(backs))
        tested = self._body(node, "cond", cond, now, [now[first][0]], around)
        goes_on = self._new(node, "goes_on", "LoopCond", tested.results, tested.controls)
        switches = {
            i: self._new(node, f"switch_{i}", "Switch", [now[i], (goes_on, 0)]) for i in backs
        }
        pivot = self._new(node, "pivot", "Identity", [(switches[first], 1)])
        given = [(switches[i], 1) if i in backs else x for i, x in enumerate(now)]
        found = self._body(node, "body", body, given, [pivot], around)
        results: list[Value] = []
        for i, x in enumerate(node.inputs):
            if i not in backs:
                results.append(x)
                continue
            value = self._new(node, f"value_{i}", "Identity", [found.results[i]], found.controls)
            self._new(node, f"next_{i}", "NextIteration", [(value, 0)])
            results.append((self._new(node, f"exit_{i}", "Exit", [(switches[i], 0)]), 0))
        self._results(node, _Body(results, []))

    def _varying(self, node: Node, name: str) -> list[bool]:
        """Which variables of a loop its body changes; the first, if none."""
        function = self.functions.get(name)
        if function is None:
            raise NotFoundError(f"node {node.name!r}: the graph has no function {name!r}")
        taken, given = function.signature.input_arg, function.signature.output_arg
        if not len(taken) == len(given) == len(node.inputs) > 0:
            raise DataLossError(f"node {node.name!r}: its body does not give what it takes")
        found = [
            function.ret.get(result.name) != argument.name
            for argument, result in zip(taken, given, strict=True)
        ]
        return found if any(found) else [True, *found[1:]]
