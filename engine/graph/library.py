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
from .graphdef import GraphDef

# More than any graph has: functions that call functions can multiply without bound.
MOST_NODES = 1_000_000
_MOST_INPUTS = 10_000_000
MOST_NESTED = 100


def inline_library(
    graph_def: GraphDef, functions: Sequence[Any], names: Sequence[str] = ()
) -> tuple[GraphDef, list[str]]:
    """The same graph without calls of functions.

    Args:
        graph_def: its nodes may be calls.
        functions: the library.
        names: of tensors and operations of it.

    Returns:
        The graph, and the names of those tensors in it.

    Raises:
        InvalidArgumentError: functions call themselves or each other in a circle, or a call has
            another number of inputs.
        NotFoundError: a function does not have a node that it names, or a result is not there.
        AlreadyExistsError: two functions have one name.
        ResourceExhaustedError: written out it would be too large.
    """
    message = graph_def.message
    library: dict[str, Any] = {}
    for function in functions:
        if function.name in library:
            raise AlreadyExistsError(f"the GraphDef has two functions {function.name!r}")
        library[function.name] = function
    found = type(graph_def)()
    found.message.versions.CopyFrom(message.versions)
    outputs: dict[str, list[str]] = {}  # of a call, the tensors that its outputs are
    members: dict[str, list[str]] = {}  # of a call, the nodes of its copy
    for node in message.node:
        for made in _written_out(node, library, outputs, members, ()):
            if len(found.message.node) >= MOST_NODES:
                raise ResourceExhaustedError(
                    f"with its functions written out the GraphDef has over {MOST_NODES} nodes"
                )
            found.message.node.append(made)
    count = 0
    for node in found.message.node:
        inputs = [new for text in node.input for new in _resolved(text, outputs, members)]
        count += len(inputs)
        if count > _MOST_INPUTS:
            raise ResourceExhaustedError(
                f"with its functions written out the GraphDef has over {_MOST_INPUTS} inputs"
            )
        node.input[:] = inputs
    return found, [
        tensor_name(next(_resolved(name, outputs, members))) if ":" in name else name
        for name in names
    ]


def _written_out(
    node: Any,
    library: Mapping[str, Any],
    outputs: dict[str, list[str]],
    members: dict[str, list[str]],
    callers: tuple[str, ...],
) -> Iterator[Any]:
    function = library.get(node.op)
    if function is None:
        yield node
        return
    if node.op in callers or len(callers) > MOST_NESTED:
        raise InvalidArgumentError(f"node {node.name!r}: the function {node.op!r} calls itself")
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
        yield from _written_out(copy, library, outputs, members, (*callers, node.op))


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
        if not index.isdecimal() or int(index) >= len(outputs[call]):
            raise NotFoundError(f"the call {call!r} has {len(outputs[call])} outputs, not {text!r}")
        text = outputs[call][int(index)]
    yield text
