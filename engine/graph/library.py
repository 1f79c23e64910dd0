"""The library of functions of a GraphDef: nodes that are calls, written out.

A node whose op is the name of a function stands for a copy of the function's nodes, named
`<node>/<inner node>`. What takes the node's output k takes the tensor that is the function's result
k; what waits for the node waits for all of the copy, and the copy waits for what the node waits
for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..errors import AlreadyExistsError, InvalidArgumentError, NotFoundError, ResourceExhaustedError
from .graphdef import GraphDef, is_number

# Functions that call functions multiply: a small file could ask for any number of nodes.
MOST_NODES = 1_000_000  # more than any graph has
_MOST_GROWTH = 200  # nodes written out, for each that the file has
_SMALL = 10_000  # so many are no danger, however few the file has
_MOST_INPUTS = 10  # for each node that there may be
MOST_NESTED = 100


def library_of(functions: Sequence[Any]) -> dict[str, Any]:
    """The functions by name; AlreadyExistsError when two have the same."""
    library: dict[str, Any] = {}
    for function in functions:
        if function.name in library:
            raise AlreadyExistsError(f"the GraphDef has two functions {function.name!r}")
        library[function.name] = function
    return library


def most_nodes(message: Any) -> int:
    """How many nodes a GraphDef may have with all its functions written out."""
    nodes = len(message.node) + sum(len(function.node) for function in message.function)
    return min(MOST_NODES, max(_SMALL, _MOST_GROWTH * nodes))


def size_written_out(nodes: Sequence[Any], library: Mapping[str, Any]) -> int:
    """How many nodes there are once calls are written out; none is.

    Raises:
        InvalidArgumentError: functions call themselves or each other in a circle.
    """
    known: dict[str, tuple[int, int]] = {}  # of a function: its size, and how deep calls nest
    open_: set[str] = set()

    def measured(nodes: Sequence[Any]) -> tuple[int, int]:
        size, depth = 0, 0
        for node in nodes:
            inner = (1, 0) if node.op not in library else of_call(node)
            size, depth = size + inner[0], max(depth, inner[1])
        return size, depth

    def of_call(node: Any) -> tuple[int, int]:
        found = known.get(node.op)
        if found is None and node.op not in open_ and len(open_) < MOST_NESTED:
            open_.add(node.op)
            function = library[node.op]
            given = {_name(text) for text in function.input}
            size, depth = measured([n for n in function.node if n.name not in given])
            found = known[node.op] = size, depth + 1
            open_.remove(node.op)
        if found is None or found[1] + len(open_) > MOST_NESTED:
            raise InvalidArgumentError(
                f"node {node.name!r}: the function {node.op!r} calls itself, "
                f"or calls nest deeper than {MOST_NESTED}"
            )
        return found

    return measured(nodes)[0]


def inline_library(
    graph_def: GraphDef, library: Mapping[str, Any], names: Sequence[str], most: int
) -> tuple[GraphDef, list[str], dict[str, list[str]]]:
    """The same graph without calls of functions.

    Args:
        graph_def: its nodes may be calls; `size_written_out` knows its size.
        library: the functions by name.
        names: of tensors and operations of it.
        most: `most_nodes` of the file.

    Returns:
        The graph, the names of those tensors in it, and those of the outputs of each call.

    Raises:
        InvalidArgumentError: a call has another number of inputs.
        NotFoundError: a function does not have a node that it names, or a result is not there.
        ResourceExhaustedError: written out it would have too many inputs.
    """
    message = graph_def.message
    found = GraphDef(type(message)())
    outputs: dict[str, list[str]] = {}  # of a call, the tensors that its outputs are
    members: dict[str, list[str]] = {}  # of a call, the nodes of its copy
    for node in message.node:
        found.message.node.extend(_written_out(node, library, outputs, members))
    count = 0
    for node in found.message.node:
        inputs = [new for text in node.input for new in _resolved(text, outputs, members)]
        count += len(inputs)
        if count > _MOST_INPUTS * most:
            raise ResourceExhaustedError(
                f"with its functions written out the GraphDef has over {_MOST_INPUTS * most} inputs"
            )
        node.input[:] = inputs

    def resolved(name: str) -> str:
        return tensor_name(next(_resolved(name, outputs, members)))

    elements = [resolved(name) if ":" in name else name for name in names]
    return found, elements, {call: [resolved(y) for y in ys] for call, ys in outputs.items()}


def _written_out(
    node: Any,
    library: Mapping[str, Any],
    outputs: dict[str, list[str]],
    members: dict[str, list[str]],
) -> Iterator[Any]:
    function = library.get(node.op)
    if function is None:
        copy = type(node)()
        copy.CopyFrom(node)
        yield copy
        return
    data = [text for text in node.input if not text.startswith("^")]
    controls = [text for text in node.input if text.startswith("^")]
    if len(data) != len(function.input):
        raise InvalidArgumentError(
            f"node {node.name!r}: the function {node.op!r} takes {len(function.input)} inputs, "
            f"got {len(data)}"
        )
    prefix = node.name + "/"
    inner = {n.name for n in function.node}
    given = {tensor_name(text): value for text, value in zip(function.input, data, strict=True)}
    arguments = {_name(text) for text in function.input}
    for text in (*function.input, *function.output):
        if _name(text) not in inner:
            raise NotFoundError(f"the function {node.op!r} has no node {_name(text)!r}")

    def renamed(text: str) -> list[str]:
        if text.startswith("^"):
            return [] if text[1:] in arguments else [f"^{prefix}{text[1:]}"]
        return [given.get(tensor_name(text), prefix + text)]

    outputs[node.name] = [renamed(text)[0] for text in function.output]
    own = members[node.name] = []
    for template in function.node:
        if template.name in arguments:
            continue
        copy = type(template)()
        copy.CopyFrom(template)
        copy.name = prefix + template.name
        own.append(copy.name)
        copy.input[:] = [new for text in template.input for new in renamed(text)] + controls
        copy.device = template.device or node.device
        copy.colocation[:] = [
            f"loc:@{prefix}{c.removeprefix('loc:@')}" for c in template.colocation
        ]
        yield from _written_out(copy, library, outputs, members)


def _name(text: str) -> str:
    return text.rpartition(":")[0] if ":" in text else text


def tensor_name(text: str) -> str:
    """How a tensor is called in full: "a" is "a:0"."""
    return text if ":" in text else f"{text}:0"


def _resolved(
    text: str, outputs: Mapping[str, list[str]], members: Mapping[str, list[str]]
) -> Iterator[str]:
    """What an input is when calls are written out."""
    if text.startswith("^"):
        if text[1:] not in members:
            yield text
        for name in members.get(text[1:], ()):
            yield from _resolved(f"^{name}", outputs, members)
        return
    seen = set()
    while _name(text) in outputs:
        if text in seen:
            raise InvalidArgumentError(f"{text!r} is, through calls of functions, its own value")
        seen.add(text)
        call, _, index = tensor_name(text).rpartition(":")
        if not is_number(index) or int(index) >= len(outputs[call]):
            raise NotFoundError(f"the call {call!r} has {len(outputs[call])} outputs, not {text!r}")
        text = outputs[call][int(index)]
    yield text
