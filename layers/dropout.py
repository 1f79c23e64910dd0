"""Layers that disturb what passes through them, while training."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Unpack

from laminar import ops, random
from laminar.config import standardize_data_format
from laminar.dtype_policies import PolicyLike
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.naming import who
from laminar.typing import DataFormat

from .input_spec import InputSpec
from .layer import Layer
from .layer_options import LayerOptions
from .options import at_least_0, config_of, fraction


class _Noise(Layer):
    """What layers with randomness have in common: a generator, and no effect unless training."""

    _laminar_stateless = True

    def _begin(self, strength: float | Tensor, seed: int | None) -> None:
        self.seed = seed
        self._active = isinstance(strength, Tensor) or strength > 0
        if self._active:
            self.seed_generator = random.SeedGenerator(seed)
        self.supports_masking = True

    def call(self, inputs: Tensor, training: bool = False) -> Any:
        return self._disturb(inputs) if training and self._active else inputs

    def _disturb(self, x: Tensor) -> Any:
        raise NotImplementedError


class Dropout(_Noise):
    """In training, numbers are set to 0 at random, the others divided by 1 - rate.

    Args:
        rate: the probability of a number to be dropped, from 0 to 1; a number, or a scalar tensor
            of the graph or function in which the layer is called, as a placeholder.
        noise_shape: 1 on each axis along which numbers are dropped together; elsewhere the size of
            the input, or None.
        seed: a whole number, which fixes all numbers that follow.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to 1.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
        JMLR 15, 2014, section 4; scaled in training, as in section 10.

    Examples:
        >>> y = layers.Dropout(0.5, seed=1)(np.ones((100, 10)), training=True)
        >>> ops.unique(y)
        Tensor([0., 2.], shape=(2,), dtype=float32)
    """

    def __init__(
        self,
        rate: float | Tensor,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.rate = rate if isinstance(rate, Tensor) else fraction(self, "rate", rate)
        self._begin(self.rate, seed)
        self.noise_shape = _noise_shape(self, noise_shape)

    def _disturb(self, x: Tensor) -> Any:
        return random.dropout(x, self.rate, self.noise_shape, seed=self.seed_generator)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "rate", "seed", "noise_shape")


def _noise_shape(layer: Layer, shape: Sequence[int | None] | None) -> tuple[int | None, ...] | None:
    if shape is None:
        return None
    if not isinstance(shape, Sequence) or any(
        n is not None and (not isinstance(n, int) or n < 1) for n in shape
    ):
        raise InvalidArgumentError(
            f"{who(layer)}: noise_shape must hold positive whole numbers and None, got {shape!r}"
        )
    return tuple(shape)


class _SpatialDropout(_Noise):
    rank: ClassVar[int]
    data_format = "channels_last"

    def __init__(
        self,
        rate: float,
        seed: int | None,
        name: str | None,
        dtype: PolicyLike | None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name=name, dtype=dtype, **kwargs)
        self.rate = fraction(self, "rate", rate)
        self._begin(self.rate, seed)
        self.input_spec = InputSpec(ndim=self.rank + 2)

    def _disturb(self, x: Tensor) -> Any:
        ones = (1,) * self.rank
        last = self.data_format == "channels_last"
        shape = (None, *ones, None) if last else (None, None, *ones)
        return random.dropout(x, self.rate, shape, seed=self.seed_generator)

    def get_config(self) -> dict[str, Any]:
        config = super().get_config() | config_of(self, "rate", "seed")
        del config["trainable"]  # Keras's constructor does not take it
        return config


class SpatialDropout1D(_SpatialDropout):
    """In training, whole channels of sequences are set to 0, the others divided by 1 - rate.

    Args:
        rate: the probability of a channel to be dropped, from 0 to 1.
        seed: a whole number, which fixes all numbers that follow.
        name: of the layer.
        dtype: dtype or policy of the layer.

    Shapes:
        x: (batch, steps, channels) -> y: the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to 1.

    Source: Tompson et al., "Efficient object localization using convolutional networks", 2015,
        arXiv:1411.4280, section 3.2.

    Examples:
        >>> y = layers.SpatialDropout1D(0.5, seed=1)(np.ones((1, 3, 8)), training=True)
        >>> bool(ops.all(y[0, 0] == y[0, 2]))  # whole channels
        True
    """

    rank = 1

    def __init__(
        self,
        rate: float,
        seed: int | None = None,
        name: str | None = None,
        dtype: PolicyLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rate, seed, name, dtype, **kwargs)


class _SpatialDropoutND(_SpatialDropout):
    def __init__(
        self,
        rate: float,
        data_format: DataFormat | None = None,
        seed: int | None = None,
        name: str | None = None,
        dtype: PolicyLike | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(rate, seed, name, dtype, **kwargs)
        self.data_format = standardize_data_format(data_format)

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "data_format")


class SpatialDropout2D(_SpatialDropoutND):
    """In training, whole channels of images are set to 0, the others divided by 1 - rate.

    Args:
        rate: the probability of a channel to be dropped, from 0 to 1.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all numbers that follow.
        name: of the layer.
        dtype: dtype or policy of the layer.

    Shapes:
        x: (batch, height, width, channels), or (batch, channels, height, width) -> y: the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to 1.

    Examples:
        >>> y = layers.SpatialDropout2D(0.5, seed=1)(np.ones((1, 3, 3, 8)), training=True)
        >>> bool(ops.all(y[0, 0, 0] == y[0, 2, 2]))
        True
    """

    rank = 2


class SpatialDropout3D(_SpatialDropoutND):
    """In training, whole channels of volumes are set to 0, the others divided by 1 - rate.

    Args:
        rate: the probability of a channel to be dropped, from 0 to 1.
        data_format: "channels_last" or "channels_first", by default the global one.
        seed: a whole number, which fixes all numbers that follow.
        name: of the layer.
        dtype: dtype or policy of the layer.

    Shapes:
        x: (batch, depth, height, width, channels), or (batch, channels, depth, height, width) -> y:
        the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to 1.

    Examples:
        >>> layers.SpatialDropout3D(0.5)(np.ones((1, 2, 2, 2, 4)), training=True).shape
        (1, 2, 2, 2, 4)
    """

    rank = 3


class GaussianDropout(_Noise):
    """In training, each number is multiplied by a normal one of mean 1.

    Args:
        rate: the standard deviation is sqrt(rate / (1 - rate)), that of Dropout of this rate.
        seed: a whole number, which fixes all numbers that follow.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to below 1.

    Source: Srivastava et al., "Dropout: a simple way to prevent neural networks from overfitting",
        JMLR 15, 2014, section 10.

    Examples:
        >>> layers.GaussianDropout(0.5)(np.ones((2, 3)), training=False)
        Tensor([[1., 1., 1.],
                [1., 1., 1.]], shape=(2, 3), dtype=float32)
    """

    def __init__(
        self, rate: float, seed: int | None = None, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.rate = fraction(self, "rate", rate, below_one=True)
        self._begin(self.rate, seed)

    def _disturb(self, x: Tensor) -> Any:
        deviation = math.sqrt(self.rate / (1 - self.rate))
        noise = random.normal(ops.shape(x), 1.0, deviation, dtype=x.dtype, seed=self.seed_generator)
        return x * noise

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "rate", "seed")


class GaussianNoise(_Noise):
    """In training, a normal number of mean 0 is added to each number.

    Args:
        stddev: the standard deviation.
        seed: a whole number, which fixes all numbers that follow.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: the deviation is below 0.

    Examples:
        >>> layers.GaussianNoise(0.1)(np.ones((2, 3)), training=False)
        Tensor([[1., 1., 1.],
                [1., 1., 1.]], shape=(2, 3), dtype=float32)
    """

    def __init__(
        self, stddev: float, seed: int | None = None, **kwargs: Unpack[LayerOptions]
    ) -> None:
        super().__init__(**kwargs)
        self.stddev = at_least_0(self, "stddev", stddev)
        self._begin(self.stddev, seed)

    def _disturb(self, x: Tensor) -> Any:
        noise = random.normal(
            ops.shape(x), 0.0, self.stddev, dtype=x.dtype, seed=self.seed_generator
        )
        return x + noise

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "stddev", "seed")


# The limit of SELU for small numbers, minus its scale times its alpha (equations 2 and 14).
_SELU_LIMIT = -1.0507009873554804934193349852946 * 1.6732632423543772848170429916717


class AlphaDropout(_Noise):
    """In training, numbers are set to the limit of SELU at random, then all are shifted and scaled.

    Mean and variance of inputs with mean 0 and variance 1 stay as they are.

    Args:
        rate: the probability of a number to be dropped, from 0 to below 1.
        noise_shape: 1 on each axis along which numbers are dropped together; elsewhere the size of
            the input, or None.
        seed: a whole number, which fixes all numbers that follow.

    Shapes:
        x: any -> y: the same

    Raises:
        InvalidArgumentError: the rate is not from 0 to below 1.

    Source: Klambauer et al., "Self-normalizing neural networks", 2017, arXiv:1706.02515, section 2,
        "New dropout technique".

    Examples:
        >>> x = np.ones((2, 3))
        >>> layers.AlphaDropout(0.5)(x, training=False)  # nothing changes but in training
        Tensor([[1., 1., 1.],
                [1., 1., 1.]], shape=(2, 3), dtype=float32)
    """

    def __init__(
        self,
        rate: float | Tensor,
        noise_shape: Sequence[int | None] | None = None,
        seed: int | None = None,
        **kwargs: Unpack[LayerOptions],
    ) -> None:
        super().__init__(**kwargs)
        self.rate = fraction(self, "rate", rate, below_one=True)
        self._begin(self.rate, seed)
        self.noise_shape = _noise_shape(self, noise_shape)

    def _disturb(self, x: Tensor) -> Any:
        sizes = ops.shape(x)
        if self.noise_shape is not None:
            given = zip(self.noise_shape, sizes, strict=True)
            sizes = tuple(size if n is None else n for n, size in given)
        kept = random.uniform(sizes, seed=self.seed_generator) >= self.rate
        scale = ((1 - self.rate) * (1 + self.rate * _SELU_LIMIT**2)) ** -0.5
        shift = -scale * _SELU_LIMIT * self.rate
        return ops.where(kept, x, _SELU_LIMIT) * scale + shift

    def get_config(self) -> dict[str, Any]:
        return super().get_config() | config_of(self, "rate", "seed", "noise_shape")
