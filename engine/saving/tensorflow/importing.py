"""Nodes of TensorFlow's graphs written with operations of laminar.

Each node becomes an operation of its name, so that `"y:0"`, collections, savers and feeds find it;
what needs several operations has the others in the scope `laminar` of that name. (A node with
several outputs that laminar has no one op for is called by its name, its outputs are not.)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...errors import InvalidArgumentError, LaminarError, NotFoundError, UnimplementedError
from ...graph import DeviceSpec, Graph, GraphTensor, Operation, get_default_graph, resource
from ...graph.graphdef import GraphDef
from ...graph.order import topological
from ...ops.control.dataflow import close_loop
from ...ops.core.basic import group, identity
from . import (  # noqa: F401  # register rules
    arrays,
    blocks,
    gradients,
    loops,
    maths,
    states,
    texts,
    training,
)
from .calls import ENTERS, EXITS, STEERING, split_loop, written_out
from .graph_def import Node, TensorFlowGraph, nodes_of
from .one_to_one import ONE_TO_ONE
from .rules import RULES, Call, Reference, SummedTo

_PARTS = "laminar"  # the scope, in that of a node, of the operations that it is written with


def graph_def_of(found: TensorFlowGraph, scope: str) -> GraphDef:
    """A graph of TensorFlow as data of laminar.

    Args:
        found: what TensorFlow wrote.
        scope: will stand before all names, "" or with "/" at the end; variables that are kept under
            the names of their nodes are kept under those names.

    Raises:
        UnimplementedError: there is an op, or a use of one, that laminar does not have; it says
            which.
        InvalidArgumentError, NotFoundError, DataLossError: the graph is damaged.
    """
    nodes = written_out(nodes_of(found), found.message.library.function)
    _check_ops(nodes.values(), found)
    for node in nodes.values():
        split_loop(node, nodes)
    graph = Graph()
    graph.seed = get_default_graph().seed
    outputs: dict[str, Sequence[Any]] = {}
    operations: dict[str, Operation] = {}
    frames: dict[str, tuple[str, ...]] = {}  # the loops around a node, and what it gives
    with graph.as_default():
        for node in _in_order(nodes):
            controls = [operations[c] for c in node.controls]
            frames[node.name] = _frames_of(node, frames)
            if frames[node.name] and node.op not in STEERING and not controls:
                # What a rule makes of constants alone would stand outside of the loop.
                controls = [operations[name] for name, _ in node.inputs if frames[name]][:1]
            place = DeviceSpec.from_string(_device(node))
            with graph.control_dependencies(controls), graph.device(place):
                try:
                    inputs = [_output(outputs, *source) for source in node.inputs]
                    made = _add(Call(node, graph, inputs, scope))
                except LaminarError as cause:
                    text = f"node {node.name!r} ({node.op} of TensorFlow): {cause.message}"
                    raise type(cause)(text, remedy=cause.remedy) from cause
            outputs[node.name], operations[node.name] = made
        for node in nodes.values():
            for source in node.late:
                merged, back = (_tensor(_output(outputs, *x)) for x in ((node.name, 0), source))
                close_loop(merged, back)
    return graph.as_graph_def()


def _check_ops(nodes: Iterable[Node], found: TensorFlowGraph) -> None:
    missing = {node.op for node in nodes if node.op not in RULES and node.op not in ONE_TO_ONE}
    if missing:
        raise UnimplementedError(
            f"the graph of TensorFlow {found.version} has operations that laminar does not have: "
            f"{', '.join(sorted(missing)[:12])}",
            remedy="build the graph by its program with laminar.compat.v1; the values of the "
            "checkpoint can be restored into it",
        )


def _in_order(nodes: Mapping[str, Node]) -> list[Node]:
    place = {name: i for i, name in enumerate(nodes)}
    sources: list[set[int]] = []
    for node in nodes.values():
        names = {source for source, _ in node.inputs} | set(node.controls)
        for name in names:
            if name not in place:
                raise NotFoundError(
                    f"node {node.name!r} takes {name!r}, which the graph does not have"
                )
        sources.append({place[name] for name in names})
    order = topological(sources)
    if len(order) < len(nodes):
        stuck = sorted(set(nodes) - {list(nodes)[i] for i in order})
        raise InvalidArgumentError(
            f"the graph has a cycle that goes through no NextIteration: {', '.join(stuck[:3])}"
        )
    listed = list(nodes.values())
    return [listed[i] for i in order]


def _frames_of(node: Node, frames: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The loops around what a node gives, from the outermost on."""
    sources = [name for name, _ in node.inputs] + node.controls
    around = next((frames[name] for name in sources if frames[name]), ())
    if node.op in ENTERS:
        return (*around, node.text("frame_name"))
    return around[:-1] if node.op in EXITS else around


def _device(node: Node) -> str:
    """Where it is placed; laminar spells the types of devices small."""
    return node.device.replace(":CPU:", ":cpu:").replace(":GPU:", ":gpu:")


def _output(outputs: Mapping[str, Sequence[Any]], source: str, index: int) -> Any:
    if index >= len(outputs[source]):
        raise NotFoundError(f"the node {source!r} has {len(outputs[source])} outputs, not {index}")
    return outputs[source][index]


def _add(call: Call) -> tuple[Sequence[Any], Operation]:
    """The outputs of a node, and the operation that has its name."""
    direct = ONE_TO_ONE.get(call.node.op)
    if direct is not None:
        op = call.graph.add(direct, call.values, {}, name=f"{call.name}/")
        return op.outputs, op
    with call.graph.name_scope(f"{call.name}/{_PARTS}/"):
        result = RULES[call.node.op](call)
    if isinstance(result, Operation):
        return result.outputs, _named(call, result)
    outputs = list(result) if type(result) in (tuple, list) else [result]
    tensors = [_tensor(x) for x in outputs if not isinstance(x, SummedTo)]
    whole = tensors[0].op if tensors else None
    if whole is None or whole.name == call.name:
        return outputs, whole or group(name=f"{call.name}/")
    if len(outputs) == 1 and not _is_handle(outputs[0]):
        made = call.graph.add(identity, tensors, name=f"{call.name}/")
        own = outputs[0]
        (value,) = made.outputs
        return [own._replace(value=value) if isinstance(own, Reference) else value], made
    is_own = whole.name.startswith(f"{call.name}/{_PARTS}/")
    if is_own and [id(x) for x in whole.outputs] == [id(x) for x in outputs]:
        # The same again under the node's name; nobody runs `whole`.
        made = call.graph.add(whole.definition, whole.inputs, whole.attrs, name=f"{call.name}/")
        return made.outputs, made
    return outputs, group(*tensors, name=f"{call.name}/")


def _is_handle(output: Any) -> bool:
    """Whether it stands for a variable, a stack, a list, ...: no operation copies it."""
    return _tensor(output).dtype == resource


def _tensor(output: Any) -> GraphTensor:
    if isinstance(output, Reference):
        return output.handle if output.value is None else output.value
    assert isinstance(output, GraphTensor)
    return output


def _named(call: Call, op: Operation) -> Operation:
    """An operation of the node's name: `op`, or one that has run when `op` has."""
    return op if op.name == call.name else group(op, name=f"{call.name}/")
