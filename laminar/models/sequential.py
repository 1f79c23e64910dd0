"""Sequential: a stack of layers, each taking what the one before gives."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext
from typing import Any, Self

from laminar.distribute.replicas import part_call
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.source import inside_layer
from laminar.layers.input import InputLayer
from laminar.layers.layer import Layer, refuse_layer
from laminar.layers.symbolic import KerasTensor
from laminar.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
)
from laminar.tree import flatten

from ..typing import Shape
from .model import Model
from .network import Network


class Sequential(Model):
    """A stack of layers.

    The weights are made when the shape of the input is known: from an `Input` first, at the first
    call, or by `build(input_shape)`. `_symbols` are the symbolic outputs of the layers of `_stack`,
    as many as have been called.

    Args:
        layers: the layers, in order; more can be added with `add`.
        trainable: whether training changes the weights.
        name: of the model.
    """

    _untracked = Model._untracked | {"_stack", "_symbols"}

    def __init__(
        self,
        layers: Sequence[Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(trainable=trainable, name=name)
        self._stack: list[Layer] = []
        self._symbols: list[Any] = []
        self._input_is_given = True
        if layers is not None and not isinstance(layers, list | tuple):
            raise InvalidArgumentError(
                f"Sequential: expected a list of layers, got {type(layers).__name__}",
                remedy="Sequential([layer, layer, ...])",
            )
        self._append(layers or ())
        self._connect()

    def add(self, layer: Layer, rebuild: bool = True) -> None:
        """Put a layer on top.

        Raises:
            InvalidArgumentError: not a layer, a name that is taken, or an Input that is not first.
        """
        count = len(self._stack)
        self._append([layer])
        if rebuild:
            self._connect_or_drop(slice(count, None))

    def _append(self, layers: Iterable[Any]) -> None:
        taken = {layer.name for layer in self._stack}
        for layer in layers:
            if isinstance(layer, KerasTensor):
                layer = layer.history.operation
            if not isinstance(layer, Layer):
                refuse_layer(layer, "Sequential")
            if not self._stack and not isinstance(layer, InputLayer) and layer._first_shape:
                self._stack.append(InputLayer(batch_shape=layer._first_shape))
                taken.add(self._stack[0].name)
            if isinstance(layer, InputLayer) and self._stack:
                raise InvalidArgumentError(
                    f"{self.who}: an Input can only stand first",
                    remedy="make another model for another input",
                )
            if layer.name in taken:
                raise InvalidArgumentError(
                    f"{self.who}: a layer named {layer.name!r} is there already",
                    remedy="make another layer, or give it another name",
                )
            taken.add(layer.name)
            self._stack.append(layer)

    def pop(self, rebuild: bool = True) -> Layer:
        """Take the top layer off."""
        if not self._stack:
            raise InvalidArgumentError(f"{self.who} has no layers")
        layer = self._stack.pop()
        del self._symbols[len(self._stack) :]
        if rebuild:
            self._connect()
        return layer

    @property
    def sublayers(self) -> list[Any]:
        return list(self._stack)

    def _listed_layers(self) -> list[Layer]:
        """The layers of the stack, without the Input."""
        return [layer for layer in self._stack if not isinstance(layer, InputLayer)]

    def _summarized(self) -> list[Any]:
        return list(self._listed_layers())

    def _connect_or_drop(self, added: slice) -> None:
        """Connect the stack; when a layer refuses its input, take those that were added off."""
        try:
            self._connect()
        except BaseException:
            del self._stack[added]
            del self._symbols[added.start :]
            self._connect()
            raise

    def _connect(self) -> None:
        """Call the layers that have not been called yet, when the stack begins with an Input."""
        self._network = None
        self.built = False
        symbols = self._symbols
        with nullcontext() if self._is_inside() else inside_layer(self.name):
            for layer in self._stack[len(symbols) :]:
                if symbols:
                    symbols.append(layer(symbols[-1]))
                elif isinstance(layer, InputLayer):
                    symbols.append(layer.output_tensor)
                elif isinstance(layer, Model) and layer.network is not None:
                    symbols.append(layer(layer.network.inputs_structure))
                else:
                    return  # built later, for the shape of the data
        if symbols:
            first = self._stack[0]
            network = first.network if isinstance(first, Model) else None
            inputs = symbols[0] if network is None else network.inputs_structure
            self._network = Network(inputs, symbols[-1], self.who)
            shapes = [tuple(t.shape) for t in flatten(inputs)]
            self._build_shapes = {"input_shape": shapes[0] if len(shapes) == 1 else shapes}
            self.built = True

    def build(self, input_shape: Shape | None = None) -> None:
        """Make the weights for inputs of `input_shape` (with the batch)."""
        if self._network is not None or not self._stack:
            return
        if input_shape is None:
            raise InvalidArgumentError(
                f"{self.who}: the shape of the input is not known",
                remedy="begin with Input(shape=...), or build(input_shape)",
            )
        self._begin_with(InputLayer(batch_shape=tuple(input_shape)))

    def _begin_with(self, first: InputLayer) -> None:
        self._stack.insert(0, first)
        self._connect_or_drop(slice(0, 1))
        self._input_is_given = False

    def _maybe_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.built:
            return
        if not self._stack:
            raise InvalidArgumentError(f"{self.who} has no layers", remedy="add(layer) first")
        leaves = flatten(args[0]) if args else []
        if len(leaves) != 1 or not hasattr(leaves[0], "shape"):
            raise InvalidArgumentError(
                f"{self.who} takes one input, got {len(leaves)}",
                remedy="use Model(inputs, outputs) for several inputs",
            )
        (x,) = leaves
        self._begin_with(InputLayer(batch_shape=(None, *tuple(x.shape)[1:]), dtype=str(x.dtype)))

    def call(self, inputs: Any, training: bool | None = None, mask: Any = None) -> Any:
        """Compute the outputs; without an Input, for any shape that the layers take."""
        if self._input_is_given:
            return super().call(inputs)
        x = inputs
        for layer in self.layers:
            x = part_call(layer, (x,), {})
        return x

    def _known_outputs(self) -> Any:
        return self._network_outputs(Sequential.call) if self._input_is_given else None

    def get_config(self) -> dict[str, Any]:
        """The stack of layers as data."""
        config = Layer.get_config(self)
        config["layers"] = [serialize_keras_object(layer) for layer in self._stack]
        if self._build_shapes is not None:
            shape = self._build_shapes["input_shape"]
            config["build_input_shape"] = list(shape)
        return config

    @classmethod
    def from_config(
        cls, config: Mapping[str, Any], custom_objects: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a model from what `get_config` gave."""
        if not isinstance(config, Mapping):
            config = {"layers": config}
        model = cls(
            name=config.get("name"),
            **({"trainable": config["trainable"]} if "trainable" in config else {}),
        )
        with custom_object_scope(custom_objects or {}):
            model._append(map(deserialize_keras_object, config.get("layers", ())))
        model._connect()
        shape = config.get("build_input_shape")
        if model._network is None and shape and isinstance(shape, list | tuple):
            model.build(tuple(shape))
        return model
