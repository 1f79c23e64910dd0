"""Initializers under the arguments of TensorFlow 1, for `get_variable` and layers.

They draw as `drawing` does: anew at each run of an initializer.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.array import creation
from laminar.engine.ops.array.diagonal import diagonal
from laminar.engine.ops.linalg.decompositions import qr

from .arrays import constant
from .drawing import random_normal, random_uniform, truncated_normal
from .values import as_kind, static


class Initializer:
    """Gives the initial value of a variable: `initializer(shape, dtype)`."""

    def __init__(self, dtype: Any = "float32") -> None:
        self.dtype = as_kind(dtype)

    def __call__(self, shape: Any, dtype: Any = None, partition_info: Any = None) -> Tensor:
        return self.value([int(d) for d in static(shape)], as_kind(dtype, self.dtype))

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """The value."""
        raise NotImplementedError(type(self).__name__)


class Zeros(Initializer):
    """0 everywhere."""

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        return creation.zeros(shape, dtype)


class Ones(Initializer):
    """1 everywhere."""

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        return creation.ones(shape, dtype)


class Constant(Initializer):
    """Given values, in the order of the elements; the last one fills up."""

    def __init__(self, value: Any = 0, dtype: Any = "float32", verify_shape: bool = False) -> None:
        super().__init__(dtype)
        self._value, self._verify = value, verify_shape

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        found: Tensor = constant(np.asarray(self._value), dtype, shape, verify_shape=self._verify)
        return found


class RandomUniform(Initializer):
    """Uniform in [minval, maxval)."""

    def __init__(
        self, minval: Any = 0, maxval: Any = None, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        super().__init__(dtype)
        self._given = minval, maxval
        self._seed = seed

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        found: Tensor = random_uniform(shape, *self._given, dtype, self._seed)
        return found


class RandomNormal(Initializer):
    """Normal numbers."""

    _draw = staticmethod(random_normal)

    def __init__(
        self, mean: Any = 0.0, stddev: Any = 1.0, seed: Any = None, dtype: Any = "float32"
    ) -> None:
        super().__init__(dtype)
        self._given = mean, stddev
        self._seed = seed

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        found: Tensor = self._draw(shape, *self._given, dtype, self._seed)
        return found


class TruncatedNormal(RandomNormal):
    """Normal numbers, drawn again where they lie more than two deviations off the mean."""

    _draw = staticmethod(truncated_normal)


class VarianceScaling(Initializer):
    """Numbers whose variance is `scale` over the number of inputs, outputs, or their mean.

    Source: He et al., "Delving deep into rectifiers", 2015, arXiv:1502.01852.
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: Any = None,
        dtype: Any = "float32",
    ) -> None:
        super().__init__(dtype)
        if scale <= 0 or mode not in ("fan_in", "fan_out", "fan_avg"):
            raise ValueError(f"VarianceScaling: scale={scale!r}, mode={mode!r}")
        if distribution not in ("normal", "uniform", "truncated_normal", "untruncated_normal"):
            raise ValueError(f"VarianceScaling: distribution={distribution!r}")
        self._scale, self._mode, self._distribution = scale, mode, distribution
        self._seed = seed

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        window = math.prod(shape[:-2])
        fan_in, fan_out = shape[-2:] if len(shape) > 1 else [*shape, *shape] or [1, 1]
        fans = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}
        variance = self._scale / max(1.0, window * fans[self._mode])
        found: Tensor
        if self._distribution == "uniform":
            limit = math.sqrt(3 * variance)
            found = random_uniform(shape, -limit, limit, dtype, self._seed)
        elif self._distribution == "untruncated_normal":
            found = random_normal(shape, 0.0, math.sqrt(variance), dtype, self._seed)
        else:  # the deviation of what is cut off at two deviations is smaller by this
            stddev = math.sqrt(variance) / 0.87962566103423978
            found = truncated_normal(shape, 0.0, stddev, dtype, self._seed)
        return found


class UniformUnitScaling(Initializer):
    """Uniform numbers that keep the scale of the inputs: of variance factor**2 / inputs."""

    def __init__(self, factor: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        super().__init__(dtype)
        self._factor, self._seed = factor, seed

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        limit = math.sqrt(3 / max(1.0, float(math.prod(shape[:-1])))) * self._factor
        found: Tensor = random_uniform(shape, -limit, limit, dtype, self._seed)
        return found


class Orthogonal(Initializer):
    """A matrix with orthogonal rows or columns.

    Source: Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear
        neural networks", 2013, arXiv:1312.6120.
    """

    def __init__(self, gain: float = 1.0, seed: Any = None, dtype: Any = "float32") -> None:
        super().__init__(dtype)
        self._gain, self._seed = gain, seed

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        if len(shape) < 2:
            raise ValueError(f"Orthogonal: expected two axes or more, got {shape}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        drawn = random_normal([max(rows, columns), min(rows, columns)], 0.0, 1.0, dtype, self._seed)
        q, r = qr(drawn)
        q = q * ops.sign(diagonal(r))
        q = q if rows >= columns else ops.transpose(q)
        found: Tensor = ops.reshape(q, shape) * self._gain
        return found


class Identity(Initializer):
    """`gain` on the diagonal of a matrix."""

    def __init__(self, gain: float = 1.0, dtype: Any = "float32") -> None:
        super().__init__(dtype)
        self._gain = gain

    def value(self, shape: list[int], dtype: Any) -> Tensor:
        """See `Initializer`."""
        rows, columns = shape
        found: Tensor = creation.eye(rows, columns, dtype=dtype) * self._gain
        return found


def glorot_uniform(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Uniform, of variance 2 / (inputs + outputs)."""
    return VarianceScaling(1.0, "fan_avg", "uniform", seed, dtype)


def glorot_normal(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Normal, of variance 2 / (inputs + outputs)."""
    return VarianceScaling(1.0, "fan_avg", "truncated_normal", seed, dtype)


def he_uniform(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Uniform, of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "uniform", seed, dtype)


def he_normal(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Normal, of variance 2 / inputs."""
    return VarianceScaling(2.0, "fan_in", "truncated_normal", seed, dtype)


def lecun_uniform(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Uniform, of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "uniform", seed, dtype)


def lecun_normal(seed: Any = None, dtype: Any = "float32") -> VarianceScaling:
    """Normal, of variance 1 / inputs."""
    return VarianceScaling(1.0, "fan_in", "truncated_normal", seed, dtype)
