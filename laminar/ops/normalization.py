"""Normalization: by statistics, by length, by mean square."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor, canonical_axes
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.math import arithmetic, reduce
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import power, rsqrt
from laminar.engine.ops.nn import normalization as engine
from laminar.engine.ops.nn.normalize import statistics_dtype
from laminar.settings import epsilon as default_epsilon

from ..typing import TensorLike
from .arguments import floating, tensor
from .recording import public

__all__ = [
    "batch_normalization",
    "layer_normalization",
    "moments",
    "normalize",
    "rms_normalization",
]

Axes = int | Sequence[int]


def _parameter(p: Any, x: Tensor) -> Tensor | None:
    """A parameter of a normalization: of the type of `x`, or float32 for halves."""
    if p is None:
        return None
    p = tensor(p)
    return p if p.dtype in (x.dtype, statistics_dtype(x.dtype)) else cast(p, x.dtype)


@public
def batch_normalization(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    axis: Axes,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    epsilon: float = 1e-3,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, for each channel.

    Args:
        x: any floating tensor.
        mean: (channels,), of the size of `x` along `axis`.
        variance: likewise.
        axis: the axis of the channels.
        offset: likewise; None for 0.
        scale: likewise; None for 1.
        epsilon: added to the variance.

    Returns:
        Shape and float type of `x`; integers give the default float.

    Raises:
        ShapeError: the axis does not exist, or a parameter has not its size.

    Source: Ioffe and Szegedy, "Batch Normalization", 2015, arXiv:1502.03167, algorithm 1.

    Examples:
        >>> x = np.array([[1.0, 10.0], [3.0, 30.0]])
        >>> ops.batch_normalization(x, [2.0, 20.0], [1.0, 100.0], axis=-1, epsilon=0.0)
        Tensor([[-1., -1.],
                [ 1.,  1.]], shape=(2, 2), dtype=float64)
    """
    x = floating(x)
    average, spread, factor, shift = (_parameter(p, x) for p in (mean, variance, scale, offset))
    assert average is not None
    assert spread is not None
    return engine.batch_norm_inference(
        x, average, spread, factor, shift, axis=axis, epsilon=epsilon
    )


