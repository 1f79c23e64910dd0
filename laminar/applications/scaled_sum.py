"""The layer that Inception-ResNet has of its own."""

from __future__ import annotations

from typing import Any

from laminar.layers import Layer
from laminar.registration import list_builtins


class CustomScaleLayer(Layer):
    """y = x + scale * residual.

    Args:
        scale: a number.

    Shapes:
        [x, residual]: of one shape -> y: the same

    Source: Szegedy et al., "Inception-v4, Inception-ResNet and the impact of residual connections
        on learning", 2016, arXiv:1602.07261, section 3.3.
    """

    def __init__(self, scale: float, **options: Any) -> None:
        super().__init__(**options)
        self.scale = scale

    def call(self, inputs: Any) -> Any:
        x, residual = inputs
        return x + residual * self.scale

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | {"scale": self.scale}


list_builtins("keras.src.applications.inception_resnet_v2", {"CustomScaleLayer": CustomScaleLayer})
