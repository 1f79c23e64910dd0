"""New models like old ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.layers.input import Input, InputLayer
from laminar.layers.layer import Layer
from laminar.layers.symbolic import is_keras_tensor
from laminar.naming import who
from laminar.registration import custom_object_scope, in_memory
from laminar.serialization import config_of
from laminar.tree import flatten, map_structure, pack_sequence_as

from .model import Functional, Model
from .network_inputs import form
from .sequential import Sequential


def clone_model(
    model: Model,
    input_tensors: Any = None,
    clone_function: Callable[[Any], Any] | None = None,
    call_function: Callable[..., Any] | None = None,
    recursive: bool = False,
) -> Model:
    """A model of the same architecture, with new weights.

    Args:
        model: functional, sequential, or of a class that has a config.
        input_tensors: symbolic inputs for the new model, by default like those of `model`.
        clone_function: makes the new layer from each layer but inputs; by default one of equal
            config.
        call_function: (layer, *args, **kwargs) -> what the call of a new layer gives.
        recursive: whether the layers of models inside `model` are made by `clone_function` too.

    Raises:
        InvalidArgumentError: `model` is no model, `input_tensors` are not symbolic, or the model
            is of a class of its own, which can be cloned as a whole only.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> clone = laminar.models.clone_model(model)  # with weights of its own
        >>> clone.output_shape
        (None, 2)
    """
    if not isinstance(model, Model):
        raise InvalidArgumentError(f"clone_model: expected a model, got {model!r}")
    if input_tensors is not None and not all(map(is_keras_tensor, flatten(input_tensors))):
        raise InvalidArgumentError(
            "clone_model: input_tensors must be symbolic", remedy="make them with Input(...)"
        )
    network = model._laminar_network
    if input_tensors is not None and network is not None:
        expected = network.inputs_structure
        if form(input_tensors) != form(expected):
            raise InvalidArgumentError(
                f"clone_model: input_tensors must nest as the inputs of the model do, "
                f"got {input_tensors!r} for {expected!r}"
            )

    def make(layer: Any) -> Any:
        if recursive and isinstance(layer, Model) and _has_parts(layer):
            return clone_model(layer, None, clone_function, call_function, recursive=True)
        return _same(layer) if clone_function is None else clone_function(layer)

    kinds = {type(layer).__name__: type(layer) for layer in model._laminar_flatten_layers()}
    with custom_object_scope(kinds):
        if isinstance(model, Sequential) and call_function is None:
            return _clone_stack(model, input_tensors, make)
        if model._laminar_network is not None:
            return _clone_network(model, input_tensors, make, call_function)
        if input_tensors is not None or clone_function is not None or call_function is not None:
            raise InvalidArgumentError(
                f"clone_model: {who(model)} has no symbolic calls: its layers cannot be replaced",
                remedy="clone it with no other arguments, or make it with Model(inputs, outputs)",
            )
        clone: Model = _same(model)
        return clone


def _same(layer: Any) -> Any:
    with in_memory():
        return type(layer).from_config(config_of(layer))


def _has_parts(model: Model) -> bool:
    return isinstance(model, Sequential) or model._laminar_network is not None


def _clone_stack(model: Sequential, inputs: Any, make: Callable[[Any], Any]) -> Model:
    layers = [
        _same(la) if isinstance(la, InputLayer) else make(la) for la in model._laminar_sublayers
    ]
    if inputs is None:
        return Sequential(layers, trainable=model.trainable, name=model.name)
    rest = [layer for layer in layers if not isinstance(layer, InputLayer)]
    stack = Sequential([InputLayer(input_tensor=flatten(inputs)[0]), *rest], name=model.name)
    return Model(inputs, stack(inputs), name=model.name)


def _clone_network(
    model: Model,
    inputs: Any,
    make: Callable[[Any], Any],
    call: Callable[..., Any] | None,
) -> Model:
    network = model._laminar_network
    assert network is not None
    if inputs is None:
        inputs = map_structure(
            lambda x: Input(batch_shape=x.shape, dtype=x.dtype, name=x.history.operation.name),
            network.inputs_structure,
        )
    values = dict(zip(map(id, network.inputs), flatten(inputs), strict=True))
    made: dict[int, Any] = {}  # by the layer that is cloned
    for node in network.nodes:
        if any(id(t) in values for t in node.outputs):
            continue
        old = node.operation
        new = made.get(id(old))
        if new is None:
            new = made[id(old)] = make(old) if isinstance(old, Layer) else _same(old)
        args, kwargs = node.fill(values)
        result = new(*args, **kwargs) if call is None else call(new, *args, **kwargs)
        values |= zip(map(id, node.outputs), flatten(result), strict=True)
    outputs = pack_sequence_as(network.outputs_structure, [values[id(y)] for y in network.outputs])
    kind = type(model) if type(model).__init__ is Model.__init__ else Functional
    return kind(inputs, outputs, name=model.name, trainable=model.trainable)


def model_from_json(json_string: str, custom_objects: Mapping[str, Any] | None = None) -> Any:
    """A model of the architecture that `model.to_json()` gave, here, in Keras 3 or in Keras 2.

    Raises:
        DataLossError: the text is not JSON, or not a model.
        NotFoundError: it names a class that is not known.

    Examples:
        >>> model = laminar.Sequential([layers.Input((3,)), layers.Dense(2)])
        >>> laminar.models.model_from_json(model.to_json()).output_shape
        (None, 2)
    """
    from laminar.saving.whole import model_from_text  # saving stands on models

    return model_from_text(json_string, custom_objects)
