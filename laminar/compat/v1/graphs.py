"""Graphs as data: their parts, with variables as constants, as files."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, NotFoundError
from laminar.engine.graph.graphdef import parse_input, write_tensor
from laminar.engine.io.atomic import atomic_write
from laminar.engine.io.places import make_folder

from .adapting import v1
from .variable_class import named


def extract_sub_graph(graph_def: engine.GraphDef, dest_nodes: Sequence[str]) -> engine.GraphDef:
    """The nodes that some nodes need, in the order of the graph.

    Raises:
        InvalidArgumentError: `dest_nodes` is one name rather than a list.
        NotFoundError: the graph has no such node.
    """
    if isinstance(dest_nodes, str):
        raise InvalidArgumentError(
            f"dest_nodes must be a list of names, got {dest_nodes!r}", remedy=f"[{dest_nodes!r}]"
        )
    nodes = {node.name: node for node in graph_def.node}
    needed, waiting = set[str](), list(dest_nodes)
    while waiting:
        name = waiting.pop()
        if name not in nodes:
            raise NotFoundError(f"the graph has no node {name!r}")
        if name not in needed:
            needed.add(name)
            waiting += [parse_input(text)[0] for text in nodes[name].input]
    found = engine.GraphDef()
    found.CopyFrom(graph_def)
    del found.node[:]
    found.node.extend(node for node in graph_def.node if node.name in needed)
    return found


def convert_variables_to_constants(
    sess: engine.Session,
    input_graph_def: engine.GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> engine.GraphDef:
    """What some nodes need, where the values that variables have in a session are constants.

    Args:
        sess: has the values.
        input_graph_def: its graph.
        output_node_names: the nodes.
        variable_names_whitelist: the variables that become constants; by default all.
        variable_names_blacklist: those that do not.

    Raises:
        FailedPreconditionError: a variable has no value.
        NotFoundError: the graph has no such node.
    """
    found = extract_sub_graph(input_graph_def, output_node_names)
    handles = {node.name for node in found.node if node.op == "VarHandle"}
    if variable_names_whitelist is not None:
        handles &= set(variable_names_whitelist)
    handles -= set(variable_names_blacklist or ())
    reads = [
        node
        for node in found.node
        if node.op == "ReadVariable" and parse_input(node.input[0])[0] in handles
    ]
    values = sess.run([f"{node.name}:0" for node in reads])
    for node, value in zip(reads, values, strict=True):
        controls = [text for text in node.input if text.startswith("^")]
        del node.input[:]
        node.input.extend(controls)
        del node.colocation[:]
        node.op = "Const"
        del node.attr["shape"]  # it has its dtype as a constant, too
        write_tensor(node.attr["value"].tensor, value)
    return extract_sub_graph(found, output_node_names)


@v1()
def import_meta_graph(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    import_scope: str | None = None,
    **hints: Any,
) -> Any:
    """Add the graph of a MetaGraph to the default one; see `laminar.engine.import_meta_graph`."""
    graph = engine.get_default_graph()
    before = {id(v) for v in _collected(graph)}
    saver = engine.import_meta_graph(meta_graph_or_file, clear_devices, import_scope)
    for item in _collected(graph):
        if id(item) not in before:
            named(item)
    return saver


def _collected(graph: engine.Graph) -> Iterator[Any]:
    for key in graph.collection_keys:
        yield from graph.get_collection(key)


def write_graph(
    graph_or_graph_def: Any, logdir: str | os.PathLike[str], name: str, as_text: bool = True
) -> str:
    """Write a graph into a folder, as text or in the binary form; gives the file's path."""
    graph_def = graph_or_graph_def
    if isinstance(graph_def, engine.Graph):
        graph_def = graph_def.as_graph_def()
    path = str(make_folder(logdir, "write_graph") / name)
    with atomic_write(path) as file:
        file.write(graph_def.to_text().encode() if as_text else graph_def.to_bytes())
    return path
