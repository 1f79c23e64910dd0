"""Graphs read from data, where the op table meets GraphDef; and what of a graph is needed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ... import ops
from ...errors import AlreadyExistsError, ArgumentTypeError, DTypeError, InvalidArgumentError
from ...graph import Graph, GraphTensor, Operation, Tensor, as_dtype, get_default_graph
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


def create_op(
    graph: Graph,
    op_type: str,
    inputs: Sequence[Any],
    dtypes: Sequence[Any] | None = None,
    input_types: Sequence[Any] | None = None,
    name: str | None = None,
    attrs: Mapping[str, Any] | None = None,
) -> Operation:
    """Add an operation to a graph by the name of its op.

    Args:
        graph: the graph.
        op_type: as `lookup` knows it.
        inputs: tensors of the graph, or values.
        dtypes: of the outputs, if they are to be checked.
        input_types: of the inputs, by default those that they have.
        name: of the operation; by default the op's.
        attrs: its attributes.

    Raises:
        NotFoundError: there is no such op.
        DTypeError: an input or an output has another type than is said.
        InvalidArgumentError: the op refuses the inputs or attributes.

    Examples:
        >>> with engine.Graph().as_default() as graph, engine.Session() as session:
        ...     product = graph.create_op("MatMul", [np.ones((2, 3)), np.ones((3, 1))])
        ...     session.run(product.outputs[0])
        array([[3.],
               [3.]])
    """
    definition = lookup(op_type)
    wanted = input_types if input_types is not None else [None] * len(inputs)
    with graph.as_default():
        tensors = [
            as_input(graph, convert_to_tensor(x, dtype if not isinstance(x, Tensor) else None))
            for x, dtype in zip(inputs, wanted, strict=True)
        ]
        found, _ = definition.infer([x.spec for x in tensors], attrs or {})
        for what, said, specs in (("input", input_types, tensors), ("output", dtypes, found)):
            if said is not None and [as_dtype(d) for d in said] != [s.dtype for s in specs]:
                raise DTypeError(
                    f"create_op: {op_type} has the {what} types "
                    f"{', '.join(str(s.dtype) for s in specs) or 'of none'}, expected "
                    f"{', '.join(str(as_dtype(d)) for d in said) or 'none'}"
                )
        return graph.add(definition, tensors, attrs, name=name)


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
