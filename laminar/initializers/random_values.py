"""Random values, scaled to what comes into a unit and out of it.

A seeded initializer gives the same values at every call; one that holds a `SeedGenerator` gives new
ones. Without a seed it gets one from the process's own sequence of seeds, which starts anew with
`set_random_seed`: the same program makes the same weights.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Tensor, TensorShape

from .. import ops, random
from ..random.seeds import SeedLike
from ..serialization import deserialize_keras_object, serialize_keras_object
from ..settings import floatx
from ..typing import DTypeLike
from .initializer import Initializer

Axes = Sequence[int] | None

# The standard deviation of a standard normal number that is drawn again outside of [-2, 2].
_TRUNCATED_STDDEV = 0.87962566103423978


class RandomInitializer(Initializer):
    """Random values. Abstract.

    Args:
        seed: an int, a `SeedGenerator`, or None for a seed from the process's sequence.

    Examples:
        >>> issubclass(laminar.initializers.HeNormal, laminar.initializers.RandomInitializer)
        True
    """

    def __init__(self, seed: SeedLike | dict[str, Any] | None = None) -> None:
        self._given = seed
        self.seed: SeedLike
        if seed is None:
            self.seed = random.make_default_seed()
        elif isinstance(seed, dict):
            self.seed = deserialize_keras_object(
                seed, module_objects={"SeedGenerator": random.SeedGenerator}
            )
        elif isinstance(seed, int | np.integer | random.SeedGenerator):
            self.seed = seed
        else:
            raise InvalidArgumentError(
                f"{type(self).__name__}: seed must be an int or a SeedGenerator, got {seed!r}"
            )

    def get_config(self) -> dict[str, Any]:
        return {"seed": serialize_keras_object(self._given)}


class _Normal(RandomInitializer):
    """Numbers about a mean, with a standard deviation."""

    def __init__(
        self, mean: float = 0.0, stddev: float = 0.05, seed: SeedLike | None = None
    ) -> None:
        self.mean = mean
        self.stddev = stddev
        super().__init__(seed)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "mean": self.mean, "stddev": self.stddev}


class RandomNormal(_Normal):
    """Normal numbers.

    Args:
        mean: of the numbers.
        stddev: standard deviation.
        seed: see `RandomInitializer`.

    Examples:
        >>> w = laminar.initializers.RandomNormal(stddev=0.5, seed=1)((100, 200))
        >>> round(float(ops.std(w)), 1)
        0.5
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return random.normal(shape, self.mean, self.stddev, dtype, self.seed)


class TruncatedNormal(_Normal):
    """Normal numbers, drawn again where they lie more than two standard deviations off.

    Args:
        mean: of the numbers.
        stddev: standard deviation before truncation.
        seed: see `RandomInitializer`.

    Examples:
        >>> w = laminar.initializers.TruncatedNormal(stddev=0.5, seed=1)((100, 200))
        >>> bool(ops.max(ops.abs(w)) <= 1.0)
        True
    """

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return random.truncated_normal(shape, self.mean, self.stddev, dtype, self.seed)


class RandomUniform(RandomInitializer):
    """Uniform numbers.

    Args:
        minval: lower bound.
        maxval: upper bound, itself left out.
        seed: see `RandomInitializer`.

    Examples:
        >>> w = laminar.initializers.RandomUniform(-1.0, 1.0, seed=1)((100, 200))
        >>> bool(ops.all((w >= -1) & (w < 1)))
        True
    """

    def __init__(
        self, minval: float = -0.05, maxval: float = 0.05, seed: SeedLike | None = None
    ) -> None:
        self.minval = minval
        self.maxval = maxval
        super().__init__(seed)

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        return random.uniform(shape, self.minval, self.maxval, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "minval": self.minval, "maxval": self.maxval}


_MODES = ("fan_in", "fan_out", "fan_avg")
_DISTRIBUTIONS = ("truncated_normal", "untruncated_normal", "uniform")


