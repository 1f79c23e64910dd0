"""Wrapper: a layer around another layer."""

from __future__ import annotations

from typing import Any, Self, Unpack

from laminar.naming import who
from laminar.serialization import deserialize_keras_object, serialize_keras_object

from .layer import Layer, refuse_layer
from .layer_options import LayerOptions


class Wrapper(Layer):
    """A layer around another: derive from it, and write `call`.

    Args:
        layer: the layer inside.

    Raises:
        InvalidArgumentError: `layer` is no layer.

    Examples:
        >>> class Twice(layers.Wrapper):
        ...     def call(self, x):
        ...         return self.layer(self.layer(x))
        >>> Twice(layers.Rescaling(3.0))(np.array([1.0]))
        Tensor([9.], shape=(1,), dtype=float32)
    """

    def __init__(self, layer: Any, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        if not isinstance(layer, Layer):
            refuse_layer(layer, who(self))
        self.layer = layer

    def build(self, input_shape: Any = None) -> None:
        if not self.layer.built:
            self.layer.build(input_shape)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"layer": serialize_keras_object(self.layer)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        layer = deserialize_keras_object(config["layer"], custom_objects)
        return super().from_config({**config, "layer": layer})
