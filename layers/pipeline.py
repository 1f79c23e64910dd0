"""Pipeline: layers that prepare data, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from laminar.naming import who
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .data_layer import DataLayer, as_input
from .layer import Layer, refuse_layer
from .operation import without_training


class Pipeline(DataLayer):
    """y = last(... first(x)): layers as one layer, as for the preparation of data.

    Args:
        layers: the layers, in order.

    Shapes:
        x: what the first layer takes -> y: what the last one gives

    Raises:
        InvalidArgumentError: one is no layer.

    Examples:
        >>> layer = layers.Pipeline([layers.Rescaling(0.5), layers.Flatten()])
        >>> layer(np.array([[[1.0], [2.0]]]))
        Tensor([[0.5, 1. ]], shape=(1, 2), dtype=float32)
    """

    def __init__(self, layers: Sequence[Layer], name: str | None = None) -> None:
        super().__init__(name=name)
        for layer in layers:
            if not isinstance(layer, Layer):
                refuse_layer(layer, who(self))
        self._steps = list(layers)

    @property
    def layers(self) -> list[Layer]:
        """The layers, in order."""
        return list(self._steps)

    def _as_input(self, inputs: Any) -> Any:
        if isinstance(inputs, dict):
            return {name: self._as_input(value) for name, value in inputs.items()}
        return as_input(inputs)

    def call(self, inputs: Any, training: bool = True) -> Any:
        for layer in self._steps:
            inputs = layer(inputs, training=training)
        return inputs

    def compute_output_spec(self, inputs: Any, training: bool = True) -> Any:
        """The symbolic outputs, from layer to layer, each of which knows what is open with it."""
        for layer in self._steps:
            kwargs = without_training({"training": training}, layer)
            inputs = layer.compute_output_spec(inputs, **kwargs)
        return inputs

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name, "layers": serialize_keras_object(self._steps)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        layers = [deserialize_keras_object(c, custom_objects) for c in config["layers"]]
        return cls(layers, name=config.get("name"))
