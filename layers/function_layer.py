"""Lambda: a function as a layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Self, Unpack

from laminar.engine.functions import converted_in_graph
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.tree import map_shape_structure

from .layer import Layer
from .layer_options import LayerOptions


class Lambda(Layer):
    """y = function(x).

    A lambda cannot be saved, as loading it would run code from a file; a named function can, once
    it is registered. A function that uses variables should be a layer of its own.

    Args:
        function: of a tensor (or several), and of `mask` and `training` if it has such parameters.
        output_shape: without the batch, or a function of the input's shape; found by tracing
            `function` if left out.
        mask: the mask of the output, or a function of the inputs and their mask.
        arguments: further keyword arguments of `function`.

    Shapes:
        those of `function`

    Examples:
        >>> layers.Lambda(lambda x: x**2)(np.array([2.0, 3.0]))
        Tensor([4., 9.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        function: Callable[..., Any],
        output_shape: Any = None,
        mask: Any = None,
        arguments: dict[str, Any] | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.function = function
        self.arguments = dict(arguments or {})
        self.mask = mask
        self.supports_masking = mask is not None
        self._output_shape = output_shape
        parameters = inspect.signature(function).parameters
        self._passed_on = [name for name in ("mask", "training") if name in parameters]

    def call(self, inputs: Any, mask: Any = None, training: bool | None = None) -> Any:
        given = {"mask": mask, "training": training}
        passed_on = {k: given[k] for k in self._passed_on}
        return converted_in_graph(self.function)(inputs, **self.arguments, **passed_on)

    def compute_mask(self, inputs: Any, mask: Any = None) -> Any:
        """What the argument `mask` says."""
        return self.mask(inputs, mask) if callable(self.mask) else self.mask

    def compute_output_shape(self, input_shape: Any) -> Any:
        """The shape that was given, or that of a trace."""
        if self._output_shape is None:
            return super().compute_output_shape(input_shape)
        if callable(self._output_shape):
            return self._output_shape(input_shape)
        batch = input_shape[0][0] if isinstance(input_shape[0], list | tuple) else input_shape[0]
        return map_shape_structure(lambda shape: (batch, *shape), self._output_shape)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | {"function": serialize_keras_object(self.function)}
        if self._output_shape is not None:
            config["output_shape"] = serialize_keras_object(self._output_shape)
        if self.mask is not None:
            config["mask"] = serialize_keras_object(self.mask)
        return config | {"arguments": serialize_keras_object(self.arguments)}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        objects: dict[str, Any] = {
            key: deserialize_keras_object(config[key], custom_objects)
            for key in ("function", "output_shape", "mask", "arguments")
            if key in config
        }
        return super().from_config({**config, **objects})
