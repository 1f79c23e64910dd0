"""Sequential: a stack of layers, each taking what the one before gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

from laminar.engine.errors import InvalidArgumentError
from laminar.layers.input import InputLayer
from laminar.layers.layer import Layer, refuse_layer
from laminar.layers.symbolic import KerasTensor
from laminar.serialization import (
    custom_object_scope,
    deserialize_keras_object,
    serialize_keras_object,
)
from laminar.tree import flatten

from .model import Model
from .network import Network


class Sequential(Model):
    """A stack of layers.

    The weights are made when the shape of the input is known: from an `Input` first, at the first
    call, or by `build(input_shape)`.

    Args:
        layers: the layers, in order; more can be added with `add`.
        trainable: whether training changes the weights.
        name: of the model.
    """

    _untracked = Model._untracked | {"_stack"}

    def __init__(
        self,
        layers: Sequence[Any] | None = None,
        trainable: bool = True,
        name: str | None = None,
    ) -> None:
        super().__init__(trainable=trainable, name=name)
        self._stack: list[Layer] = []
        if layers is not None and not isinstance(layers, list | tuple):
            raise InvalidArgumentError(
                f"Sequential: expected a list of layers, got {type(layers).__name__}",
                remedy="Sequential([layer, layer, ...])",
            )
        for layer in layers or ():
            self._append(layer)
        self._rebuild()

    def add(self, layer: Any, rebuild: bool = True) -> None:
        """Put a layer on top.

        Raises:
            InvalidArgumentError: not a layer, a name that is taken, or an Input that is not first.
        """
        self._append(layer)
        if rebuild:
            self._rebuild()

    def _append(self, layer: Any) -> None:
        if isinstance(layer, KerasTensor):
            layer = layer.history.operation
        if not isinstance(layer, Layer):
            refuse_layer(layer, "Sequential")
        if not self._stack and not isinstance(layer, InputLayer) and layer._first_shape:
            self._stack.append(InputLayer(batch_shape=layer._first_shape))
        if isinstance(layer, InputLayer) and self._stack:
            raise InvalidArgumentError(
                f"Sequential {self.name!r}: an Input can only stand first",
                remedy="make another model for another input",
            )
        if any(layer.name == other.name for other in self._stack):
            raise InvalidArgumentError(
                f"Sequential {self.name!r}: a layer named {layer.name!r} is there already",
                remedy="make another layer, or give it another name",
            )
        self._stack.append(layer)

    def pop(self, rebuild: bool = True) -> Layer:
        """Take the top layer off."""
        if not self._stack:
            raise InvalidArgumentError(f"Sequential {self.name!r} has no layers")
        layer = self._stack.pop()
        if rebuild:
            self._rebuild()
        return layer

    @property
    def sublayers(self) -> list[Layer]:
        return list(self._stack)

    @property
    def layers(self) -> list[Layer]:
        """The layers of the stack, without the Input."""
        return [layer for layer in self._stack if not isinstance(layer, InputLayer)]

    def _rebuild(self) -> None:
        """Make the network anew when the stack begins with an Input."""
        self._network = None
        self.built = False
        self._train_state = None
        first = self._stack[0] if self._stack else None
        if isinstance(first, InputLayer) and len(self._stack) > 1:
            self._connect(first.output_tensor)
        elif first is not None and isinstance(first, Model) and first.network is not None:
            self._connect(first.network.inputs_structure)

    def _connect(self, inputs: Any) -> None:
        x = inputs
        for layer in self._stack:
            if not isinstance(layer, InputLayer):
                x = layer(x)
        self._network = Network(inputs, x, f"Sequential {self.name!r}")
        shapes = [tuple(t.shape) for t in flatten(inputs)]
        self._build_shapes = {"input_shape": shapes[0] if len(shapes) == 1 else shapes}
        self.built = True

    def build(self, input_shape: Any = None) -> None:
        """Make the weights for inputs of `input_shape` (with the batch)."""
        if self._network is not None or not self._stack:
            return
        if input_shape is None:
            raise InvalidArgumentError(
                f"Sequential {self.name!r}: the shape of the input is not known",
                remedy="begin with Input(shape=...), or build(input_shape)",
            )
        self._stack.insert(0, InputLayer(batch_shape=tuple(input_shape)))
        self._rebuild()

    def _maybe_build(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self.built:
            return
        if not self._stack:
            raise InvalidArgumentError(
                f"Sequential {self.name!r} has no layers", remedy="add(layer) first"
            )
        leaves = flatten(args[0]) if args else []
        if len(leaves) != 1 or not hasattr(leaves[0], "shape"):
            raise InvalidArgumentError(
                f"Sequential {self.name!r} takes one input, got {len(leaves)}",
                remedy="use Model(inputs, outputs) for several inputs",
            )
        x = leaves[0]
        self._stack.insert(
            0, InputLayer(batch_shape=(None, *tuple(x.shape)[1:]), dtype=str(x.dtype))
        )
        try:
            self._rebuild()
        except BaseException:
            self._stack.pop(0)
            raise

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
            for entry in config.get("layers", ()):
                model.add(deserialize_keras_object(entry), rebuild=False)
        model._rebuild()
        shape = config.get("build_input_shape")
        if model._network is None and shape and isinstance(shape, list | tuple):
            model.build(tuple(shape))
        return model
