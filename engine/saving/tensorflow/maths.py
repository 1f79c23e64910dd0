"""Rules for products, reductions, convolutions, pooling, losses and normalization."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import UnimplementedError
from ...ops.array.axes import transpose
from ...ops.array.broadcast import sum_to_op, sum_to_shape
from ...ops.array.join import concat
from ...ops.array.shape import shape_of, split_shape
from ...ops.core.registry import lookup
from ...ops.linalg.matmul import matmul
from ...ops.math import reduce
from ...ops.math.arithmetic import conjugate
from ...ops.math.cast import cast
from ...ops.math.elementary import rsqrt
from ...ops.nn import losses, pooling, softmax
from ...ops.nn.convolution import conv_op
from ...ops.nn.depthwise import depthwise_conv_op
from .arrays import is_vector
from .rules import Call, SummedTo, rule


@rule("Cast")
def _cast(call: Call) -> Any:
    return cast(call[0], call.node.attr("DstT"))


@rule("MatMul")
def _matmul(call: Call) -> Any:
    attr = call.node.attr
    a, b = call.values
    return matmul(
        a, b, transpose_a=attr("transpose_a", False), transpose_b=attr("transpose_b", False)
    )


@rule("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def _batch_matmul(call: Call) -> Any:
    adjoint = [call.node.attr(name, False) for name in ("adj_x", "adj_y")]
    a, b = (conjugate(x) if flag else x for x, flag in zip(call.values, adjoint, strict=True))
    return matmul(a, b, transpose_a=adjoint[0], transpose_b=adjoint[1])


@rule("BiasAdd")
def _bias_add(call: Call) -> Any:
    channels_last(call)
    return call[0] + call[1]


@rule("BiasAddGrad")
def _bias_add_grad(call: Call) -> Any:
    channels_last(call)
    dy = call[0]
    return reduce.reduce_sum(dy, tuple(range(len(dy.shape) - 1)))


def channels_last(call: Call) -> None:
    """UnimplementedError where the layout of images is another one."""
    layout = call.node.text("data_format", "NHWC")
    if layout not in ("NHWC", "NDHWC"):
        raise UnimplementedError(
            f"images of the layout {layout} are not read", remedy="export the graph with NHWC"
        )


@rule("SquaredDifference")
def _squared_difference(call: Call) -> Any:
    difference = call[0] - call[1]
    return difference * difference


@rule("L2Loss")
def _l2_loss(call: Call) -> Any:
    return reduce.reduce_sum(call[0] * call[0]) * 0.5


def _reductions(fn: Callable[..., Any], *names: str) -> None:
    @rule(*names)
    def reduction(call: Call) -> Any:
        given = call.inputs[1]
        keeps = call.node.attr("keep_dims", False)
        if not isinstance(given, SummedTo):
            return fn(call[0], tuple(call.known_list(1)), keeps)
        if not is_vector(given.shape):
            return sum_to_shape(call[0], given.shape)
        target = given.shape
        if is_vector(given.other) and call[0].shape.rank is not None:
            behind = call[0].shape.rank - max(target.shape[0], given.other.shape[0])
            if behind:
                target = concat([target, shape_of(call[0], dtype=target.dtype)[-behind:]], 0)
        shape, dims = split_shape(target)
        return sum_to_op(call[0], *dims, shape=shape)


_reductions(reduce.reduce_sum, "Sum")
_reductions(reduce.reduce_mean, "Mean")
_reductions(reduce.reduce_prod, "Prod")
_reductions(reduce.reduce_max, "Max")
_reductions(reduce.reduce_min, "Min")
_reductions(reduce.euclidean_norm, "EuclideanNorm")
_reductions(reduce.reduce_all, "All")
_reductions(reduce.reduce_any, "Any")


@rule("ArgMax", "ArgMin")
def _argmax(call: Call) -> Any:
    fn = reduce.argmax if call.node.op == "ArgMax" else reduce.argmin
    return fn(call[0], call.known(1), dtype=call.node.attr("output_type", "int64"))


@rule("Cumsum", "Cumprod")
def _cumulative(call: Call) -> Any:
    ways: dict[str, Any] = {
        name: bool(call.node.attr(name, False)) for name in ("exclusive", "reverse")
    }
    return lookup(call.node.op)(call[0], axis=call.known(1) % len(call[0].shape), **ways)


@rule("TopKV2", "TopK")
def _top_k(call: Call) -> Any:
    k = call.known(1) if len(call) > 1 else call.node.attr("k")
    return lookup("TopK").many(call[0], k=k, sorted=call.node.attr("sorted", True))


@rule("InTopKV2")
def _in_top_k(call: Call) -> Any:
    return lookup("InTopK")(call[1], call[0], k=call.known(2))


@rule("Softmax", "LogSoftmax")
def _softmax(call: Call) -> Any:
    return (softmax.softmax if call.node.op == "Softmax" else softmax.log_softmax)(call[0])


@rule("SoftmaxCrossEntropyWithLogits")
def _cross_entropy(call: Call) -> Any:
    """The losses; and the gradient for the logits, softmax(logits) - labels."""
    logits, labels = call.values
    loss = losses.softmax_cross_entropy(labels, logits)
    return loss, softmax.softmax(logits) - labels


@rule("SparseSoftmaxCrossEntropyWithLogits")
def _sparse_cross_entropy(call: Call) -> Any:
    logits, labels = call.values
    loss, p = lookup("SparseSoftmaxCrossEntropy").many(labels, logits)
    one = lookup("OnesLike")(loss)
    return loss, lookup("SparseSoftmaxCrossEntropyGrad")(labels, p, one)


# Images


def geometry(call: Call) -> dict[str, Any]:
    """Strides, padding and dilations of a convolution."""
    channels_last(call)
    strides = call.node.attr("strides")
    return {
        "strides": tuple(strides[1:-1]),
        "padding": padding_of(call),
        "dilations": tuple(call.node.attr("dilations", [1] * len(strides))[1:-1]),
    }


def padding_of(call: Call) -> Any:
    """How images are padded: a word, or a pair for each spatial axis."""
    word = call.node.text("padding").lower()
    if word != "explicit":
        return word
    given = call.node.attr("explicit_paddings")
    pairs = list(zip(given[::2], given[1::2], strict=True))
    return tuple(pairs[1:-1])


@rule("Conv2D", "Conv3D")
def _conv(call: Call) -> Any:
    x, kernel = call.values
    groups = 1
    if None not in (x.shape[-1], kernel.shape[-2]):
        groups = x.shape[-1] // kernel.shape[-2]
    return conv_op(x, kernel, groups=groups, **geometry(call))


@rule("DepthwiseConv2dNative")
def _depthwise(call: Call) -> Any:
    return depthwise_conv_op(*call.values, **geometry(call))


def window(call: Call) -> dict[str, Any]:
    """Window, strides and padding of a pooling."""
    channels_last(call)
    return {
        "window": tuple(call.node.attr("ksize")[1:-1]),
        "strides": tuple(call.node.attr("strides")[1:-1]),
        "padding": padding_of(call),
    }


@rule("MaxPool", "MaxPool3D")
def _max_pool(call: Call) -> Any:
    return pooling.max_pool(call[0], **window(call))


@rule("AvgPool", "AvgPool3D")
def _avg_pool(call: Call) -> Any:
    return pooling.average_pool(call[0], **window(call))


@rule("LeakyRelu")
def _leaky_relu(call: Call) -> Any:
    return lookup("LeakyRelu")(call[0], negative_slope=call.node.attr("alpha", 0.2))


@rule("Elu", "Selu")
def _elu(call: Call) -> Any:
    return lookup(call.node.op)(call[0])


@rule("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def _batch_norm(call: Call) -> Any:
    """y; mean and unbiased variance of the batch; what the gradient takes."""
    channels_last(call)
    x, scale, offset, mean, variance = call.values
    epsilon = call.node.attr("epsilon", 1e-4)
    factor = call.node.attr("exponential_avg_factor", 1.0)
    kept = variance
    if call.node.attr("is_training", True):
        over = tuple(range(len(x.shape) - 1))
        batch_mean = reduce.reduce_mean(x, over)
        batch_variance = reduce.reduce_mean((x - batch_mean) * (x - batch_mean), over)
        count = cast(lookup("Size")(x), x.dtype) / cast(lookup("Size")(scale), x.dtype)
        unbiased = batch_variance * (count / (count - 1.0))
        if factor != 1.0:
            mean = mean + factor * (batch_mean - mean)
            kept = variance + factor * (unbiased - variance)
        else:
            mean, kept = batch_mean, unbiased
        y = (x - batch_mean) * (rsqrt(batch_variance + epsilon) * scale) + offset
        return y, mean, kept, batch_mean, batch_variance, batch_variance
    y = (x - mean) * (rsqrt(variance + epsilon) * scale) + offset
    return y, mean, variance, mean, variance, variance


@rule("ConjugateTranspose")
def _conjugate_transpose(call: Call) -> Any:
    return transpose(conjugate(call[0]), call.known_list(1))
