"""Layers that pass their input on, with something said about it."""

from __future__ import annotations

from typing import Any, Unpack

from laminar import ops, regularizers
from laminar.engine.graph import Tensor
from laminar.serialization import deserialize_keras_object

from .layer import Layer
from .layer_options import CommonOptions, LayerOptions
from .options import config_of


class Identity(Layer):
    """y = x.

    Shapes:
        x: any -> y: the same

    Examples:
        >>> layers.Identity()(np.array([1.0, 2.0]))
        Tensor([1., 2.], shape=(2,), dtype=float32)
    """

    _laminar_stateless = True

    def __init__(self, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return inputs

    def get_config(self) -> dict[str, Any]:
        return super().get_config()


class ActivityRegularization(Layer):
    """y = x, with a penalty on x: (l1 * sum of |x| + l2 * sum of x**2) / batch.

    Args:
        l1: the first factor.
        l2: the second factor.

    Shapes:
        x: any -> y: the same

    Examples:
        >>> layer = layers.ActivityRegularization(l2=0.5)
        >>> y = layer(np.array([[1.0, 3.0]]))
        >>> layer.losses
        [Tensor(5., shape=(), dtype=float32)]
    """

    _laminar_stateless = True

    def __init__(self, l1: float = 0.0, l2: float = 0.0, **kwargs: Unpack[CommonOptions]) -> None:
        super().__init__(activity_regularizer=regularizers.L1L2(l1=l1, l2=l2), **kwargs)
        self.l1 = l1
        self.l2 = l2
        self.supports_masking = True

    def call(self, inputs: Tensor) -> Any:
        return inputs

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | config_of(self, "l1", "l2")
        del config["activity_regularizer"]
        return config


class Masking(Layer):
    """Time steps whose numbers all equal `mask_value` are masked, and set to 0.

    Args:
        mask_value: what a step is filled with to be left out.

    Shapes:
        x: (batch, steps, features) -> y: the same, with the mask (batch, steps)

    Examples:
        >>> x = np.array([[[1.0, 2.0], [0.0, 0.0]]])
        >>> layers.Masking().compute_mask(x)
        Tensor([[ True, False]], shape=(1, 2), dtype=bool)
    """

    _laminar_stateless = True

    def __init__(self, mask_value: float = 0.0, **kwargs: Unpack[LayerOptions]) -> None:
        super().__init__(**kwargs)
        self.mask_value = deserialize_keras_object(mask_value)
        self.supports_masking = True

    def compute_mask(self, inputs: Tensor, mask: Tensor | None = None) -> Any:
        """Where some number is not `mask_value`."""
        return ops.any(ops.not_equal(inputs, self.mask_value), axis=-1)

    def call(self, inputs: Tensor) -> Any:
        kept = ops.any(ops.not_equal(inputs, self.mask_value), axis=-1, keepdims=True)
        return ops.where(kept, inputs, 0)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "mask_value")
