"""Networks as data: functional models are saved as the list of their layers and calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.layers.operation import Operation
from laminar.layers.symbolic import KerasTensor, Node, any_symbolic
from laminar.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
)
from laminar.tree import map_structure

from .network import Network


def network_config(network: Network) -> dict[str, Any]:
    """The layers and calls of a network as data."""

    def place(tensor: KerasTensor) -> list[Any]:
        operation, index, tensor_index = tensor.history
        calls = [id(node) for node in network.calls_of(operation)]
        return [operation.name, calls.index(id(operation.inbound_nodes[index])), tensor_index]

    def argument(leaf: Any) -> Any:
        if not isinstance(leaf, KerasTensor):
            return serialize_keras_object(leaf)
        data = leaf.serialize()
        data["config"]["keras_history"] = place(leaf)
        return data

    layers = []
    for operation in network.operations:
        nodes = []
        for node in network.calls_of(operation):
            if node.inputs:
                nodes.append(
                    {
                        "args": [_structure(a, argument) for a in node.args],
                        "kwargs": {k: _structure(v, argument) for k, v in node.kwargs.items()},
                    }
                )
        entry = serialize_keras_object(operation)
        entry["name"] = operation.name
        entry["inbound_nodes"] = nodes
        layers.append(entry)
    return {
        "layers": layers,
        "input_layers": map_structure(place, network.inputs_structure),
        "output_layers": map_structure(place, network.outputs_structure),
    }


def _structure(value: Any, leaf: Any) -> Any:
    """Lists and dicts kept, tuples as lists, each leaf described."""
    if isinstance(value, list | tuple):
        return [_structure(v, leaf) for v in value]
    if isinstance(value, dict):
        return {k: _structure(v, leaf) for k, v in value.items()}
    return leaf(value)


def network_from_config(
    config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
) -> tuple[Any, Any]:
    """The symbolic inputs and outputs of a network, from what `network_config` gave.

    Raises:
        DataLossError: the config refers to a layer or call that it does not contain.
    """
    made: dict[str, Operation] = {}
    waiting: list[tuple[Operation, dict[str, Any]]] = []
    entries = config["layers"]
    with custom_object_scope(custom_objects or {}):
        for entry in entries:
            if not isinstance(entry, dict) or "name" not in entry:
                raise DataLossError("a layer of the model has no name in the config")
            operation = deserialize_keras_object(entry)
            if not isinstance(operation, Operation):
                raise DataLossError(f"{entry['name']!r} of the config is not a layer")
            made[entry["name"]] = operation
            for node in entry.get("inbound_nodes") or ():
                waiting.append((operation, node))
    _replay(waiting, made)
    return _places(config["input_layers"], made), _places(config["output_layers"], made)


def _replay(waiting: list[tuple[Operation, dict[str, Any]]], made: dict[str, Operation]) -> None:
    """Make the calls again, each as soon as its inputs are there and its turn has come."""
    while waiting:
        later: list[tuple[Operation, dict[str, Any]]] = []
        blocked: set[int] = set()
        for operation, node in waiting:
            if id(operation) in blocked:
                later.append((operation, node))
                continue
            try:
                args, kwargs = _arguments(node, made)
            except _NotYet:
                blocked.add(id(operation))
                later.append((operation, node))
                continue
            if not any_symbolic(tuple(args), kwargs):  # it would be computed now, whatever its size
                raise DataLossError(f"a call of {operation.name!r} in the config takes no tensor")
            operation(*args, **kwargs)
        if len(later) == len(waiting):
            names = ", ".join(sorted({op.name for op, _ in later}))
            raise DataLossError(
                f"the calls of {names} in the config need tensors that nothing makes",
                remedy="the file is damaged, or was edited by hand",
            )
        waiting = later


class _NotYet(Exception):  # noqa: N818  # not an error: the tensor will come
    """A tensor that a later call makes."""


def _arguments(node: Any, made: dict[str, Operation]) -> tuple[list[Any], dict[str, Any]]:
    if not isinstance(node, dict) or "args" not in node or "kwargs" not in node:
        raise InvalidArgumentError(
            "the config lists calls in the form of Keras 2",
            remedy="open and save the model with Keras 3 once",
        )
    args = [_argument(a, made) for a in node["args"]]
    return args, {k: _argument(v, made) for k, v in node["kwargs"].items()}


def _argument(value: Any, made: dict[str, Operation]) -> Any:
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        return _tensor_at(value["config"]["keras_history"], made)
    if isinstance(value, list | tuple):  # a config that was never written has tuples
        return [_argument(v, made) for v in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {k: _argument(v, made) for k, v in value.items()}
    return deserialize_keras_object(value)


def _tensor_at(place: Any, made: dict[str, Operation]) -> KerasTensor:
    try:
        name, node_index, tensor_index = place
        nodes: list[Node] = made[name].inbound_nodes
        if node_index >= len(nodes):
            raise _NotYet
        tensor: KerasTensor = nodes[node_index].outputs[tensor_index]
    except (TypeError, ValueError, KeyError, IndexError) as cause:
        raise DataLossError(f"the config refers to {place!r}, which it does not contain") from cause
    return tensor


def _places(structure: Any, made: dict[str, Operation]) -> Any:
    if (
        isinstance(structure, list | tuple)
        and len(structure) == 3
        and isinstance(structure[0], str)
    ):
        try:
            return _tensor_at(structure, made)
        except _NotYet as cause:
            raise DataLossError(f"the config refers to the call {structure!r}") from cause
    if isinstance(structure, dict):
        return {k: _places(v, made) for k, v in structure.items()}
    if isinstance(structure, list | tuple):
        parts = [_places(v, made) for v in structure]
        return tuple(parts) if isinstance(structure, tuple) else parts
    raise DataLossError(f"the config refers to {structure!r}")
