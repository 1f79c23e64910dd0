"""New models like old ones."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.layers.symbolic import is_keras_tensor
from laminar.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
)
from laminar.tree import flatten

from .model import Model


def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Any], Any] | None = None,
) -> Model:
    """A model of the same architecture, with new weights.

    Args:
        model: functional, sequential, or of a class that has a config.
        input_tensors: symbolic inputs for the new model, by default like those of `model`.
        clone_function: makes the new layer from each layer; by default one of equal config.

    Raises:
        InvalidArgumentError: `model` is no model, or `input_tensors` are not symbolic.
    """
    if not isinstance(model, Model):
        raise InvalidArgumentError(f"clone_model: expected a model, got {model!r}")
    config = serialize_keras_object(model)
    config.pop("compile_config", None)
    kinds = {type(layer).__name__: type(layer) for layer in model.flatten_layers()}
    with custom_object_scope(kinds):
        clone = deserialize_keras_object(config)
    if clone_function is not None and model.network is not None:
        clone = _rebuilt(model, clone_function)
    if input_tensors is not None:
        if not all(is_keras_tensor(x) for x in flatten(input_tensors)):
            raise InvalidArgumentError(
                "clone_model: input_tensors must be symbolic", remedy="make them with Input(...)"
            )
        clone = Model(input_tensors, clone(input_tensors), name=model.name)
    return clone  # type: ignore[no-any-return]  # a model of the same class


def _rebuilt(model: Model, make: Callable[[Any], Any]) -> Model:
    """The network of `model` run again on symbols, with each layer replaced."""
    network = model.network
    assert network is not None
    made = {id(op): op if not hasattr(op, "weights") else make(op) for op in network.operations}
    values = {id(x): made[id(x.history.operation)].output for x in network.inputs}
    for node in network.nodes:
        if any(id(t) in values for t in node.outputs):
            continue
        args, kwargs = node.fill(values)
        result = flatten(made[id(node.operation)](*args, **kwargs))
        values |= {id(t): r for t, r in zip(node.outputs, result, strict=True)}
    inputs = [values[id(x)] for x in network.inputs]
    outputs = [values[id(y)] for y in network.outputs]
    return Model(
        inputs[0] if len(inputs) == 1 else inputs,
        outputs[0] if len(outputs) == 1 else outputs,
        name=model.name,
    )


def model_from_json(text: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model of the architecture that `model.to_json()` gave, with new weights.

    Raises:
        DataLossError: the text is not JSON.
    """
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as cause:
        raise DataLossError(f"model_from_json: not JSON: {cause}") from cause
    return deserialize_keras_object(config, custom_objects)