class VarianceScaling(RandomInitializer):
    """Numbers of variance scale / n, where n counts the units on one side of the weights.

    Args:
        scale: of the variance.
        mode: "fan_in" (n inputs), "fan_out" (n outputs) or "fan_avg" (their mean).
        distribution: "truncated_normal" (the variance is that after truncation),
            "untruncated_normal" or "uniform".
        seed: see `RandomInitializer`.
        input_axes: the axes of the inputs, where they are not the usual ones.
        output_axes: the axes of the outputs.

    Examples:
        >>> w = laminar.initializers.VarianceScaling(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0101)
    """

    def __init__(
        self,
        scale: float = 1.0,
        mode: str = "fan_in",
        distribution: str = "truncated_normal",
        seed: SeedLike | None = None,
        input_axes: Axes = None,
        output_axes: Axes = None,
    ) -> None:
        if not isinstance(scale, int | float | np.number) or not 0 < scale <= sys.float_info.max:
            raise InvalidArgumentError(
                f"VarianceScaling: scale must be positive, a number, got {scale!r:.80}"
            )
        if mode not in _MODES:
            raise InvalidArgumentError(
                f"VarianceScaling: mode must be one of {', '.join(_MODES)}, got {mode!r}"
            )
        known = {name: name for name in _DISTRIBUTIONS} | {"normal": "truncated_normal"}
        distribution = known.get(str(distribution).lower(), str(distribution))
        if distribution not in known:
            raise InvalidArgumentError(
                f"VarianceScaling: distribution must be one of {', '.join(_DISTRIBUTIONS)}, "
                f"got {distribution!r}"
            )
        self.scale = scale
        self.mode = mode
        self.distribution = distribution
        self.input_axes = input_axes
        self.output_axes = output_axes
        super().__init__(seed)

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        fan_in, fan_out = compute_fans(shape, self.input_axes, self.output_axes)
        n = {"fan_in": fan_in, "fan_out": fan_out, "fan_avg": (fan_in + fan_out) / 2}[self.mode]
        variance = self.scale / max(1.0, n)
        if self.distribution == "truncated_normal":
            stddev = math.sqrt(variance) / _TRUNCATED_STDDEV
            return random.truncated_normal(shape, 0.0, stddev, dtype, self.seed)
        if self.distribution == "untruncated_normal":
            return random.normal(shape, 0.0, math.sqrt(variance), dtype, self.seed)
        limit = math.sqrt(3.0 * variance)
        return random.uniform(shape, -limit, limit, dtype, self.seed)

    def get_config(self) -> dict[str, Any]:
        return {
            **super().get_config(),
            "scale": self.scale,
            "mode": self.mode,
            "distribution": self.distribution,
            "input_axes": self.input_axes,
            "output_axes": self.output_axes,
        }


class _Scaled(VarianceScaling):
    """A `VarianceScaling` with a name: only seed and axes are free."""

    def get_config(self) -> dict[str, Any]:
        config = super().get_config()
        return {key: config[key] for key in ("seed", "input_axes", "output_axes")}


class GlorotUniform(_Scaled):
    """Uniform numbers of variance 2 / (fan_in + fan_out).

    They lie between -l and l, l = sqrt(6 / (fan_in + fan_out)).
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", 2010, equation 16.

    Examples:
        >>> w = laminar.initializers.GlorotUniform(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0066)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(1.0, "fan_avg", "uniform", seed, input_axes, output_axes)


class GlorotNormal(_Scaled):
    """Truncated normal numbers of variance 2 / (fan_in + fan_out).

    None is further from 0 than two standard deviations of the normal distribution that is cut.
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural
        networks", 2010, equation 12.

    Examples:
        >>> w = laminar.initializers.GlorotNormal(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0067)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(1.0, "fan_avg", "truncated_normal", seed, input_axes, output_axes)


class LecunNormal(_Scaled):
    """Truncated normal numbers of variance 1 / fan_in.

    None is further from 0 than two standard deviations of the normal distribution that is cut.
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: LeCun et al., "Efficient BackProp", 1998, section 4.6.

    Examples:
        >>> w = laminar.initializers.LecunNormal(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0101)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(1.0, "fan_in", "truncated_normal", seed, input_axes, output_axes)


class LecunUniform(_Scaled):
    """Uniform numbers of variance 1 / fan_in.

    They lie between -l and l, l = sqrt(3 / fan_in).
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: LeCun et al., "Efficient BackProp", 1998, section 4.6.

    Examples:
        >>> w = laminar.initializers.LecunUniform(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0099)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(1.0, "fan_in", "uniform", seed, input_axes, output_axes)


