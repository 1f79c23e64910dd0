"""Graphs read from data, where the op table meets GraphDef; and what of a graph is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import ops
from ...errors import AlreadyExistsError, ArgumentTypeError, InvalidArgumentError
from ...graph import Graph, GraphTensor, Operation, get_default_graph
from ...graph.exchange import LoopOps, import_graph
from ...graph.graphdef import GraphDef, parse_input
from ...late import later
from .basic import placeholder_op
from .convert import convert_to_tensor
from .dispatch import as_input
from .registry import lookup

if TYPE_CHECKING:
    from ...graph.bodies import MakeBody

# Makes the graphs of conditions and loops that are read.
_make_body: MakeBody = later("laminar.engine.functions.subgraph", "make_body")


def import_graph_def(
    graph_def: GraphDef,
    input_map: Mapping[str, Any] | None = None,
    return_elements: Sequence[str] = (),
    name: str = "import",
    *,
    allow_internal: bool = False,
) -> list[GraphTensor | Operation]:
    """Add the nodes of a GraphDef to the default graph.

    Nothing is added unless all of it can be. Attributes that are missing get the ops' defaults.

    Args:
        graph_def: what `Graph.as_graph_def()` gives, or has been read from bytes.
        input_map: tensors (or values) to be taken for inputs of the nodes ("x:0"), and operations
            of the default graph for control inputs ("^init").
        return_elements: names of tensors ("y:0") and operations ("y") of the GraphDef.
        name: scope of the new operations; "" for none.
        allow_internal: whether ops whose names start with "_" are taken.

    Returns:
        The elements asked for.

    Raises:
        NotFoundError: an op or an element does not exist.
        UnimplementedError: the GraphDef was written by a newer version.
        InvalidArgumentError: names are missing, given twice or not used, or nodes form a cycle, or
            an op refuses its inputs or attributes; or `graph_def` is no GraphDef.
        DataLossError: a value is damaged.

    Examples:
        >>> with engine.Graph().as_default() as graph:
        ...     y = engine.constant(3.0, name="y")
        >>> with engine.Graph().as_default(), engine.Session() as session:
        ...     (again,) = engine.import_graph_def(graph.as_graph_def(), return_elements=["y:0"])
        ...     session.run(again)
        np.float32(3.0)
    """
    if not isinstance(graph_def, GraphDef):
        raise ArgumentTypeError(
            f"import_graph_def: expected a GraphDef, got {type(graph_def).__name__}",
            remedy="read bytes with GraphDef.from_bytes(data)",
        )
    graph = get_default_graph()
    return import_graph(
        graph,
        graph_def,
        lookup,
        as_input=lambda x: as_input(graph, x),
        input_map={
            key: value if isinstance(value, Operation) else convert_to_tensor(value)
            for key, value in (input_map or {}).items()
        },
        return_elements=return_elements,
        name=name,
        allow_internal=allow_internal,
        make_body=_make_body,
        loop=lambda: LoopOps(ops.dataflow.MERGE, ops.dataflow.NEXT_ITERATION),
    )


def extend_graph(graph: Graph, graph_def: GraphDef) -> None:
    """Add new nodes, whose inputs may be nodes that the graph has already.

    Raises:
        InvalidArgumentError: the graph has a node of that name, or a node is not well formed.
    """
    own = {node.name for node in graph_def.message.node}
    known: dict[str, GraphTensor | Operation] = {}
    for node in graph_def.message.node:
        for text in node.input:
            name, index = parse_input(text)
            if name not in own and name in graph:
                op = graph.get_operation_by_name(name)
                if index is None:
                    known[text] = op
                elif index < len(op.outputs):
                    known[text] = op.outputs[index]
    try:
        with graph.as_default():
            import_graph_def(graph_def, known, name="")
    except AlreadyExistsError as error:
        raise InvalidArgumentError(
            f"extend: {error.message}", remedy="send new nodes only"
        ) from error


def needed_operations(
    fetches: Sequence[GraphTensor],
    targets: Sequence[Operation] = (),
    feeds: Collection[GraphTensor] = (),
    fed_too: Collection[int] = (),
) -> list[Operation]:
    """The operations to run for `fetches` and `targets` when `feeds` are given, in order.

    A fed tensor stops the search: its producer is kept only if something else needs it. So does a
    control edge from a placeholder that is fed: its value is there from the start. Tensors whose
    id() is in `fed_too` are given as well.

    Source: "TensorFlow: Large-Scale Machine Learning on Heterogeneous Distributed Systems", 2015,
        arXiv:1603.04467, section 4.2.
    """
    fed = {id(t) for t in feeds}.union(fed_too)
    needed: dict[int, Operation] = {}
    stack = [*targets, *(t.op for t in fetches if id(t) not in fed)]
    while stack:
        op = stack.pop()
        if op.id in needed:
            continue
        needed[op.id] = op
        if op.control_inputs:
            stack.extend([c for c in op.control_inputs if not _is_fed_placeholder(c, fed)])
        stack.extend([x.op for x in op.inputs if id(x) not in fed])
    return [needed[i] for i in sorted(needed)]


def _is_fed_placeholder(op: Operation, fed: Collection[int]) -> bool:
    return op.definition is placeholder_op and id(op.outputs[0]) in fed