@public
def layer_normalization(
    x: TensorLike,
    gamma: TensorLike | None = None,
    beta: TensorLike | None = None,
    axis: Axes = -1,
    epsilon: float | None = None,
    rms_scaling: bool = False,
) -> Tensor:
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, with the statistics over `axis`.

    Args:
        x: any floating tensor.
        gamma: of the size of `x` along `axis`, or of a shape that broadcasts; None for 1.
        beta: likewise; None for 0.
        axis: one axis or several.
        epsilon: added to the variance, by default `laminar.config.epsilon()`.
        rms_scaling: whether it is x / sqrt(variance + epsilon) * gamma instead, as older files of
            Keras have it; see `rms_normalization` for what the name says.

    Returns:
        Shape and float type of `x`; integers give the default float.

    Raises:
        ShapeError: an axis does not exist, or a parameter does not broadcast.

    Source: Ba, Kiros and Hinton, "Layer Normalization", 2016, arXiv:1607.06450, equation 3.

    Examples:
        >>> ops.layer_normalization([[1.0, 2.0, 3.0]], epsilon=0.0)
        Tensor([[-1.2247,  0.    ,  1.2247]], shape=(1, 3), dtype=float32)
    """
    x = floating(x)
    found = default_epsilon() if epsilon is None else epsilon
    scale, offset = _parameter(gamma, x), _parameter(beta, x)
    if rms_scaling:
        return _by_variance(x, scale, axis, found)
    if not (_fits(scale, axis) and _fits(offset, axis)):
        y = engine.layer_norm(x, None, None, axis=axis, epsilon=found)
        y = y if scale is None else arithmetic.multiply(y, scale)
        return y if offset is None else arithmetic.add(y, offset)
    return engine.layer_norm(x, scale, offset, axis=axis, epsilon=found)


def _fits(parameter: Tensor | None, axis: Axes) -> bool:
    """Whether a parameter has an axis for each of `axis`, rather than any shape that broadcasts."""
    axes = 1 if isinstance(axis, int) else len(tuple(axis))
    return parameter is None or parameter.shape.rank == axes


def _by_variance(x: Tensor, scale: Tensor | None, axis: Axes, epsilon: float) -> Tensor:
    """x / sqrt(variance + epsilon) * scale, the variance taken over `axis`."""
    wide = cast(x, statistics_dtype(x.dtype))
    _, variance = engine.moments(wide, axis, keepdims=True)
    y = arithmetic.multiply(wide, rsqrt(arithmetic.add(variance, tensor(epsilon, wide.dtype))))
    if scale is not None:
        axes = canonical_axes("layer_normalization", axis, len(x.shape))
        shape = [d if i in axes else 1 for i, d in enumerate(x.shape)]
        y = arithmetic.multiply(y, reshape(cast(scale, wide.dtype), shape))
    return cast(y, x.dtype)


@public
def rms_normalization(
    x: TensorLike, scale: TensorLike | None = None, axis: Axes = -1, epsilon: float | None = None
) -> Tensor:
    """x / sqrt(mean of x**2 over `axis` + epsilon) * scale.

    Args:
        x: any floating tensor.
        scale: of the size of `x` along `axis`, or of a shape that broadcasts; None for 1.
        axis: one axis or several.
        epsilon: added to the mean square, by default `laminar.config.epsilon()`.

    Returns:
        Shape and float type of `x`; integers give the default float.

    Raises:
        ShapeError: an axis does not exist, or `scale` does not broadcast.

    Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019, arXiv:1910.07467,
        equation 4.

    Examples:
        >>> ops.rms_normalization([[3.0, 4.0]], epsilon=0.0)
        Tensor([[0.8485, 1.1314]], shape=(1, 2), dtype=float32)
    """
    x = floating(x)
    found = default_epsilon() if epsilon is None else epsilon
    factors = _parameter(scale, x)
    if factors is None or _fits(factors, axis):
        return engine.rms_norm(x, factors, axis=axis, epsilon=found)
    return arithmetic.multiply(engine.rms_norm(x, None, axis=axis, epsilon=found), factors)


@public
def moments(
    x: TensorLike, axes: Axes, keepdims: bool = False, synchronized: bool = False
) -> tuple[Tensor, Tensor]:
    """The mean and the (biased) variance of `x` over `axes`.

    Args:
        x: any floating tensor; half types are computed in float32.
        axes: one axis or several.
        keepdims: whether the axes stay, with size 1.
        synchronized: whether replicas share their statistics; must be false here.

    Returns:
        Mean and variance, in the shape of `x` without `axes`, or with size 1 there, and in its
        float type.

    Raises:
        ShapeError: an axis does not exist.
        InvalidArgumentError: `synchronized` is true.

    Examples:
        >>> ops.moments([[1.0, 2.0], [3.0, 6.0]], axes=[0])
        (Tensor([2., 4.], shape=(2,), dtype=float32), Tensor([1., 4.], shape=(2,), dtype=float32))
    """
    if synchronized:
        raise InvalidArgumentError(
            "moments: statistics are shared by replicas in layers only",
            remedy="use BatchNormalization(synchronized=True)",
        )
    x = floating(x)
    mean, variance = engine.moments(x, axes, keepdims=keepdims)
    if x.dtype == "float16":  # beyond 65504 it would be infinite
        most = tensor(65504.0, x.dtype)
        mean, variance = (
            arithmetic.minimum(arithmetic.maximum(y, arithmetic.negative(most)), most)
            for y in (mean, variance)
        )
    return mean, variance


@public
def normalize(
    x: TensorLike, axis: Axes = -1, order: int = 2, epsilon: float | None = None
) -> Tensor:
    """x / max(length of x along `axis`, epsilon).

    Args:
        x: any tensor.
        axis: one axis or several.
        order: p of the length (sum of |x|**p)**(1/p), at least 1.
        epsilon: the least divisor, by default `laminar.config.epsilon()`.

    Returns:
        Shape and float type of `x`; integers give the default float, and zeros stay.

    Raises:
        ShapeError: an axis does not exist.
        InvalidArgumentError: an order below 1.

    Examples:
        >>> ops.normalize([[3.0, 4.0]])
        Tensor([[0.6, 0.8]], shape=(1, 2), dtype=float32)
    """
    if not isinstance(order, int) or order < 1:
        raise InvalidArgumentError(
            f"normalize: order must be a whole number of at least 1, got {order!r}"
        )
    given = floating(x)
    dtype = statistics_dtype(given.dtype)  # float16 cannot hold the square of epsilon
    x = cast(given, dtype)
    least = default_epsilon() if epsilon is None else epsilon
    if order == 2:
        total = reduce.reduce_sum(arithmetic.square(x), axis, keepdims=True)
        inverse = rsqrt(arithmetic.maximum(total, tensor(least * least, dtype)))
        return cast(arithmetic.multiply(x, inverse), given.dtype)
    powers = power(arithmetic.absolute(x), tensor(float(order), dtype))
    total = reduce.reduce_sum(powers, axis, keepdims=True)
    length = power(total, tensor(1 / order, dtype))
    scaled = arithmetic.divide(x, arithmetic.maximum(length, tensor(least, dtype)))
    return cast(scaled, given.dtype)
