"""The ops of normalization: numbers brought to mean 0 and variance 1, or to mean square 1.

Batch, layer, group and instance normalization are one op, Normalize: they differ in the axes over
which the statistics are taken, and in the shape of scale and offset. Half types are computed in
float32, the variance in two passes (the mean first), so that a large mean does not swallow it.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...errors import DTypeError, ShapeError
from ...graph import (
    FLOATING,
    Array,
    DType,
    OpView,
    Tensor,
    TensorSpec,
    bfloat16,
    broadcast_shapes,
    canonical_axes,
    float16,
    float32,
)
from ..array.broadcast import broadcast_like, sum_to
from ..array.shape import size_of
from ..core.arrays import computing_dtype
from ..core.basic import constant
from ..core.op_def import Grads
from ..core.registry import define
from ..math.arithmetic import add, divide, multiply, negative, square, subtract
from ..math.cast import cast
from ..math.elementary import rsqrt
from ..math.reduce import reduce_mean


def statistics_dtype(dtype: DType) -> DType:
    """The type of the mean and variance of numbers of type `dtype`."""
    return float32 if dtype in (float16, bfloat16) else dtype


def _check(who: str, x: TensorSpec, axes: tuple[int, ...], **parameters: TensorSpec) -> None:
    for name, p in parameters.items():
        wide = statistics_dtype(x.dtype)
        if p.dtype not in (x.dtype, wide):
            either = f"{x.dtype}" if wide == x.dtype else f"{x.dtype} or {wide}"
            raise DTypeError(
                f"{who}: {name} must be {either} for x {x}, got {p}", remedy="cast one of them"
            )
        if not broadcast_shapes(who, x.shape, p.shape).is_compatible_with(x.shape):
            raise ShapeError(f"{who}: {name} {p} does not broadcast to x {x}")
    if x.shape.rank is not None:
        canonical_axes(who, axes, len(x.shape))


@define(
    "Normalize",
    dtypes={"x": FLOATING, "scale": FLOATING, "offset": FLOATING},
    same_dtype=False,
)
def normalize(
    x: TensorSpec,
    scale: TensorSpec,
    offset: TensorSpec,
    *,
    axes: tuple[int, ...],
    epsilon: float,
) -> tuple[TensorSpec, ...]:
    """y = (x - mean) / sqrt(variance + epsilon) * scale + offset; and mean and variance.

    The mean and the (biased) variance are taken over `axes`, which stay with size 1; scale and
    offset broadcast to x.
    """
    _check("Normalize", x, axes, scale=scale, offset=offset)
    dtype = statistics_dtype(x.dtype)
    if x.shape.rank is None:
        return x, TensorSpec(None, dtype), TensorSpec(None, dtype)
    over = canonical_axes("Normalize", axes, len(x.shape))
    kept = [1 if i in over else d for i, d in enumerate(x.shape)]
    return x, TensorSpec(kept, dtype), TensorSpec(kept, dtype)


@define(
    "NormalizeGrad",
    dtypes=dict.fromkeys(("x", "scale", "mean", "variance", "dy"), FLOATING),
    same_dtype=False,
)
def _normalize_grad_op(
    x: TensorSpec,
    scale: TensorSpec,
    mean: TensorSpec,
    variance: TensorSpec,
    dy: TensorSpec,
    *,
    axes: tuple[int, ...],
    epsilon: float,
) -> tuple[TensorSpec, ...]:
    """dx and dscale of Normalize: with r = 1 / sqrt(variance + epsilon), h = (x - mean) * r,
    g = dy * scale and M the mean over `axes`,

        dx = r * (g - M(g) - h * M(g * h)),   dscale = sum of dy * h where scale was repeated.
    """
    return x, TensorSpec(scale.shape, scale.dtype)


def _mean(xp: Any, x: Array, axes: tuple[int, ...]) -> Array:
    """The mean over `axes`, one axis at a time: float32 then sums few terms in a row."""
    count = math.prod(x.shape[axis] for axis in axes)
    for axis in sorted((axis % x.ndim for axis in axes), reverse=True):
        x = xp.sum(x, axis=axis, keepdims=True)
    return x / x.dtype.type(count)


def _sum_to(xp: Any, x: Array, shape: tuple[int, ...]) -> Array:
    lead = x.ndim - len(shape)
    for axis in range(x.ndim - 1, -1, -1):
        if axis < lead or (shape[axis - lead] == 1 and x.shape[axis] != 1):
            x = xp.sum(x, axis=axis, keepdims=True)
    return x.reshape(shape)


@normalize.reference
def _normalize_kernel(
    xp: Any,
    x: Array,
    scale: Array,
    offset: Array,
    *,
    axes: tuple[int, ...],
    epsilon: float,
) -> tuple[Array, Array, Array]:
    dtype = computing_dtype(xp, x)
    wide = x.astype(dtype, copy=False)
    mean = _mean(xp, wide, axes)
    y = wide - mean
    variance = _mean(xp, y * y, axes)
    factor = 1 / xp.sqrt(variance + epsilon)
    scale = scale.astype(dtype, copy=False)
    if np.broadcast_shapes(factor.shape, scale.shape) == mean.shape:
        y *= factor * scale
    else:
        y *= factor
        y *= scale
    y += offset.astype(dtype, copy=False)
    return y.astype(x.dtype, copy=False), mean, variance


@_normalize_grad_op.reference
def _normalize_grad_kernel(
    xp: Any,
    x: Array,
    scale: Array,
    mean: Array,
    variance: Array,
    dy: Array,
    *,
    axes: tuple[int, ...],
    epsilon: float,
) -> tuple[Array, Array]:
    dtype = computing_dtype(xp, x)
    r = 1 / xp.sqrt(variance + epsilon)
    h = (x.astype(dtype, copy=False) - mean) * r
    g = dy.astype(dtype, copy=False)
    products = g * h
    dscale = _sum_to(xp, products, scale.shape).astype(scale.dtype, copy=False)
    wide = scale.astype(dtype, copy=False)
    products *= wide
    h *= _mean(xp, products, axes)
    dx = g * wide
    h += _mean(xp, dx, axes)
    dx -= h
    dx *= r
    return dx.astype(x.dtype, copy=False), dscale


@normalize.grad
def _normalize_grad(
    op: OpView, dy: Tensor | None, dmean: Tensor | None, dvariance: Tensor | None
) -> Grads:
    x, scale, offset = op.inputs
    _, mean, variance = op.outputs
    dx: Tensor | None = None
    dscale: Tensor | None = None
    doffset: Tensor | None = None
    if dy is not None:
        dx, dscale = _normalize_grad_op.many(x, scale, mean, variance, dy, **op.attrs)
        doffset = cast(sum_to(cast(dy, mean.dtype), offset), offset.dtype)
    for more in _statistics_grads(x, mean, dmean, dvariance):
        dx = more if dx is None else add(dx, more)
    return dx, dscale, doffset


def _statistics_grads(
    x: Tensor,
    mean: Tensor,
    dmean: Tensor | None,
    dvariance: Tensor | None,
) -> list[Tensor]:
    """What reaches x through its mean (dmean / N) and its variance (2 (x - mean) dvariance / N)."""
    found = []
    wide = cast(x, mean.dtype)
    if dmean is not None:
        found.append(_shared(dmean, wide))
    if dvariance is not None:
        centred = subtract(wide, mean)
        found.append(multiply(add(centred, centred), _shared(dvariance, wide)))
    return [cast(dx, x.dtype) for dx in found]


def _portion(x: Tensor, mean: Tensor) -> Tensor:
    """1 / N, when each number of `mean` is the mean of N numbers of `x`."""
    total, means = x.shape.num_elements(), mean.shape.num_elements()
    if total and means:
        return constant(means / total, mean.dtype)
    return divide(cast(size_of(mean), mean.dtype), cast(size_of(x), mean.dtype))


def _shared(dmean: Tensor, x: Tensor) -> Tensor:
    """The gradient for x of its mean: dmean / N for each element."""
    return broadcast_like(multiply(dmean, _portion(x, dmean)), x)


def _mean_like(x: Tensor, mean: Tensor) -> Tensor:
    """The mean of x over the axes along which `mean` has size 1."""
    return multiply(sum_to(x, mean), _portion(x, mean))


@_normalize_grad_op.grad
def _normalize_grad_grad(op: OpView, ddx: Tensor | None, ddscale: Tensor | None) -> Grads:
    """Of dx = r * q and dscale = sum(dy * h), with q = g - a - h * b, a = M(g), b = M(g * h)."""
    mean = op.inputs[2]
    x, scale, _, variance, dy = (cast(t, mean.dtype) for t in op.inputs)
    r = rsqrt(add(variance, constant(op.attrs["epsilon"], mean.dtype)))
    centred = subtract(x, mean)
    h = multiply(centred, r)
    d_dy = d_h = d_scale = d_r = None
    if ddx is not None:
        u = cast(ddx, mean.dtype)
        g = multiply(dy, scale)
        b = _mean_like(multiply(g, h), mean)
        q = subtract(subtract(g, _mean_like(g, mean)), multiply(h, b))
        e = multiply(u, r)  # for q
        k = _mean_like(multiply(e, h), mean)
        d_g = subtract(subtract(e, _mean_like(e, mean)), multiply(h, k))
        d_dy = multiply(d_g, scale)
        d_scale = sum_to(multiply(d_g, dy), scale)
        d_h = negative(add(multiply(e, b), multiply(g, k)))
        d_r = sum_to(multiply(u, q), r)
    if ddscale is not None:
        v = cast(ddscale, mean.dtype)
        d_dy = _plus(d_dy, broadcast_like(multiply(v, h), dy))
        d_h = _plus(d_h, broadcast_like(multiply(v, dy), h))
    assert d_h is not None  # one of the two has come
    d_x = multiply(d_h, r)
    d_r = _plus(d_r, sum_to(multiply(d_h, centred), r))
    d_variance = multiply(multiply(d_r, constant(-0.5, r.dtype)), multiply(r, square(r)))
    d_mean = negative(sum_to(d_x, mean))
    return [
        None if d is None else cast(d, t.dtype)
        for d, t in zip((d_x, d_scale, d_mean, d_variance, d_dy), op.inputs, strict=True)
    ]


def _plus(a: Tensor | None, b: Tensor) -> Tensor:
    return b if a is None else add(a, b)


@define("RMSNorm", dtypes={"x": FLOATING, "scale": FLOATING}, same_dtype=False)
def rms_norm_op(
    x: TensorSpec, scale: TensorSpec, *, axes: tuple[int, ...], epsilon: float
) -> TensorSpec:
    """y = x / sqrt(mean of x * x over `axes` + epsilon) * scale."""
    _check("RMSNorm", x, axes, scale=scale)
    return x


@rms_norm_op.reference
def _rms_norm_kernel(
    xp: Any, x: Array, scale: Array, *, axes: tuple[int, ...], epsilon: float
) -> Array:
    wide = x.astype(computing_dtype(xp, x), copy=False)
    y = wide / xp.sqrt(_mean(xp, wide * wide, axes) + epsilon)
    y *= scale.astype(y.dtype, copy=False)
    return y.astype(x.dtype, copy=False)


@rms_norm_op.grad
def _rms_norm_grad(op: OpView, dy: Tensor) -> Grads:
    axes = op.attrs["axes"]
    dtype = statistics_dtype(dy.dtype)
    x, scale, dy = (cast(t, dtype) for t in (*op.inputs, dy))
    power = reduce_mean(square(x), axes, keepdims=True)
    r = rsqrt(add(power, constant(op.attrs["epsilon"], dtype)))
    h = multiply(x, r)
    g = multiply(dy, scale)
    dx = multiply(r, subtract(g, multiply(h, reduce_mean(multiply(g, h), axes, keepdims=True))))
    dscale = sum_to(multiply(dy, h), scale)
    return cast(dx, op.inputs[0].dtype), cast(dscale, op.inputs[1].dtype)
