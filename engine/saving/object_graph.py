"""What objects a checkpoint has, and which holds which: found by walking attributes, as data.

    TrackableObjectGraph {repeated TrackableObject nodes = 1}
    TrackableObject {repeated ObjectReference children = 1,
                     repeated SerializedTensor attributes = 2}
    ObjectReference {int32 node_id = 1, string local_name = 2}
    SerializedTensor {string name = 1, string full_name = 2, string checkpoint_key = 3}

Node 0 is the root. A value's key is the shortest path of names to it: "net/layers/0/kernel" and the
name of the value behind ".ATTRIBUTES".

Source: tensorflow/core/protobuf/trackable_object_graph.proto.
"""

from __future__ import annotations

import json
import sys
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .. import wire
from ..errors import DataLossError, InvalidArgumentError
from ..graph import Tensor
from ..ops.state.variable import VariableStore
from ..state import PartitionedVariable, Variable
from ..wire import BYTES, VARINT, Kind, Message

KEY = "_CHECKPOINTABLE_OBJECT_GRAPH"
VALUE, STATE = "VARIABLE_VALUE", "OBJECT_CONFIG_JSON"
_ATTRIBUTES = ".ATTRIBUTES"
_KIND = Kind("the object graph of a checkpoint", "take another checkpoint")
# What is never looked into: it holds no variables of the user's.
_NOT_FOLLOWED = sys.stdlib_module_names | {"numpy", "h5py", "jax"}


@dataclass
class Node:
    """An object of a checkpoint.

    Attributes:
        children: the numbers of other nodes by their local names.
        values: the keys of its values by their names.
        paths: what the user knows its values as, for people.
    """

    children: dict[str, int] = field(default_factory=dict)
    values: dict[str, str] = field(default_factory=dict)
    paths: dict[str, str] = field(default_factory=dict)


def is_stateful(value: Any) -> bool:
    """Whether an object says what it is to be restored from: by `state()` and `restore(state)`."""
    kind = type(value)
    return callable(getattr(kind, "state", None)) and callable(getattr(kind, "restore", None))


def children_of(value: Any) -> Iterator[tuple[str, Any]]:
    """The named parts of an object that may have values: attributes, items of lists and dicts."""
    named: Any = getattr(type(value), "_laminar_checkpoint_children", None)
    if isinstance(value, Variable) or (named is None and is_stateful(value)):
        return
    if named is not None:
        items: Any = named(value).items()
    elif isinstance(value, Mapping):
        items = ((str(key), item) for key, item in value.items())
    elif isinstance(value, list | tuple | PartitionedVariable):
        items = ((str(i), item) for i, item in enumerate(value))
    else:
        items = list(vars(value).items())
    for name, item in items:
        if isinstance(item, VariableStore):  # of a function, which has no more
            item = None if item.owner is None else item.owner()
        if _is_followed(item):
            yield name, item


def _is_followed(value: Any) -> bool:
    if isinstance(value, Variable | list | tuple | Mapping | PartitionedVariable):
        return True
    kind = type(value)
    if hasattr(kind, "_laminar_checkpoint_children") or is_stateful(value):
        return True
    if isinstance(value, type | Tensor) or not hasattr(value, "__dict__"):
        return False
    module = kind.__module__
    return module.split(".")[0] not in _NOT_FOLLOWED and not module.startswith("laminar.engine.")


def walk(root: Any) -> tuple[list[Any], list[dict[str, int]]]:
    """The objects that can be reached, the nearest first, and the numbers of each one's parts."""
    objects = [root]
    numbers = {id(root): 0}
    children: list[dict[str, int]] = []
    waiting = deque([root])
    while waiting:
        found: dict[str, int] = {}
        for name, item in children_of(waiting.popleft()):
            number = numbers.get(id(item))
            if number is None:
                number = numbers[id(item)] = len(objects)
                objects.append(item)
                waiting.append(item)
            found[name] = number
        children.append(found)
    return objects, children


