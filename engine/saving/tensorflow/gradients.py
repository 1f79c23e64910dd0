"""Rules for the ops that TensorFlow's gradients are made of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...ops.array.shape import split_shape
from ...ops.core.registry import lookup
from ...ops.math import reduce
from ...ops.math.arithmetic import absolute
from ...ops.math.cast import cast
from ...ops.math.compare import where
from ...ops.math.elementary import rsqrt, sigmoid
from ...ops.nn.convolution import conv_input_grad, conv_kernel_grad
from ...ops.nn.depthwise import depthwise_input_grad, depthwise_kernel_grad
from .arrays import strided_index
from .maths import channels_last, geometry, window
from .rules import Call, SummedTo, rule


@rule("BroadcastGradientArgs")
def _broadcast_gradient_args(call: Call) -> Any:
    """The axes over which the gradients for two operands of these shapes are summed."""
    return SummedTo(call[0], call[1]), SummedTo(call[1], call[0])


def _elementwise(formula: Callable[[Any, Any], Any], *names: str) -> None:
    """A gradient of two inputs, in TensorFlow's order."""

    @rule(*names)
    def grad(call: Call) -> Any:
        return formula(*call.values)


_elementwise(lambda dy, y: lookup("ReluGrad")(dy, y), "ReluGrad")
_elementwise(lambda dy, y: lookup("Relu6Grad")(dy, y), "Relu6Grad")
_elementwise(lambda dy, y: where(y < 0, dy * (y + 1.0), dy), "EluGrad")
_elementwise(lambda dy, x: dy * sigmoid(x), "SoftplusGrad")
_elementwise(lambda dy, x: dy / ((1.0 + absolute(x)) * (1.0 + absolute(x))), "SoftsignGrad")
_elementwise(lambda y, dy: dy * (1.0 - y * y), "TanhGrad")
_elementwise(lambda y, dy: dy * y * (1.0 - y), "SigmoidGrad")
_elementwise(lambda y, dy: dy * 0.5 / y, "SqrtGrad")
_elementwise(lambda y, dy: -0.5 * dy * y * y * y, "RsqrtGrad")
_elementwise(lambda y, dy: -(dy * y * y), "ReciprocalGrad", "InvGrad")

_SELU_SCALE, _SELU_SCALE_ALPHA = 1.0507009873554805, 1.7580993408473766
_elementwise(lambda dy, y: where(y < 0, dy * (y + _SELU_SCALE_ALPHA), dy * _SELU_SCALE), "SeluGrad")


@rule("LeakyReluGrad")
def _leaky_relu_grad(call: Call) -> Any:
    dy, x = call.values
    return where(x > 0, dy, dy * call.node.attr("alpha", 0.2))


@rule("StridedSliceGrad")
def _strided_slice_grad(call: Call) -> Any:
    """Zeros of a shape, with dy where the slice was taken."""
    dy = call[4]
    shape, dims = split_shape(call[0])
    zeros = lookup("BroadcastTo")(lookup("ZerosLike")(reduce.reduce_sum(dy)), *dims, shape=shape)
    taken = zeros[strided_index(call, 1)]
    view = taken.op
    values = view.inputs[1:]
    return lookup("StridedSliceGrad")(dy, *values, *dims, index=view.attrs["index"], shape=shape)


@rule("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def _conv_input_grad(call: Call) -> Any:
    sizes, dims = split_shape(call[0])
    kernel, dy = call[1], call[2]
    spatial = sizes[1:-1]
    before = sum(d is None for d in sizes[:1])
    given = dims[before : before + sum(d is None for d in spatial)]
    groups = 1 if sizes[-1] is None else sizes[-1] // int(kernel.shape[-2])
    return conv_input_grad(dy, kernel, *given, input_dims=spatial, groups=groups, **geometry(call))


@rule("Conv2DBackpropFilter", "Conv3DBackpropFilterV2")
def _conv_kernel_grad(call: Call) -> Any:
    x, dy = call[0], call[2]
    sizes, dims = split_shape(call[1])
    taps = sizes[:-2]
    given = dims[: sum(d is None for d in taps)]
    groups = 1 if sizes[-2] is None or x.shape[-1] is None else x.shape[-1] // sizes[-2]
    return conv_kernel_grad(x, dy, *given, window=taps, groups=groups, **geometry(call))


@rule("DepthwiseConv2dNativeBackpropInput")
def _depthwise_input_grad(call: Call) -> Any:
    sizes, dims = split_shape(call[0])
    spatial = sizes[1:-1]
    before = sum(d is None for d in sizes[:1])
    given = dims[before : before + sum(d is None for d in spatial)]
    return depthwise_input_grad(call[2], call[1], *given, input_dims=spatial, **geometry(call))


@rule("DepthwiseConv2dNativeBackpropFilter")
def _depthwise_kernel_grad(call: Call) -> Any:
    sizes, dims = split_shape(call[1])
    return depthwise_kernel_grad(call[0], call[2], *dims, window=sizes[:2], **geometry(call))


@rule("MaxPoolGrad", "MaxPool3DGrad")
def _max_pool_grad(call: Call) -> Any:
    return lookup("MaxPoolGrad")(*call.values, **window(call))


@rule("AvgPoolGrad", "AvgPool3DGrad")
def _avg_pool_grad(call: Call) -> Any:
    sizes, dims = split_shape(call[0])
    spatial = sizes[1:-1]
    before = sum(d is None for d in sizes[:1])
    given = dims[before : before + sum(d is None for d in spatial)]
    return lookup("AvgPoolGrad")(call[1], *given, input_dims=spatial, **window(call))


@rule("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3")
def _batch_norm_grad(call: Call) -> Any:
    """dx, dscale, doffset, of the statistics that the forward op kept."""
    channels_last(call)
    dy, x, scale, mean, variance = call.values[:5]
    over = tuple(range(len(x.shape) - 1))
    inverse = rsqrt(variance + call.node.attr("epsilon", 1e-4))
    centred = (x - mean) * inverse
    doffset = reduce.reduce_sum(dy, over)
    dscale = reduce.reduce_sum(dy * centred, over)
    if call.node.attr("is_training", True):
        count = cast(lookup("Size")(x), x.dtype) / cast(lookup("Size")(scale), x.dtype)
        dx = (scale * inverse) * (dy - doffset / count - centred * (dscale / count))
    else:
        dx = dy * (scale * inverse)
    return dx, dscale, doffset, lookup("ZerosLike")(mean), lookup("ZerosLike")(mean)
