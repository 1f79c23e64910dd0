"""`tf.nn`: what differs from laminar's own in arguments, layouts or defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn import losses
from laminar.engine.ops.nn.dropout import dropout as drop
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .maths import reduce_mean, reduce_sum
from .values import operands, static, symbol, tensor


def _along(fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1(dim="axis")
    def along(logits: Any, axis: Any = None) -> Any:
        found: Tensor = fn(tensor(logits), static(-1 if axis is None else axis))
        return found

    along.__doc__ = fn.__doc__
    return along


softmax = _along(ops.softmax)
log_softmax = _along(ops.log_softmax)


@v1()
def leaky_relu(features: Any, alpha: Any = 0.2) -> Any:
    """x where it is positive, else alpha * x."""
    x = tensor(features)
    return lookup("Maximum")(x, x * tensor(alpha, x.dtype))


@v1()
def bias_add(value: Any, bias: Any, data_format: str | None = None) -> Any:
    """value + bias, along the channels."""
    x, b = operands(value, bias)
    if data_format is not None and data_format.startswith("NC"):
        b = ops.reshape(b, [-1] + [1] * (len(x.shape) - 2))
    return lookup("Add")(x, b)


@v1()
def xw_plus_b(x: Any, weights: Any, biases: Any) -> Any:
    """x @ weights + biases."""
    a, w, b = operands(x, weights, biases)
    return lookup("Add")(lookup("MatMul")(a, w), b)


@v1()
def relu_layer(x: Any, weights: Any, biases: Any) -> Any:
    """max(x @ weights + biases, 0)."""
    return lookup("Relu")(xw_plus_b(x, weights, biases))


@v1()
def dropout(
    x: Any, keep_prob: Any = None, noise_shape: Any = None, seed: Any = None, rate: Any = None
) -> Any:
    """Numbers left out with probability `rate` (1 - keep_prob), the others divided by the rest."""
    if (keep_prob is None) == (rate is None):
        raise ValueError("dropout: give either keep_prob or rate")
    y = tensor(x)
    if rate is None:
        known = isinstance(keep_prob, int | float)
        if known and not 0 < keep_prob <= 1:
            raise ValueError(f"dropout: keep_prob must be in (0, 1], got {keep_prob}")
        rate = 1 - (keep_prob if known else cast(tensor(keep_prob), "float32"))
    if isinstance(rate, int | float) and rate == 0:
        return identity(symbol(y))
    if not isinstance(rate, int | float):
        rate = ops.reshape(tensor(rate), [])  # a placeholder of no shape is a number here
    return drop(y, draw_state(seed), rate, static(noise_shape))


def _both_named(_sentinel: Any, labels: Any, logits: Any) -> None:
    if _sentinel is not None or labels is None or logits is None:
        raise ValueError("give labels= and logits= by name")


@v1(axis="dim")
def softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None, dim: int = -1
) -> Any:
    """-sum(labels * log(softmax(logits))) for each row; exact for large logits.

    No gradient goes to the labels.
    """
    _both_named(_sentinel, labels, logits)
    y, t = operands(logits, labels)
    return losses.softmax_cross_entropy(lookup("StopGradient")(t), y, dim)


@v1(dim="axis")
def softmax_cross_entropy_with_logits_v2(
    labels: Any = None, logits: Any = None, axis: int = -1
) -> Any:
    """-sum(labels * log(softmax(logits))) for each row; exact for large logits."""
    _both_named(None, labels, logits)
    y, t = operands(logits, labels)
    return losses.softmax_cross_entropy(t, y, axis)


@v1()
def sparse_softmax_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None
) -> Any:
    """-log(softmax(logits)[label]) for each row; exact for large logits."""
    _both_named(_sentinel, labels, logits)
    return losses.sparse_softmax_cross_entropy(tensor(labels), tensor(logits))


@v1()
def sigmoid_cross_entropy_with_logits(
    _sentinel: Any = None, labels: Any = None, logits: Any = None
) -> Any:
    """max(x, 0) - x * labels + log(1 + exp(-|x|)): exact for large logits x."""
    _both_named(_sentinel, labels, logits)
    x, t = operands(logits, labels)
    return lookup("Relu")(x) - x * t + lookup("Log1p")(lookup("Exp")(-lookup("Abs")(x)))


@v1()
def weighted_cross_entropy_with_logits(
    labels: Any = None, logits: Any = None, pos_weight: Any = None, targets: Any = None
) -> Any:
    """As `sigmoid_cross_entropy_with_logits`, where positive labels count `pos_weight` times."""
    x, t, w = operands(logits, labels if targets is None else targets, pos_weight)
    tail = lookup("Log1p")(lookup("Exp")(-lookup("Abs")(x))) + lookup("Relu")(-x)
    return (1 - t) * x + (1 + (w - 1) * t) * tail


@v1()
def l2_loss(t: Any) -> Any:
    """sum(t**2) / 2."""
    x = tensor(t)
    return reduce_sum(x * x) / tensor(2, x.dtype)


@v1(dim="axis")
def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12) -> Any:
    """x / sqrt(max(sum(x**2), epsilon)), over some axes."""
    y = tensor(x)
    square = reduce_sum(y * y, axis, keepdims=True)
    return y * lookup("Rsqrt")(lookup("Maximum")(square, tensor(epsilon, y.dtype)))


@v1(keep_dims="keepdims")
def moments(x: Any, axes: Any, shift: Any = None, keepdims: bool = False) -> Any:
    """(mean, variance) over some axes."""
    y = tensor(x)
    mean = reduce_mean(y, axes, keepdims=True)
    centered = y - lookup("StopGradient")(mean)
    variance = reduce_mean(centered * centered, axes, keepdims=keepdims)
    return (mean if keepdims else reduce_mean(y, axes)), variance


@v1()
def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any
) -> Any:
    """(x - mean) / sqrt(variance + variance_epsilon) * scale + offset."""
    y = tensor(x)
    factor = lookup("Rsqrt")(tensor(variance, y.dtype) + tensor(variance_epsilon, y.dtype))
    if scale is not None:
        factor = factor * scale
    shift = -tensor(mean, y.dtype) * factor
    return y * factor + (shift if offset is None else shift + offset)


@v1()
def local_response_normalization(
    input: Any,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
) -> Any:
    """x / (bias + alpha * (sum of x**2 over the nearest 2 * depth_radius + 1 channels))**beta."""
    x = tensor(input)
    channels = int(x.shape[-1] or 0)
    square = ops.pad(x * x, [[0, 0]] * (len(x.shape) - 1) + [[depth_radius, depth_radius]])
    near = [square[..., i : i + channels] for i in range(2 * depth_radius + 1)]
    total = near[0]
    for window in near[1:]:
        total = total + window
    found: Tensor = x / ops.power(total * alpha + bias, beta)
    return found


@v1()
def zero_fraction(value: Any) -> Any:
    """The part of the elements that are 0."""
    x = tensor(value)
    return reduce_mean(cast(lookup("Equal")(x, tensor(0, x.dtype)), "float32"))


@v1()
def in_top_k(predictions: Any, targets: Any, k: Any) -> Any:
    """Whether the class of each target is among the k greatest predictions."""
    found: Tensor = ops.in_top_k(tensor(targets), tensor(predictions), static(k))
    return found


@v1()
def top_k(input: Any, k: Any = 1, sorted: bool = True) -> Any:
    """(the k greatest values of each row, their places)."""
    return ops.top_k(tensor(input), static(k), sorted)


@v1()
def crelu(features: Any, axis: int = -1) -> Any:
    """relu(x) and relu(-x) side by side."""
    x = tensor(features)
    found: Tensor = ops.concatenate([lookup("Relu")(x), lookup("Relu")(-x)], axis)
    return found
