"""Batch, layer, group and root-mean-square normalization, with scale and offset.

Sources: Ioffe and Szegedy, "Batch Normalization", 2015, arXiv:1502.03167, algorithm 1; Ba, Kiros
    and Hinton, "Layer Normalization", 2016, arXiv:1607.06450, equation 3; Wu and He, "Group
    Normalization", 2018, arXiv:1803.08494, equations 1 to 7; Zhang and Sennrich, "Root Mean Square
    Layer Normalization", 2019, arXiv:1910.07467, equation 4.
"""

from __future__ import annotations

from typing import Any

from ...errors import ShapeError
from ...graph import Axes, Tensor, canonical_axes, int32
from ..array.axes import expand_dims, squeeze
from ..array.shape import dims_of, reshape, reshape_like
from ..core.basic import constant
from ..math.arithmetic import add, floor_divide, multiply, negative, square, subtract
from ..math.cast import cast
from ..math.elementary import rsqrt
from ..math.reduce import reduce_mean
from .normalize import normalize, rms_norm_op, statistics_dtype


def _rank(who: str, x: Tensor) -> int:
    if x.shape.rank is None:
        raise ShapeError(
            f"{who}: the number of axes of x must be known, got {x.spec}",
            remedy="give the tensor a shape (set_shape, or a full TensorSpec)",
        )
    return len(x.shape)


def _aligned(who: str, name: str, p: Tensor, kept: tuple[int, ...], rank: int) -> Tensor:
    """`p`, which has the axes `kept` of a tensor, with axes of size 1 for the others."""
    if p.shape.rank not in (None, len(kept)):
        raise ShapeError(
            f"{who}: {name} must have one axis for each of the axes {kept} of x, got {p.spec}"
        )
    if kept == tuple(range(rank - len(kept), rank)):
        return p
    return expand_dims(p, [axis for axis in range(rank) if axis not in kept])


def _affine(
    who: str,
    x: Tensor,
    scale: Tensor | None,
    offset: Tensor | None,
    kept: tuple[int, ...],
) -> tuple[Tensor, Tensor]:
    """Scale and offset, so that they broadcast to x; 1 and 0 where there is none."""
    rank = _rank(who, x)
    dtype = statistics_dtype(x.dtype)
    return (
        constant(1, dtype) if scale is None else _aligned(who, "scale", scale, kept, rank),
        constant(0, dtype) if offset is None else _aligned(who, "offset", offset, kept, rank),
    )


def batch_norm(
    x: Tensor,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-3,
) -> tuple[Tensor, Tensor, Tensor]:
    """Normalize each channel over all other axes; the form for training.

    Args:
        x: a floating tensor.
        scale: (channels,), of the dtype of `x` or float32; None for 1.
        offset: likewise; None for 0.
        axis: the axis of the channels, or several axes that stay apart.
        epsilon: added to the variance.

    Returns:
        (x - mean) / sqrt(variance + epsilon) * scale + offset, and the mean and biased variance of
        each channel, (channels,); those of half types are float32.

    Raises:
        ShapeError: scale or offset do not fit x.
    """
    rank = _rank("batch_norm", x)
    kept = tuple(sorted(canonical_axes("batch_norm", axis, rank)))
    axes = tuple(i for i in range(rank) if i not in kept)
    scale, offset = _affine("batch_norm", x, scale, offset, kept)
    y, mean, variance = normalize.many(x, scale, offset, axes=axes, epsilon=float(epsilon))
    return y, squeeze(mean, axes), squeeze(variance, axes)


def batch_norm_inference(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-3,
) -> Tensor:
    """Normalize each channel with a given mean and variance, (channels,) each; see `batch_norm`."""
    rank = _rank("batch_norm_inference", x)
    kept = tuple(sorted(canonical_axes("batch_norm_inference", axis, rank)))
    dtype = statistics_dtype(x.dtype)
    factor = rsqrt(add(cast(variance, dtype), constant(epsilon, dtype)))
    if scale is not None:
        factor = multiply(factor, cast(scale, dtype))
    shift = negative(multiply(cast(mean, dtype), factor))
    if offset is not None:
        shift = add(shift, cast(offset, dtype))
    factor, shift = (
        _aligned("batch_norm_inference", "a parameter", p, kept, rank) for p in (factor, shift)
    )
    return cast(add(multiply(cast(x, dtype), factor), shift), x.dtype)


