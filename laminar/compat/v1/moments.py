"""`tf.nn`: means and variances, and batches normalized by them."""

from __future__ import annotations

from typing import Any

import numpy as np

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast

from .adapting import v1
from .maths import reduce_mean, reduce_sum
from .values import dims_of, static, symbol, tensor


@v1(keepdims="keep_dims")
def sufficient_statistics(x: Any, axes: Any, shift: Any = None, keep_dims: bool = False) -> Any:
    """(how many numbers there are, their sum, the sum of their squares, shift): of x - shift."""
    given = tensor(x)
    over = [int(a) for a in np.ravel(static(axes))]
    sizes = [dims_of(given)[a] for a in over]
    count: Any = 1
    for size in sizes:
        count = count * size
    moved = given if shift is None else given - tensor(shift, given.dtype)
    sums = [reduce_sum(y, over, keepdims=keep_dims) for y in (moved, moved * moved)]
    number = symbol(cast(symbol(count), given.dtype))
    return number, *sums, None if shift is None else tensor(shift, given.dtype)


@v1()
def normalize_moments(counts: Any, mean_ss: Any, variance_ss: Any, shift: Any) -> Any:
    """(mean, variance) of what `sufficient_statistics` gives."""
    count = tensor(counts)
    shifted = tensor(mean_ss) / count
    mean = shifted if shift is None else shifted + tensor(shift, shifted.dtype)
    return mean, tensor(variance_ss) / count - shifted * shifted


@v1(keepdims="keep_dims")
def weighted_moments(
    x: Any, axes: Any, frequency_weights: Any, keep_dims: bool | None = None
) -> Any:
    """(mean, variance) over some axes, where each number counts as often as its weight says."""
    given = tensor(x)
    weights = cast(tensor(frequency_weights), given.dtype)
    over = [int(a) for a in np.ravel(static(axes))]
    whole = weights + lookup("ZerosLike")(given)
    total = reduce_sum(whole, over, keepdims=True)
    mean = lookup("DivNoNan")(reduce_sum(whole * given, over, keepdims=True), total)
    apart = given - mean
    variance = lookup("DivNoNan")(reduce_sum(whole * apart * apart, over, keepdims=True), total)
    if keep_dims:
        return mean, variance
    places = tuple(a % len(given.shape) for a in over)
    return tuple(lookup("Squeeze")(y, axis=places) for y in (mean, variance))


@v1(input="t", mean="m", variance="v")
def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
) -> Any:
    """(t - m) / sqrt(v + epsilon), times gamma where that is asked for, plus beta."""
    x, variance = tensor(t), tensor(v)
    factor = 1.0 / ops.sqrt(variance + tensor(variance_epsilon, variance.dtype))
    if scale_after_normalization:
        factor = factor * tensor(gamma)
    return (x - tensor(m)) * factor + tensor(beta)


@v1()
def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
) -> tuple[Any, Any, Any]:
    """(y, mean, variance): scale * (x - mean) / sqrt(variance + epsilon) + offset, by channels.

    Args:
        x: (batch, h, w, c), or by data_format (batch, c, h, w).
        scale, offset: (c).
        mean, variance: (c); where is_training, those of the batch are taken.
        epsilon: added to the variance.
        data_format: "NHWC" or "NCHW".
        is_training: whether this is a step of training; the variance that is returned is then
            that of the numbers behind the batch: n / (n - 1) of the batch's own.
    """
    if data_format not in ("NHWC", "NCHW"):
        raise ValueError(f"fused_batch_norm: data_format is NHWC or NCHW, got {data_format!r}")
    given = symbol(x)
    if given.shape.rank not in (4, None):
        raise InvalidArgumentError(f"fused_batch_norm: images have 4 axes, got {given.spec}")
    wide = cast(given, "float32") if given.dtype.size < 4 else given
    channels = 3 if data_format == "NHWC" else 1
    over = [a for a in range(4) if a != channels]
    shape = [-1 if a == channels else 1 for a in range(4)]

    def column(values: Any) -> Any:
        return ops.reshape(cast(tensor(values), wide.dtype), shape)

    if is_training:
        center = reduce_mean(wide, over, keepdims=True)
        spread = reduce_mean(lookup("Square")(wide - center), over, keepdims=True)
        sizes = [dims_of(wide)[a] for a in over]
        count = cast(symbol(sizes[0] * sizes[1] * sizes[2]), wide.dtype)
        behind = spread * (count / ops.maximum(count - 1.0, 1.0))
        found = [ops.reshape(y, (-1,)) for y in (center, behind)]
    else:
        if mean is None or variance is None:
            raise ValueError("fused_batch_norm: give mean and variance, where is_training=False")
        center, spread = column(mean), column(variance)
        found = [tensor(mean), tensor(variance)]
    least = max(float(epsilon), 1.001e-5)
    y = (wide - center) / ops.sqrt(spread + least) * column(scale) + column(offset)
    return cast(y, given.dtype), found[0], found[1]


@v1()
def log_poisson_loss(targets: Any, log_input: Any, compute_full_loss: bool = False) -> Any:
    """exp(c) - z * c, of the logarithm c of the mean and counts z.

    With `compute_full_loss`, z * log(z) - z + log(2 * pi * z) / 2 is added where z > 1: Stirling's
    form of log(z!).
    """
    z, c = tensor(targets), tensor(log_input)
    if not z.shape.is_compatible_with(c.shape):
        raise ValueError(f"log_poisson_loss: targets are {z.shape}, log_input {c.shape}")
    loss = ops.exp(c) - c * z
    if not compute_full_loss:
        return loss
    inside = ops.where(z > 1.0, z, lookup("OnesLike")(z))
    stirling = inside * ops.log(inside) - inside + 0.5 * ops.log(2.0 * np.pi * inside)
    return loss + ops.where(z > 1.0, stirling, lookup("ZerosLike")(z))
