"""Reductions, and what is made of them: softmax, cross-entropies, normalization."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from typing import Any

from ....graph import DType, bool_, float32, float64, int32
from ...ir.builder import Builder, truth
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Size, View
from .table import Lowered, lowers


def _axes(b: Builder, step: Lowered, x: Operand) -> list[int]:
    rank = len(b.shape(x))
    axis = step.attrs["axis"]
    return list(range(rank)) if axis is None else [a % rank for a in axis]


def _needs_float(dtype: DType) -> None:
    if dtype not in (float32, float64):
        raise NotLoweredError(f"no native code for {dtype} here")


@lowers("All", "Any", takes_halves=True)
def _truths(b: Builder, step: Lowered, x: Operand) -> Operand:
    if b.dtype(x) != bool_:
        x = b.map(truth, [x], bool_)
    return _reduced(b, step, x)


@lowers("Max", "Min", takes_halves=True)
def _extreme(b: Builder, step: Lowered, x: Operand) -> Operand:
    if 0 in b.shape(x):
        raise NotLoweredError(f"{step.type} of nothing")
    return _total(b, step, x)


@lowers("Sum", "Prod")
def _total(b: Builder, step: Lowered, x: Operand) -> Operand:
    dtype = b.dtype(x)
    if dtype == bool_ or dtype != step.dtypes[0]:
        raise NotLoweredError(f"{step.type} of {dtype}")
    return _reduced(b, step, x)


def _reduced(b: Builder, step: Lowered, x: Operand) -> Operand:
    """The builder calls its reductions as the ops are called, in lower case."""
    return b.reduce(step.type.lower(), x, _axes(b, step, x), keepdims=step.attrs["keepdims"])


@lowers("AddN")
def _add_n(b: Builder, step: Lowered, *xs: Operand) -> Operand:
    if any(b.shape(x) != b.shape(xs[0]) for x in xs):
        raise NotLoweredError(f"AddN of {[b.shape(x) for x in xs]}")
    return b.compute(lambda s, *ys: functools.reduce(operator.add, ys), *xs)


@lowers("Mean")
def _mean(b: Builder, step: Lowered, x: Operand) -> Operand:
    _needs_float(b.dtype(x))
    return mean_of(b, x, _axes(b, step, x), keepdims=step.attrs["keepdims"])


def mean_of(b: Builder, x: Operand, axes: Sequence[int], *, keepdims: bool = True) -> Operand:
    """The mean over axes."""
    dtype = b.dtype(x)
    total = b.reduce("sum", x, axes, keepdims=keepdims)
    count = Size(math.prod(b.shape(x)[a] for a in axes), dtype)
    return b.compute(lambda s, t, n: t / n, total, count, dtype=dtype)


@lowers("Variance")
def _variance(b: Builder, step: Lowered, x: Operand) -> Operand:
    _needs_float(b.dtype(x))
    axes = _axes(b, step, x)
    mean = mean_of(b, x, axes)
    squares = b.compute(lambda s, x, m: (x - m) * (x - m), x, mean)
    return mean_of(b, squares, axes, keepdims=step.attrs["keepdims"])


@lowers("LogSumExp")
def _log_sum_exp(b: Builder, step: Lowered, x: Operand) -> Operand:
    _needs_float(b.dtype(x))
    axes = _axes(b, step, x)
    high = b.reduce("max", x, axes, keepdims=True)
    # inf - inf would be NaN
    high = b.compute(lambda s, m: s.where(s.is_finite(m), m, 0), high)
    e = b.compute(lambda s, x, m: s.exp(x - m), x, high)
    total = b.reduce("sum", e, axes, keepdims=True)
    found = b.compute(lambda s, t, m: s.log(t) + m, total, high)
    return _without(b, step, found, axes)


@lowers("EuclideanNorm")
def _euclidean_norm(b: Builder, step: Lowered, x: Operand) -> Operand:
    _needs_float(b.dtype(x))
    axes = _axes(b, step, x)
    # Squares could overflow.
    scale = b.reduce("max", b.compute(lambda s, x: s.abs(x), x), axes, keepdims=True)
    safe = b.compute(lambda s, m: s.where((m > 0) & s.is_finite(m), m, 1), scale)
    squares = b.compute(lambda s, x, m: (x / m) * (x / m), x, safe)
    total = b.reduce("sum", squares, axes, keepdims=True)
    return _without(b, step, b.compute(lambda s, t, m: s.sqrt(t) * m, total, safe), axes)


def _without(b: Builder, step: Lowered, x: Operand, axes: Sequence[int]) -> Operand:
    """A result without the reduced axes, unless they are to stay."""
    if step.attrs["keepdims"]:
        return x
    return b.reshape(x, tuple(n for a, n in enumerate(b.shape(x)) if a not in axes))


@lowers("ArgMax", "ArgMin", takes_halves=True)
def _arg(b: Builder, step: Lowered, x: Operand) -> Operand:
    shape = b.shape(x)
    axis = step.attrs["axis"]
    if b.dtype(x) == bool_ or 0 in shape:
        raise NotLoweredError(f"{step.type} of {b.dtype(x)} {shape}")
    keepdims = step.attrs["keepdims"]
    if axis is None:
        axis = (0,)
        if keepdims:
            raise NotLoweredError(f"{step.type} over all axes")
        x = b.reshape(x, (math.prod(shape),))
    axes = axis if isinstance(axis, tuple) else (axis,)
    found = b.reduce(step.type.lower(), x, axes, keepdims=keepdims)
    return b.cast(found, step.dtypes[0])


def _shifted(b: Builder, x: Operand, axes: Sequence[int]) -> Operand:
    """x less its maximum over `axes`."""
    _needs_float(b.dtype(x))
    top = b.reduce("max", x, axes, keepdims=True)
    return b.compute(lambda s, x, m: x - m, x, top)


@lowers("Softmax")
def _softmax(b: Builder, step: Lowered, x: Operand) -> Operand:
    axes = step.attrs["axes"]
    e = b.compute(lambda s, y: s.exp(y), _shifted(b, x, axes))
    return _shares(b, e, b.reduce("sum", e, axes, keepdims=True))


def _shares(b: Builder, e: Operand, total: Operand) -> View:
    """e / total, with one division for each total, which is 1 or more: the largest e is 1."""
    factor = b.compute(lambda s, t: 1 / t, total)
    return b.compute(lambda s, e, f: e * f, e, factor)


@lowers("LogSoftmax")
def _log_softmax(b: Builder, step: Lowered, x: Operand) -> Operand:
    axes = step.attrs["axes"]
    y = _shifted(b, x, axes)
    e = b.compute(lambda s, y: s.exp(y), y)
    total = b.reduce("sum", e, axes, keepdims=True)
    return b.compute(lambda s, y, t: y - t, y, b.compute(lambda s, t: s.log(t), total))


def _check_labels(b: Builder, labels: Operand, classes: int) -> None:
    dtype = b.dtype(labels)
    b.check(
        b.compute(lambda s, k, n: (k < 0) | (k >= n), labels, Size(classes, dtype), dtype=bool_)
    )


def _is_label(b: Builder, labels: Operand, shape: Sequence[int]) -> Operand:
    """For each element along the last axis of `shape`, whether it is that of the label."""
    shape = tuple(shape)
    rows = b.reshape(labels, (*shape[:-1], 1))
    place = b.iota(shape, len(shape) - 1, b.dtype(labels))
    return b.compute(lambda s, k, i: k == i, rows, place, dtype=bool_)


@lowers("CheckLabels")
def _labels(b: Builder, step: Lowered, labels: Operand) -> Operand:
    _check_labels(b, labels, step.attrs["classes"])
    return labels


@lowers("SparseSoftmaxCrossEntropy")
def _sparse(b: Builder, step: Lowered, labels: Operand, logits: Operand) -> Sequence[Operand]:
    shape = b.shape(logits)
    _check_labels(b, labels, shape[-1])
    y = _shifted(b, logits, (-1,))
    e = b.compute(lambda s, y: s.exp(y), y)
    total = b.reduce("sum", e, (-1,), keepdims=True)
    p = _shares(b, e, total)
    hit = _is_label(b, labels, shape)
    chosen = b.reduce(
        "sum", b.compute(lambda s, h, y: s.where(h, y, 0), hit, y, dtype=b.dtype(y)), (-1,)
    )
    loss = b.compute(lambda s, t, c: s.log(t) - c, b.reshape(total, shape[:-1]), chosen)
    return loss, p


@lowers("SparseSoftmaxCrossEntropyGrad")
def _sparse_grad(b: Builder, step: Lowered, labels: Operand, p: Operand, dloss: Operand) -> Operand:
    _needs_float(b.dtype(p))
    shape = b.shape(p)
    rows = b.reshape(dloss, (*shape[:-1], 1))
    return b.compute(
        lambda s, h, p, d: s.where(h, p - 1, p) * d,
        _is_label(b, labels, shape),
        p,
        rows,
        dtype=b.dtype(p),
    )


@lowers("SoftmaxCrossEntropy")
def _dense(b: Builder, step: Lowered, labels: Operand, logits: Operand) -> Sequence[Operand]:
    axis = step.attrs["axis"]
    y = _shifted(b, logits, (axis,))
    e = b.compute(lambda s, y: s.exp(y), y)
    total = b.reduce("sum", e, (axis,), keepdims=True)
    log_p = b.compute(lambda s, y, t: y - t, y, b.compute(lambda s, t: s.log(t), total))
    terms = b.compute(lambda s, w, y: s.where(w == 0, 0, w * y), labels, log_p)
    loss = b.compute(lambda s, t: -t, b.reduce("sum", terms, (axis,)))
    return loss, log_p


@lowers("Normalize")
def _normalize(
    b: Builder, step: Lowered, x: Operand, scale: Operand, offset: Operand
) -> Sequence[Operand]:
    _needs_float(b.dtype(x))
    axes, epsilon = step.attrs["axes"], step.attrs["epsilon"]
    mean = mean_of(b, x, axes)
    squares = b.compute(lambda s, x, m: (x - m) * (x - m), x, mean)
    variance = mean_of(b, squares, axes)
    factor = b.compute(lambda s, v: 1 / s.sqrt(v + epsilon), variance)
    y = b.compute(lambda s, x, m, r, g, o: (x - m) * (r * g) + o, x, mean, factor, scale, offset)
    return y, mean, variance


@lowers("NormalizeGrad")
def _normalize_grad(
    b: Builder,
    step: Lowered,
    x: Operand,
    scale: Operand,
    mean: Operand,
    variance: Operand,
    dy: Operand,
) -> Sequence[Operand]:
    _needs_float(b.dtype(x))
    axes, epsilon = step.attrs["axes"], step.attrs["epsilon"]
    r = b.compute(lambda s, v: 1 / s.sqrt(v + epsilon), variance)
    if _is_even(b, scale, b.shape(x), axes):
        products = _products(b, x, mean, r, dy)
        return _grad_by_channel(b, x, scale, mean, r, dy, products, axes)
    g = b.compute(lambda s, d, w: d * w, dy, scale)
    g_mean, gh_mean = mean_of(b, g, axes), mean_of(b, _products(b, x, mean, r, g), axes)
    dx = b.compute(
        lambda s, x, m, r, g, gm, hm: r * (g - gm - (x - m) * r * hm),
        x,
        mean,
        r,
        g,
        g_mean,
        gh_mean,
    )
    # After dx, which is a kernel over rows; this one goes down the columns.
    return dx, _reduced_to(b, _products(b, x, mean, r, dy), b.shape(scale))


def _products(b: Builder, x: Operand, mean: Operand, r: Operand, d: Operand) -> View:
    """The normalized x times d."""
    return b.compute(lambda s, x, m, r, d: (x - m) * r * d, x, mean, r, d)


def _is_even(b: Builder, x: Operand, shape: Sequence[int], axes: Sequence[int]) -> bool:
    """Whether x, broadcast to `shape`, is the same all along `axes`."""
    own = b.shape(x)
    lead = len(shape) - len(own)
    over = [a % len(shape) for a in axes]
    return all(a < lead or own[a - lead] == 1 or shape[a] == 1 for a in over)


def _grad_by_channel(
    b: Builder,
    x: Operand,
    scale: Operand,
    mean: Operand,
    r: Operand,
    dy: Operand,
    products: Operand,
    axes: Sequence[int],
) -> Sequence[Operand]:
    """dx and dscale where the scale is the same for all that a mean is taken of.

    Then two sums do: of dy, which is the gradient of the offset as well, and of the products.
    """
    dtype = b.dtype(x)
    dy_sum = b.total(dy, axes)
    product_sum = b.total(products, axes)
    count = Size(math.prod(b.shape(x)[a] for a in axes), dtype)
    dy_mean = b.compute(lambda s, t, n: t / n, dy_sum, count)
    slope = b.compute(lambda s, t, n, r: t / n * r, product_sum, count, r)
    factor = b.compute(lambda s, r, w: r * w, r, scale)
    dx = b.compute(
        lambda s, d, x, m, f, dm, k: f * (d - dm - (x - m) * k), dy, x, mean, factor, dy_mean, slope
    )
    return dx, _reduced_to(b, product_sum, b.shape(scale))


def _reduced_to(b: Builder, x: Operand, shape: Sequence[int]) -> Operand:
    """Summed over the axes along which `shape` was repeated."""
    own = b.shape(x)
    lead = len(own) - len(shape)
    axes = [a for a, n in enumerate(own) if n != 1 and (a < lead or shape[a - lead] == 1)]
    return b.reshape(b.total(x, axes) if axes else x, tuple(shape))


@lowers("RMSNorm")
def _rms_norm(b: Builder, step: Lowered, x: Operand, scale: Operand) -> Operand:
    _needs_float(b.dtype(x))
    epsilon: Any = step.attrs["epsilon"]
    power = mean_of(b, b.compute(lambda s, x: x * x, x), step.attrs["axes"])
    return b.compute(lambda s, x, p, g: x / s.sqrt(p + epsilon) * g, x, power, scale)


@lowers("CountNonzero")
def _count_nonzero(b: Builder, step: Lowered, x: Operand) -> Operand:
    ones = b.map(lambda s, x: s.cast(truth(s, x), int32), [x], int32)
    return b.cast(
        b.reduce("sum", ones, _axes(b, step, x), keepdims=step.attrs["keepdims"]), step.dtypes[0]
    )


@lowers("InTopK")
def _in_top_k(b: Builder, step: Lowered, targets: Operand, scores: Operand) -> Operand:
    shape, dtype = b.shape(scores), b.dtype(scores)
    _needs_float(dtype)
    k = step.attrs["k"]
    hit = _is_label(b, targets, shape)
    own = b.reduce(
        "sum",
        b.compute(lambda s, h, p: s.where(h, p, 0), hit, scores, dtype=dtype),
        (-1,),
        keepdims=True,
    )
    ahead = b.compute(lambda s, p, o: p > o, scores, own, dtype=bool_)
    count = b.reshape(b.reduce("sum", b.cast(ahead, int32), (-1,)), shape[:-1])
    classes = Size(shape[-1], b.dtype(targets))
    return b.compute(
        lambda s, t, n, o, c: (t >= 0) & (t < n) & s.is_finite(o) & (c < k),
        targets,
        classes,
        b.reshape(own, shape[:-1]),
        count,
        dtype=bool_,
    )
