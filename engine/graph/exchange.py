"""Graphs written as GraphDefs, and read from them.

Nothing in a GraphDef can run code: an attribute is a number, text, a type, a shape, a tensor, a
graph of the library (see bodies.py), or a list of these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from .. import graph as room
from ..errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    LaminarError,
    NotFoundError,
    UnimplementedError,
)
from ..late import later
from .device import DeviceSpec
from .graph import Graph
from .graphdef import GraphDef, Message, no_function, parse_input, read_value, write_value
from .operation import OpDefinition, Operation
from .scopes import check_name
from .shapes import TensorShape
from .spec import TensorSpec
from .tensor import GraphTensor, Tensor

if TYPE_CHECKING:
    from .bodies import BodyReader, BodyWriter, MakeBody

_topological = later("laminar.engine.graph.order", "topological")
# The version of the format; a reader refuses what asks for a later one.
VERSION = 1
_COLOCATED = "loc:@"
_LABEL = "_kernel"  # the attribute of a node that is computed by kernels with a label
_SHAPES = "_output_shapes"  # what is known of a node's outputs beside what its op says of them


# Writing


def export_graph(
    graph: Graph, operations: Sequence[Operation] | None = None, *, exact: bool = False
) -> GraphDef:
    """The operations of `graph` as data.

    What a function captures becomes placeholders; attributes that are Python functions are left
    out where the op does without one.

    Args:
        graph: what is written.
        operations: those of its operations that are written, where the reader has the others.
        exact: whether shapes that were set beside what the ops say of them are written too.

    Raises:
        InvalidArgumentError: an attribute is of a kind that the format does not have, or a Python
            function that the op needs.
    """
    found = GraphDef()
    found.message.versions.producer = VERSION
    found.message.versions.min_consumer = 1
    writer: BodyWriter = room.bodies.BodyWriter(
        found.message,
        lambda nodes, operations, names: _write_nodes(nodes, operations, names, writer),
    )
    known = {op.id for op in graph.operations}
    written = graph.operations if operations is None else operations
    _write_nodes(found.message.node, written, {}, writer, known, exact=exact)
    found.message.node_count = len(found.message.node)
    return found


def node_def(operation: Operation) -> Message:
    """An operation as a NodeDef message."""
    found = export_graph(operation.graph, [operation]).message
    return found.node[0]


def _write_nodes(
    nodes: Any,
    operations: Sequence[Operation],
    names: Mapping[int, str],
    writer: BodyWriter,
    known: Collection[int] | None = None,
    *,
    exact: bool = False,
) -> None:
    """Write operations as nodes.

    Args:
        nodes: of a message.
        operations: what is written.
        names: those of tensors that others give.
        writer: of graphs that are attributes.
        known: the ids of the operations that the reader has; by default those that are written.
        exact: see `export_graph`.
    """
    known = {op.id for op in operations} if known is None else known
    for op in operations:
        node = nodes.add(name=op.name, op=op.type, device=op.device)
        node.input.extend(names.get(id(x)) or _input_name(x) for x in op.inputs)
        node.input.extend(f"^{c.name}" for c in op.control_inputs if c.id in known)
        node.colocation.extend(_COLOCATED + name for name in op.colocation)
        if op.definition.label:
            write_value(node.attr[_LABEL], op.definition.label, lambda _: None)
        is_merged = any(x.op.id > op.id for x in op.inputs)  # with what comes round a loop
        if (exact or is_merged) and (shapes := _set_shapes(op, exact)) is not None:
            write_value(node.attr[_SHAPES], shapes, lambda _: None)
        for name, value in sorted(op.attrs.items()):
            if callable(value):
                if name not in op.definition.defaults:
                    raise InvalidArgumentError(
                        f"{op.type} {op.name!r} calls the Python function {value!r} of this "
                        f"process: a graph with it cannot be written",
                        remedy="leave it out of what is written, or use ops instead",
                        location=op.location,
                    )
            else:
                try:
                    write_value(node.attr[name], value, partial(writer.name_of, op=op))
                except (TypeError, ValueError) as cause:
                    raise InvalidArgumentError(
                        f"{op.type} {op.name!r}: the attribute {name!r} cannot be written, "
                        f"it is {value!r}: {cause}",
                        remedy="attributes are numbers, text, dtypes, shapes, arrays, or tuples",
                    ) from cause


def _set_shapes(op: Operation, exact: bool) -> list[TensorShape] | None:
    """The shapes of an operation's outputs, None where they are what the op says of them.

    Without `exact` they are written where less is known of them, which is no claim of the writer.
    """
    # A reader knows nothing of what comes round a loop, which is made after the operation.
    specs, _ = op.definition.infer([x.spec for x in op.inputs if x.op.id < op.id], op.attrs)
    shapes = [y.shape for y in op.outputs]
    if shapes == [spec.shape for spec in specs]:
        return None
    return shapes if exact or _loosen(shapes, specs) else None


def _loosen(shapes: Sequence[TensorShape], specs: Sequence[TensorSpec]) -> bool:
    """Whether shapes say nothing that specs do not say."""
    return all(
        shape.is_compatible_with(spec.shape) and shape.merge_with(spec.shape) == spec.shape
        for shape, spec in zip(shapes, specs, strict=True)
    )


def _input_name(x: GraphTensor) -> str:
    return f"{x.op.name}:{x.value_index}" if x.value_index else x.op.name


# Reading


class LoopOps(NamedTuple):
    """The ops between which the edge of a loop goes back: from a NextIteration to a Merge."""

    merge: OpDefinition
    next_iteration: OpDefinition


class _Node:
    """A node that is about to be added, with its names resolved.

    `late` are the inputs that come round a loop, which are added when what makes them is there;
    `shapes` those that were set beside what the op says of its outputs, None for none; unless they
    are `exact`, they may only leave out what is known.
    """

    def __init__(
        self,
        message: Message,
        definition: OpDefinition,
        attrs: dict[str, Any],
        shapes: Sequence[TensorShape] | None,
        exact: bool,
    ) -> None:
        self.name: str = message.name
        self.message = message
        self.device = DeviceSpec.from_string(message.device)
        self.definition = definition
        self.attrs = attrs
        self.shapes = shapes
        self.exact = exact
        self.inputs: list[tuple[str, int]] = []
        self.late: list[tuple[str, int]] = []
        self.controls: list[str] = []
        for text in message.input:
            name, index = parse_input(text)
            if index is None:
                self.controls.append(name)
            elif self.controls:
                raise InvalidArgumentError(f"the data input {text!r} stands after a control input")
            else:
                self.inputs.append((name, index))
        for text in message.colocation:
            if not text.startswith(_COLOCATED):
                raise InvalidArgumentError(f'colocation is written "loc:@node", got {text!r}')
        self.colocation = [text.removeprefix(_COLOCATED) for text in message.colocation]
        if self.device.colocated_with is not None:
            self.colocation.append(self.device.colocated_with)
            self.device = DeviceSpec()

    def specs(self, inputs: Sequence[TensorSpec]) -> tuple[TensorSpec, ...]:
        """What its outputs are."""
        specs, _ = self.definition.infer(inputs, self.attrs)
        if self.shapes is None:
            return specs
        if len(self.shapes) != len(specs) or not all(
            isinstance(shape, TensorShape) and spec.shape.is_compatible_with(shape)
            for spec, shape in zip(specs, self.shapes, strict=True)
        ):
            raise InvalidArgumentError(f"the shapes {list(self.shapes)} are not those of {specs}")
        if not self.exact and not _loosen(self.shapes, specs):
            raise InvalidArgumentError(f"the shapes {list(self.shapes)} say more than {specs}")
        return tuple(
            TensorSpec(shape, spec.dtype) for spec, shape in zip(specs, self.shapes, strict=True)
        )

    def split_loop(self, nodes: Mapping[str, _Node], loop: LoopOps) -> None:
        """Take note of which inputs come round a loop."""
        if self.definition is not loop.merge:
            return
        back = [n in nodes and nodes[n].definition is loop.next_iteration for n, _ in self.inputs]
        first = back.index(True) if True in back else len(back)
        if not all(back[first:]):
            raise InvalidArgumentError("an input that comes round a loop stands before another")
        self.inputs, self.late = self.inputs[:first], self.inputs[first:]


def import_graph(
    graph: Graph,
    graph_def: GraphDef,
    lookup: Callable[[str], OpDefinition],
    *,
    as_input: Callable[[Tensor], GraphTensor],
    input_map: Mapping[str, Tensor | Operation],
    return_elements: Sequence[str],
    name: str,
    allow_internal: bool,
    make_body: MakeBody,
    loop: Callable[[], LoopOps],
) -> list[GraphTensor | Operation]:
    """Add the nodes of `graph_def` to `graph`; see `laminar.engine.import_graph_def`.

    Args:
        lookup: the op of a name; NotFoundError when there is none.
        as_input: brings a tensor of `input_map` into the graph.
        make_body: makes a graph that is an attribute.
        loop: gives the ops that close loops, of which nodes that go round are made.
    """
    _check_version(graph_def)
    for function in graph_def.message.function:
        if _is_op(function.name, lookup):
            raise AlreadyExistsError(
                f"a function of the GraphDef has an op's name: {function.name!r}"
            )

    def fill(
        bodies: BodyReader, function: Message, inner: Graph, names: Sequence[str]
    ) -> list[GraphTensor | Operation]:
        body = GraphDef(type(graph_def.message)())
        body.message.node.extend(function.node)
        read = _Reading(bodies, lookup, loop, allow_internal)
        return _add_nodes(inner, body, read, as_input, {}, names, "")

    bodies = None
    if graph_def.message.function:
        bodies = room.bodies.BodyReader(graph_def.message, graph, make_body, fill)
    reading = _Reading(bodies, lookup, loop, allow_internal)
    return _add_nodes(graph, graph_def, reading, as_input, input_map, return_elements, name)


class _Reading(NamedTuple):
    """With what nodes are read: see `import_graph`."""

    bodies: BodyReader | None
    lookup: Callable[[str], OpDefinition]
    loop: Callable[[], LoopOps]
    allow_internal: bool


def _add_nodes(
    graph: Graph,
    graph_def: GraphDef,
    reading: _Reading,
    as_input: Callable[[Tensor], GraphTensor],
    input_map: Mapping[str, Tensor | Operation],
    return_elements: Sequence[str],
    name: str,
) -> list[GraphTensor | Operation]:
    bodies, calls = reading.bodies, dict[str, list[str]]()
    if bodies is not None:
        bodies.count(room.library.size_written_out(graph_def.message.node, bodies.library))
        graph_def, return_elements, calls = room.library.inline_library(
            graph_def, bodies.library, return_elements, bodies.most
        )
    nodes = _read_nodes(graph_def, reading)
    mapped = {parse_input(key): value for key, value in input_map.items()}
    order = _in_order(nodes, mapped)
    _check_specs(order, mapped)
    with graph.name_scope(name or graph.scopes.name) as prefix:
        for node in nodes.values():
            if prefix + node.name in graph:
                raise AlreadyExistsError(
                    f"the graph has an operation {prefix + node.name!r} already",
                    remedy="import under another name",
                )
        made: dict[str, Operation] = {}

        def element(source: str, index: int | None) -> Any:
            given = mapped.get((source, index))
            if given is not None:
                return as_input(given) if isinstance(given, Tensor) else given
            op = made.get(source)
            if op is None:
                raise NotFoundError(f"the GraphDef has no node {source!r}")
            if index is not None and index >= len(op.outputs):
                raise NotFoundError(f"node {source!r} has no output {index}")
            return op if index is None else op.outputs[index]

        for node in order:
            controls: list[Any] = [graph.as_graph_element(element(c, None)) for c in node.controls]
            with (
                graph.scopes.controls(controls),
                graph.device(node.device),
                graph.name_scope(None),
            ):
                op = graph.add(
                    node.definition,
                    [element(*source) for source in node.inputs],
                    node.attrs,
                    name=f"{prefix}{node.name}/",
                )
            op.colocation += tuple(
                prefix + n for n in node.colocation if n in nodes or (not prefix and n in graph)
            )
            if node.shapes is not None:
                for y, spec in zip(
                    op.outputs, node.specs([x.spec for x in op.inputs]), strict=True
                ):
                    y._spec = spec
            made[node.name] = op
        for node in order:
            for source in node.late:
                graph.add_input(made[node.name], element(*source))
        for call, names in calls.items():
            results = [element(*_element_of(text)) for text in names]
            graph.results_of_calls[prefix + call] = results
        return [element(*_element_of(text)) for text in return_elements]


def _element_of(text: str) -> tuple[str, int | None]:
    """What a return element names: a tensor with ":", else an operation."""
    return parse_input(text) if ":" in text else (text.removeprefix("^"), None)


def _check_version(graph_def: GraphDef) -> None:
    versions = graph_def.message.versions
    if versions.min_consumer > VERSION:
        raise UnimplementedError(
            f"the GraphDef was written by version {versions.producer} of the format and needs "
            f"version {versions.min_consumer} to be read; this is version {VERSION}",
            remedy="update laminar",
        )


def _is_op(name: str, lookup: Callable[[str], OpDefinition]) -> bool:
    try:
        lookup(name)
    except NotFoundError:
        return False
    return True


def _read_nodes(graph_def: GraphDef, reading: _Reading) -> dict[str, _Node]:
    nodes: dict[str, _Node] = {}
    body = no_function if reading.bodies is None else reading.bodies.body
    for message in graph_def.message.node:
        if message.name in nodes:
            raise InvalidArgumentError(f"the GraphDef has two nodes {message.name!r}")
        check_name(message.name)
        if message.name.endswith("/"):
            raise InvalidArgumentError(f"{message.name!r} names a scope, not a node")
        if message.op.startswith("_") and not reading.allow_internal:
            raise InvalidArgumentError(
                f"node {message.name!r}: {message.op!r} is an internal op, which only laminar adds"
            )
        try:
            definition = reading.lookup(message.op)
            attrs = {key: read_value(message.attr[key], body) for key in sorted(message.attr)}
            definition = definition.labelled(str(attrs.pop(_LABEL, "")))
            shapes = attrs.pop(_SHAPES, None)
            exact = reading.allow_internal
            nodes[message.name] = _Node(message, definition, attrs, shapes, exact)
        except LaminarError as cause:
            raise _at(message, cause) from cause
    place = {name: i for i, name in enumerate(nodes)}
    if any(place.get(n, -1) >= i for i, x in enumerate(nodes.values()) for n, _ in x.inputs):
        loop = reading.loop()
        for node in nodes.values():
            try:
                node.split_loop(nodes, loop)
            except LaminarError as cause:
                raise _at(node.message, cause) from cause
    return nodes


def _at(message: Message, cause: LaminarError) -> LaminarError:
    """The error with the node that it is about."""
    text = f"node {message.name!r} ({message.op}): {cause.message}"
    return type(cause)(text, remedy=cause.remedy)


def _in_order(nodes: Mapping[str, _Node], mapped: Mapping[Any, Any]) -> list[_Node]:
    """The nodes with inputs before consumers, otherwise as they stand.

    Raises:
        InvalidArgumentError: an input is missing, nodes form a cycle, or a mapped input is not
            used.
    """
    unused = set(mapped)
    place = {name: i for i, name in enumerate(nodes)}
    sources: list[set[int]] = []
    for node in nodes.values():
        taken = {*node.inputs, *((c, None) for c in node.controls)}
        unused -= {*taken, *node.late}
        names = {name for name, index in taken if (name, index) not in mapped}
        for name in names:
            if name not in nodes:
                raise InvalidArgumentError(
                    f"node {node.name!r} takes {name!r}, which the GraphDef does not have",
                    remedy="write the whole graph, or give the tensor in input_map",
                )
        sources.append({place[name] for name in names})
    if unused:
        names_of = ", ".join(n if i is not None else f"^{n}" for n, i in sorted(unused, key=str))
        raise InvalidArgumentError(f"input_map: no node takes {names_of}")
    if all(j < i for i, found in enumerate(sources) for j in found):  # as files are written
        return list(nodes.values())
    order = _topological(sources)
    if len(order) < len(nodes):
        ordered = set(order)
        stuck = [name for name, i in place.items() if i not in ordered]
        raise InvalidArgumentError(f"the GraphDef has a cycle through {', '.join(stuck[:5])}")
    by_place = list(nodes.values())
    return [by_place[i] for i in order]


def _check_specs(order: Sequence[_Node], mapped: Mapping[Any, Any]) -> None:
    """Infer all shapes and dtypes before anything is added."""
    specs: dict[str, tuple[TensorSpec, ...]] = {}
    for node in order:
        inputs = []
        for source, index in node.inputs:
            given = mapped.get((source, index))
            if given is not None:
                inputs.append(given.spec)
            elif index < len(specs[source]):
                inputs.append(specs[source][index])
            else:
                raise InvalidArgumentError(
                    f"node {node.name!r} takes output {index} of {source!r}, "
                    f"which has {len(specs[source])}"
                )
        try:
            specs[node.name] = node.specs(inputs)
        except LaminarError as cause:
            raise _at(node.message, cause) from cause
        except Exception as cause:  # a rule that meets attributes of kinds it does not expect
            message = f"node {node.name!r} ({node.message.op}): {cause}"
            raise InvalidArgumentError(message) from cause
    for node in order:
        for source, index in node.late:
            (came,) = specs[source]
            merged = specs[node.name][0]
            if index or came.dtype != merged.dtype or not merged.is_compatible_with(came):
                raise InvalidArgumentError(
                    f"node {node.name!r} merges {merged}, and the next iteration gives {came}"
                )