class HeNormal(_Scaled):
    """Truncated normal numbers of variance 2 / fan_in.

    None is further from 0 than two standard deviations of the normal distribution that is cut.
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: He et al., "Delving deep into rectifiers", 2015, arXiv:1502.01852, equation 10.

    Examples:
        >>> w = laminar.initializers.HeNormal(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0202)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(2.0, "fan_in", "truncated_normal", seed, input_axes, output_axes)


class HeUniform(_Scaled):
    """Uniform numbers of variance 2 / fan_in.

    They lie between -l and l, l = sqrt(6 / fan_in).
    fan_in and fan_out are the numbers of inputs and outputs of a unit, see `compute_fans`.

    Args:
        seed: a whole number, or a SeedGenerator; the same numbers come again with the same number.
        input_axes: the axes of a kernel that are inputs, used when both are given.
        output_axes: the axes that are outputs.

    Source: He et al., "Delving deep into rectifiers", 2015, arXiv:1502.01852, equation 10.

    Examples:
        >>> w = laminar.initializers.HeUniform(seed=1)((100, 200))
        >>> w.shape, round(float(ops.var(w)), 4)
        ((100, 200), 0.0198)
    """

    def __init__(
        self, seed: SeedLike | None = None, input_axes: Axes = None, output_axes: Axes = None
    ) -> None:
        super().__init__(2.0, "fan_in", "uniform", seed, input_axes, output_axes)


class Orthogonal(RandomInitializer):
    """A random matrix with orthonormal columns (or rows, where these are fewer).

    A shape with more axes is that of a matrix (product of all but the last, last).

    Args:
        gain: factor of the matrix.
        seed: see `RandomInitializer`.

    Source: Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in
        deep linear neural networks", 2014, arXiv:1312.6120.

    Examples:
        >>> q = laminar.initializers.Orthogonal(seed=1)((2, 2))
        >>> ops.matmul(q, ops.transpose(q)).numpy().round(3) + 0.0
        array([[1., 0.],
               [0., 1.]], dtype=float32)
    """

    def __init__(self, gain: float = 1.0, seed: SeedLike | None = None) -> None:
        self.gain = gain
        super().__init__(seed)

    def __call__(self, shape: Sequence[int], dtype: DTypeLike | None = None) -> Tensor:
        if len(shape) < 2:
            raise ShapeError(f"Orthogonal: expected at least two axes, got {tuple(shape)}")
        rows, columns = math.prod(shape[:-1]), shape[-1]
        wide = "float64" if dtype == "float64" else "float32"  # what factors are computed in
        numbers = random.normal((max(rows, columns), min(rows, columns)), 0, 1, wide, self.seed)
        q, r = ops.qr(numbers)
        # With a positive diagonal of r the factors are unique, and q is uniformly distributed.
        q = ops.multiply(q, ops.sign(ops.diagonal(r)))
        if rows < columns:
            q = ops.transpose(q)
        matrix = ops.multiply(ops.reshape(q, shape), self.gain)
        return ops.cast(matrix, floatx() if dtype is None else dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "gain": self.gain}


def compute_fans(
    shape: Sequence[int], input_axes: Axes = None, output_axes: Axes = None
) -> tuple[int, int]:
    """The numbers of inputs and outputs of a unit, for weights of `shape`.

    Args:
        shape: (inputs, outputs), or (*window, inputs, outputs) of a convolution.
        input_axes: the axes of the inputs, used when both are given.
        output_axes: the axes of the outputs.

    Returns:
        (fan_in, fan_out): the product of the sizes of the window and of the inputs, or of the
        outputs.

    Raises:
        ShapeError: the axes are none of `shape`.

    Examples:
        >>> laminar.initializers.compute_fans((3, 3, 16, 32))  # a kernel of a convolution
        (144, 288)
    """
    if input_axes is not None and output_axes is not None:
        for axes in (input_axes, output_axes):
            if not isinstance(axes, Sequence) or not set(axes) <= set(
                range(-len(shape), len(shape))
            ):
                raise ShapeError(
                    f"an initializer of weights of shape {TensorShape(shape)}: expected axes of "
                    f"that shape, got input_axes={input_axes!r}, output_axes={output_axes!r}"
                )
        return (
            math.prod(shape[axis] for axis in input_axes),
            math.prod(shape[axis] for axis in output_axes),
        )
    if not shape:
        return 1, 1
    if len(shape) == 1:
        return int(shape[0]), int(shape[0])
    window = math.prod(shape[:-2])
    return int(shape[-2] * window), int(shape[-1] * window)
