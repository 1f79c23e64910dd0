"""`tf.nn`: what differs from laminar's own in arguments, layouts or defaults."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Tensor
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn import losses
from laminar.engine.ops.nn.convolution import conv_input_grad
from laminar.engine.ops.nn.dropout import dropout as drop
from laminar.engine.state.random_source import draw_state

from .adapting import v1
from .maths import reduce_mean, reduce_sum
from .values import operands, static, symbol, tensor


def _layout(data_format: str | None, rank: int) -> tuple[Any, slice]:
    """Keras's word for a layout, and where the spatial axes stand in a list of all."""
    last = data_format is None or not data_format.startswith("NC")
    return ("channels_last", slice(1, rank - 1)) if last else ("channels_first", slice(2, rank))


def _spatial(who: str, given: Any, spatial: slice, rank: int) -> Any:
    """The numbers of the spatial axes, of one for each axis; the others must be 1."""
    found = static(given)
    if isinstance(found, int):
        return found
    if len(found) == rank:
        if any(n != 1 for i, n in enumerate(found) if not spatial.start <= i < spatial.stop):
            raise InvalidArgumentError(
                f"{who}: {found} moves over the batch or the channels",
                remedy="give 1 for these axes",
            )
        return found[spatial]
    return found[0] if len(found) == 1 else found


def _padding(padding: Any) -> Any:
    if not isinstance(padding, str):
        raise InvalidArgumentError(
            f"padding must be 'SAME' or 'VALID', got {padding!r}", remedy="use tf.pad before it"
        )
    return padding.lower()


def _convolution(rank: int, name: str) -> Callable[..., Any]:
    @v1(filters="filter")
    def convolution(
        input: Any,
        filter: Any = None,
        strides: Any = 1,
        padding: Any = "VALID",
        use_cudnn_on_gpu: bool = True,
        data_format: str | None = None,
        dilations: Any = 1,
    ) -> Any:
        layout, spatial = _layout(data_format, rank)
        x, kernel = operands(input, filter)
        found: Tensor = ops.conv(
            x,
            kernel,
            _spatial(name, strides, spatial, rank),
            _padding(padding),
            layout,
            _spatial(name, dilations, spatial, rank),
        )
        return found

    convolution.__doc__ = f"{name}: cross-correlation of images with a bank of kernels."
    return convolution


conv2d = _convolution(4, "conv2d")
conv3d = _convolution(5, "conv3d")


@v1()
def conv1d(
    value: Any,
    filters: Any,
    stride: Any = 1,
    padding: Any = "VALID",
    use_cudnn_on_gpu: bool = True,
    data_format: str | None = None,
) -> Any:
    """Cross-correlation of sequences with a bank of kernels."""
    layout, spatial = _layout(data_format, 3)
    x, kernel = operands(value, filters)
    found: Tensor = ops.conv(
        x, kernel, _spatial("conv1d", stride, spatial, 3), _padding(padding), layout
    )
    return found


@v1(filters="filter", input="value")
def conv2d_transpose(
    value: Any,
    filter: Any,
    output_shape: Any = None,
    strides: Any = 1,
    padding: Any = "SAME",
    data_format: str = "NHWC",
) -> Any:
    """The gradient of `conv2d` by its input, which has the shape `output_shape`.

    Args:
        value: (batch, height, width, channels).
        filter: (height, width, channels of the result, channels of `value`).
        output_shape: of the result; its batch is that of `value`.
        strides: of the convolution.
        padding: of the convolution.
        data_format: "NHWC".
    """
    if data_format != "NHWC":
        raise InvalidArgumentError("conv2d_transpose: the layout must be NHWC")
    x, kernel = operands(value, filter)
    moves = _spatial("conv2d_transpose", strides, slice(1, 3), 4)
    wanted = static(output_shape)
    sizes = [wanted[axis] for axis in (1, 2)]
    known = tuple(d if isinstance(d, int) else None for d in sizes)
    given = [cast(tensor(d), "int32") for d in sizes if not isinstance(d, int)]
    return conv_input_grad(
        x,
        kernel,
        *given,
        input_dims=known,
        strides=(moves, moves) if isinstance(moves, int) else tuple(moves),
        padding=_padding(padding),
        dilations=(1, 1),
        groups=1,
    )


@v1()
def depthwise_conv2d(
    input: Any,
    filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    data_format: str | None = None,
    dilations: Any = None,
) -> Any:
    """Each channel with kernels of its own."""
    layout, spatial = _layout(data_format, 4)
    x, kernel = operands(input, filter)
    moves = _spatial("depthwise_conv2d", strides, spatial, 4)
    spread = rate if dilations is None else dilations
    found: Tensor = ops.depthwise_conv(
        x, kernel, moves, _padding(padding), layout, 1 if spread is None else static(spread)
    )
    return found


@v1()
def separable_conv2d(
    input: Any,
    depthwise_filter: Any,
    pointwise_filter: Any,
    strides: Any,
    padding: Any,
    rate: Any = None,
    data_format: str | None = None,
) -> Any:
    """`depthwise_conv2d`, then a convolution with a window of one."""
    layout, spatial = _layout(data_format, 4)
    x, first, second = operands(input, depthwise_filter, pointwise_filter)
    found: Tensor = ops.separable_conv(
        x,
        first,
        second,
        _spatial("separable_conv2d", strides, spatial, 4),
        _padding(padding),
        layout,
        1 if rate is None else static(rate),
    )
    return found


def _pooling(name: str, fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1(input="value")
    def pool(value: Any, ksize: Any, strides: Any, padding: Any, data_format: str = "NHWC") -> Any:
        x = tensor(value)
        rank = len(x.shape)
        layout, spatial = _layout(data_format, rank)
        window = _spatial(name, ksize, spatial, rank)
        moves = _spatial(name, strides, spatial, rank)
        found: Tensor = fn(x, window, moves, _padding(padding), layout)
        return found

    pool.__doc__ = f"{name}: over windows of `ksize` at steps of `strides`."
    return pool


max_pool = _pooling("max_pool", ops.max_pool)
avg_pool = _pooling("avg_pool", ops.average_pool)


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
