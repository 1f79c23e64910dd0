"""Rescaling: numbers brought into another range."""

from __future__ import annotations

from typing import Any, Self, Unpack

from laminar import ops
from laminar.config import image_data_format
from laminar.serialization import deserialize_keras_object, serialize_keras_object
from laminar.typing import TensorLike

from .data_layer import DataLayer
from .layer_options import LayerOptions


class Rescaling(DataLayer):
    """y = x * scale + offset, in the compute dtype.

    Args:
        scale: a number, or one for each channel.
        offset: likewise.

    Shapes:
        x: any, of any numbers -> y: the same

    Examples:
        >>> layers.Rescaling(1 / 255)(np.array([0.0, 255.0]))
        Tensor([0., 1.], shape=(2,), dtype=float32)
    """

    def __init__(
        self, scale: TensorLike, offset: TensorLike = 0.0, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.scale = scale
        self.offset = offset
        self.supports_masking = True

    def call(self, inputs: TensorLike) -> Any:
        x = ops.cast(inputs, self.compute_dtype)
        return x * self._per_channel(self.scale) + self._per_channel(self.offset)

    def _per_channel(self, value: Any) -> Any:
        found = ops.cast(value, self.compute_dtype)
        if len(found.shape) == 1 and image_data_format() == "channels_first":
            return ops.reshape(found, (-1, 1, 1))
        return found

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {
            "scale": serialize_keras_object(self.scale),
            "offset": serialize_keras_object(self.offset),
        }

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Self:
        """Make a layer from what `get_config` gave."""
        values = {
            key: deserialize_keras_object(config[key], custom_objects)
            for key in ("scale", "offset")
        }
        return super().from_config({**config, **values})
