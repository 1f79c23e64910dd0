"""The layer that ConvNeXt has of its own."""

from __future__ import annotations

from typing import Any

from laminar import initializers
from laminar.layers import Layer
from laminar.registration import list_builtins


class LayerScale(Layer):
    """y = x * gamma, with a trained factor for each channel.

    Args:
        init_values: what all factors begin as.
        projection_dim: the number of channels.

    Shapes:
        x: (batch, ..., projection_dim) -> y: the same

    Source: Touvron et al., "Going deeper with image transformers", 2021, arXiv:2103.17239.
    """

    def __init__(self, init_values: float, projection_dim: int, **options: Any) -> None:
        super().__init__(**options)
        self.init_values = init_values
        self.projection_dim = projection_dim

    def build(self, input_shape: Any) -> None:
        self.gamma = self.add_weight(
            (self.projection_dim,), initializers.Constant(self.init_values)
        )

    def call(self, x: Any) -> Any:
        return x * self.gamma

    def get_config(self) -> dict[str, Any]:
        own = {"init_values": self.init_values, "projection_dim": self.projection_dim}
        return super().get_config() | own


list_builtins("keras.src.applications.convnext", {"LayerScale": LayerScale})