def layer_norm(
    x: Tensor,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    *,
    axis: Axes = -1,
    epsilon: float = 1e-3,
) -> Tensor:
    """Normalize each example over `axis`.

    Args:
        x: a floating tensor.
        scale: of the size of `x` along `axis`, of the dtype of `x` or float32; None for 1.
        offset: likewise; None for 0.
        axis: the axis, or axes, over which mean and variance are taken.
        epsilon: added to the variance.

    Raises:
        ShapeError: scale or offset do not fit x.
    """
    axes = tuple(sorted(canonical_axes("layer_norm", axis, _rank("layer_norm", x))))
    scale, offset = _affine("layer_norm", x, scale, offset, axes)
    return normalize.many(x, scale, offset, axes=axes, epsilon=float(epsilon))[0]


def group_norm(
    x: Tensor,
    groups: int,
    scale: Tensor | None = None,
    offset: Tensor | None = None,
    *,
    epsilon: float = 1e-3,
) -> Tensor:
    """Normalize each example over the positions and the channels of each group.

    Args:
        x: (batch, ..., channels), floating.
        groups: into how many groups the channels are divided; as many as there are channels for
            instance normalization.
        scale: (channels,), of the dtype of `x` or float32; None for 1.
        offset: likewise; None for 0.
        epsilon: added to the variance.

    Raises:
        ShapeError: the channels cannot be divided so, or scale or offset do not fit.
    """
    rank = _rank("group_norm", x)
    channels = x.shape[-1]
    if rank < 2 or (channels is not None and (groups < 1 or channels % groups)):
        raise ShapeError(
            f"group_norm: the channels of x {x.spec} cannot be divided into {groups} groups",
            remedy="choose a number of groups that divides the number of channels",
        )
    shape, dims = dims_of(x)
    sizes: list[Any] = [dims.pop(0) if d is None else d for d in shape]
    if channels is None:
        sizes[-1] = floor_divide(sizes[-1], constant(groups, int32))
    else:
        sizes[-1] = channels // groups
    split = reshape(x, [*sizes[:-1], groups, sizes[-1]])
    axes = (*range(1, rank - 1), rank)
    scale, offset = _affine(
        "group_norm",
        split,
        None if scale is None else reshape(scale, [groups, -1]),
        None if offset is None else reshape(offset, [groups, -1]),
        (rank - 1, rank),
    )
    y = normalize.many(split, scale, offset, axes=axes, epsilon=float(epsilon))[0]
    return reshape_like(y, x)


def rms_norm(
    x: Tensor, scale: Tensor | None = None, *, axis: Axes = -1, epsilon: float = 1e-6
) -> Tensor:
    """x / sqrt(mean of x * x over `axis` + epsilon) * scale.

    Args:
        x: a floating tensor.
        scale: of the size of `x` along `axis`, of the dtype of `x` or float32; None for 1.
        axis: the axis, or axes, over which the mean is taken.
        epsilon: added to the mean square.

    Raises:
        ShapeError: scale does not fit x.
    """
    axes = tuple(sorted(canonical_axes("rms_norm", axis, _rank("rms_norm", x))))
    scale, _ = _affine("rms_norm", x, scale, None, axes)
    return rms_norm_op(x, scale, axes=axes, epsilon=float(epsilon))


def moments(x: Tensor, axis: Axes, *, keepdims: bool = False) -> tuple[Tensor, Tensor]:
    """The mean and the (biased) variance of `x` over `axis`, of the dtype of `x`.

    Half types are computed in float32; the variance is the mean of (x - mean) ** 2.
    """
    wide = cast(x, statistics_dtype(x.dtype))
    mean = reduce_mean(wide, axis, keepdims=True)
    variance = reduce_mean(square(subtract(wide, mean)), axis, keepdims=keepdims)
    if not keepdims:
        mean = squeeze(mean, axis)
    return cast(mean, x.dtype), cast(variance, x.dtype)
