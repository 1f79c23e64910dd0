"""Networks as data: functional models are saved as the list of their layers and calls."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.layers.operation import Operation
from laminar.layers.symbolic import KerasTensor, any_symbolic
from laminar.registration import custom_object_scope
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import map_structure

from .network import Network


def network_config(network: Network) -> dict[str, Any]:
    """The layers and calls of a network as data."""

    number = {  # of each call, among those of its layer
        id(node): i
        for operation in network.operations
        for i, node in enumerate(network.calls_of(operation))
    }

    def place(tensor: KerasTensor) -> list[Any]:
        operation, index, tensor_index = tensor.history
        return [operation.name, number[id(operation.inbound_nodes[index])], tensor_index]

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
    """Make the calls again, each as soon as its inputs are there and its turn has come.

    A call is looked at when its turn comes, and once more when the last call that it waits for has
    been made, so the time is linear in the size of the config, in whatever order it lists layers.
    """
    turns: dict[int, deque[dict[str, Any]]] = {}  # by operation: its calls that are to be made
    first: dict[int, Operation] = {}
    for operation, node in waiting:
        turns.setdefault(id(operation), deque()).append(node)
        first[id(operation)] = operation
    missing: dict[int, int] = {}  # by operation: how many calls its next one waits for
    waiters: dict[tuple[int, int], list[Operation]] = {}  # by operation and number of the call
    ready = deque(first.values())
    while ready:
        operation = ready.popleft()
        calls, is_there = turns[id(operation)], missing.pop(id(operation), None) == 0
        while calls:
            needed = set() if is_there else _calls_needed(calls[0], made)
            if needed:
                missing[id(operation)] = len(needed)
                for call in needed:
                    waiters.setdefault(call, []).append(operation)
                break
            args, kwargs = _arguments(calls.popleft(), made)
            if not any_symbolic(tuple(args), kwargs):  # it would be computed now, whatever its size
                raise DataLossError(f"a call of {operation.name!r} in the config takes no tensor")
            before, is_there = len(operation.inbound_nodes), False
            operation(*args, **kwargs)
            for number in range(before, len(operation.inbound_nodes)):
                for waiter in waiters.pop((id(operation), number), ()):
                    missing[id(waiter)] -= 1
                    if not missing[id(waiter)]:
                        ready.append(waiter)
    if missing:
        names = ", ".join(sorted(first[key].name for key in missing))
        raise DataLossError(
            f"the calls of {names} in the config need tensors that nothing makes",
            remedy="the file is damaged, or was edited by hand",
        )


def _calls_needed(value: Any, made: dict[str, Operation]) -> set[tuple[int, int]]:
    """The calls that have not been made yet of whose tensors a call is one: operation, number."""
    if isinstance(value, dict) and value.get("class_name") == "__keras_tensor__":
        operation, number, _ = _call_at(_history(value), made)
        is_made = number < len(operation.inbound_nodes)
        return set() if is_made else {(id(operation), number)}
    if isinstance(value, dict) and "class_name" not in value:
        value = value.values()
    elif not isinstance(value, list | tuple):
        return set()
    needed: set[tuple[int, int]] = set()
    for part in value:
        needed |= _calls_needed(part, made)
    return needed


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
        return _tensor_at(_history(value), made)
    if isinstance(value, list | tuple):  # a config that was never written has tuples
        return [_argument(v, made) for v in value]
    if isinstance(value, dict) and "class_name" not in value:
        return {k: _argument(v, made) for k, v in value.items()}
    return deserialize_keras_object(value)


def _history(tensor: dict[str, Any]) -> Any:
    config = tensor.get("config")
    return config.get("keras_history") if isinstance(config, dict) else None


def _call_at(place: Any, made: dict[str, Operation]) -> tuple[Operation, int, int]:
    """What a place of a config means: operation, number of its call, and of the call's tensor."""
    try:
        name, number, tensor_index = place
        if not isinstance(number, int) or number < 0:
            raise TypeError(f"a call has a number, got {number!r}")
        return made[name], number, tensor_index
    except (TypeError, ValueError, KeyError) as cause:
        raise DataLossError(f"the config refers to {place!r}, which it does not contain") from cause


def _tensor_at(place: Any, made: dict[str, Operation]) -> KerasTensor:
    operation, number, tensor_index = _call_at(place, made)
    try:
        tensor: KerasTensor = operation.inbound_nodes[number].outputs[tensor_index]
    except (TypeError, IndexError) as cause:
        raise DataLossError(f"the config refers to {place!r}, which it does not contain") from cause
    return tensor


def _places(structure: Any, made: dict[str, Operation]) -> Any:
    if (
        isinstance(structure, list | tuple)
        and len(structure) == 3
        and isinstance(structure[0], str)
    ):
        return _tensor_at(structure, made)
    if isinstance(structure, dict):
        return {k: _places(v, made) for k, v in structure.items()}
    if isinstance(structure, list | tuple):
        parts = [_places(v, made) for v in structure]
        return tuple(parts) if isinstance(structure, tuple) else parts
    raise DataLossError(f"the config refers to {structure!r}")