def collect(root: Any) -> tuple[list[Node], dict[str, Any]]:
    """The nodes of what `root` holds, and what has a value, by key: variables, stateful objects.

    Objects that lead to no value are left out.
    """
    objects, children = walk(root)
    is_valued = [isinstance(o, Variable) or is_stateful(o) for o in objects]
    needed = leading_to(is_valued, children)
    needed[0] = True
    place = {old: new for new, old in enumerate(i for i, kept in enumerate(needed) if kept)}
    nodes = [Node() for _ in place]
    values: dict[str, Any] = {}
    paths = {0: ""}
    for old, value in enumerate(objects):
        if not needed[old]:
            continue
        node = nodes[place[old]]
        for name, child in children[old].items():
            if needed[child]:
                node.children[name] = place[child]
                step = f"{_escaped(name)}/"
                paths.setdefault(child, paths[old] + step)
        if is_valued[old]:
            what = VALUE if isinstance(value, Variable) else STATE
            key = f"{paths[old]}{_ATTRIBUTES}/{what}"
            node.values[what] = key
            node.paths[what] = value.path if isinstance(value, Variable) else ""
            values[key] = value
    return nodes, values


def leading_to(is_valued: list[bool], children: list[dict[str, int]]) -> list[bool]:
    """Which of the objects that `walk` has found have a value, or lead to one."""
    parents: list[list[int]] = [[] for _ in children]
    for number, found in enumerate(children):
        for child in found.values():
            parents[child].append(number)
    needed = list(is_valued)
    waiting = [i for i, valued in enumerate(is_valued) if valued]
    while waiting:
        for parent in parents[waiting.pop()]:
            if not needed[parent]:
                needed[parent] = True
                waiting.append(parent)
    return needed


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def state_text(value: Any) -> Any:
    """What a stateful object is restored from, as a tensor.

    Raises:
        InvalidArgumentError: it is not of the values that JSON has.
    """
    try:
        text = json.dumps(value.state(), allow_nan=False)
    except (TypeError, ValueError) as cause:
        raise InvalidArgumentError(
            f"the state() of {value!r:.80} is not of numbers, texts, lists and dicts: {cause}"
        ) from cause
    return np.array(text.encode(), object)


def parse_json(data: bytes) -> Any:
    """What JSON means, as `state_text` writes it; DataLossError if it is damaged."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as cause:
        raise DataLossError(f"a text is not JSON: {cause}") from cause


# As bytes


def graph_bytes(nodes: list[Node]) -> bytes:
    """The graph as data."""
    return b"".join(wire.field(1, _node_bytes(node)) for node in nodes)


def _node_bytes(node: Node) -> bytes:
    children = (
        wire.field(1, wire.integer(1, number) + wire.text(2, name))
        for name, number in node.children.items()
    )
    values = (
        wire.field(2, wire.text(1, name) + wire.text(2, node.paths[name]) + wire.text(3, key))
        for name, key in node.values.items()
    )
    return b"".join([*children, *values])


def read_graph(data: bytes) -> list[Node]:
    """The nodes of a graph; DataLossError if the data are damaged."""
    message = Message(data, _KIND)
    nodes = []
    for number, kind in message.fields():
        if number == 1 and kind == BYTES:
            nodes.append(_read_node(message.span()))
        else:
            message.skip(kind)
    if not nodes or any(c >= len(nodes) for node in nodes for c in node.children.values()):
        raise message.damage("a reference to a node that is not there")
    return nodes


def _read_node(message: Message) -> Node:
    node = Node()
    for number, kind in message.fields():
        if number == 1 and kind == BYTES:
            found = _read_fields(message.span())
            node.children[str(found.get(2, ""))] = int(found.get(1, 0))
        elif number == 2 and kind == BYTES:
            found = _read_fields(message.span())
            name = str(found.get(1, ""))
            node.values[name] = str(found.get(3, ""))
            node.paths[name] = str(found.get(2, ""))
        else:
            message.skip(kind)
    return node


def _read_fields(message: Message) -> dict[int, Any]:
    found: dict[int, Any] = {}
    for number, kind in message.fields():
        if kind == BYTES and number in (1, 2, 3):
            found[number] = message.text()
        elif kind == VARINT and number == 1:
            found[number] = message.varint()
        else:
            message.skip(kind)
    return found
