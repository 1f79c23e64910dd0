"""`tf.layers`: convolutions as functions, whose variables are those of a variable scope."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from laminar import ops

from .adapting import under, v1
from .init_ops import Zeros
from .layer_parts import finished, known_size, scope, with_bias
from .values import tensor
from .variables import get_variable


def _window(rank: int, size: Any) -> list[int]:
    return [size] * rank if isinstance(size, int) else list(size)


def _convolutions(rank: int, transposed: bool = False) -> Callable[..., Any]:
    who = f"conv{rank}d_transpose" if transposed else f"conv{rank}d"

    def convolution(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: Any = "channels_last",
        dilation_rate: Any = 1,
        activation: Any = None,
        use_bias: bool = True,
        kernel_initializer: Any = None,
        bias_initializer: Any = Zeros,
        kernel_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        kernel_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: Any = None,
    ) -> Any:
        x = tensor(inputs)
        first = data_format == "channels_first"
        channels = known_size(who, x, 1 if first else -1)
        with scope(name, who, reuse):
            kernel = get_variable(
                "kernel",
                [
                    *_window(rank, kernel_size),
                    *((filters, channels) if transposed else (channels, filters)),
                ],
                x.dtype,
                kernel_initializer,
                kernel_regularizer,
                trainable,
                constraint=kernel_constraint,
            )
            if transposed:
                y = ops.conv_transpose(x, kernel, strides, padding.lower(), None, data_format)
            else:
                y = ops.conv(x, kernel, strides, padding.lower(), data_format, dilation_rate)
            y = with_bias(
                y,
                use_bias,
                filters,
                bias_initializer,
                bias_regularizer,
                trainable,
                bias_constraint,
                channels_first=first,
            )
            return finished(y, activation, activity_regularizer)

    kind = "transposed convolution" if transposed else "convolution"
    convolution.__doc__ = f"activation({kind} over {rank} axes + bias)."
    if not transposed:
        return v1()(convolution)
    whole = inspect.signature(convolution)
    taken = [p for name, p in whole.parameters.items() if name != "dilation_rate"]
    return v1()(under(whole.replace(parameters=taken), convolution))


conv1d, conv2d, conv3d = map(_convolutions, (1, 2, 3))
conv2d_transpose, conv3d_transpose = _convolutions(2, True), _convolutions(3, True)


def _separable(rank: int) -> Callable[..., Any]:
    who = f"separable_conv{rank}d"

    @v1()
    def separable(
        inputs: Any,
        filters: int,
        kernel_size: Any,
        strides: Any = 1,
        padding: Any = "valid",
        data_format: Any = "channels_last",
        dilation_rate: Any = 1,
        depth_multiplier: int = 1,
        activation: Any = None,
        use_bias: bool = True,
        depthwise_initializer: Any = None,
        pointwise_initializer: Any = None,
        bias_initializer: Any = Zeros,
        depthwise_regularizer: Any = None,
        pointwise_regularizer: Any = None,
        bias_regularizer: Any = None,
        activity_regularizer: Any = None,
        depthwise_constraint: Any = None,
        pointwise_constraint: Any = None,
        bias_constraint: Any = None,
        trainable: bool = True,
        name: str | None = None,
        reuse: Any = None,
    ) -> Any:
        x = tensor(inputs)
        first = data_format == "channels_first"
        channels = known_size(who, x, 1 if first else -1)
        with scope(name, who, reuse):
            depthwise = get_variable(
                "depthwise_kernel",
                [*_window(rank, kernel_size), channels, depth_multiplier],
                x.dtype,
                depthwise_initializer,
                depthwise_regularizer,
                trainable,
                constraint=depthwise_constraint,
            )
            pointwise = get_variable(
                "pointwise_kernel",
                [*[1] * rank, channels * depth_multiplier, filters],
                x.dtype,
                pointwise_initializer,
                pointwise_regularizer,
                trainable,
                constraint=pointwise_constraint,
            )
            mixed = ops.separable_conv(
                x, depthwise, pointwise, strides, padding.lower(), data_format, dilation_rate
            )
            y = with_bias(
                mixed,
                use_bias,
                filters,
                bias_initializer,
                bias_regularizer,
                trainable,
                bias_constraint,
                channels_first=first,
            )
            return finished(y, activation, activity_regularizer)

    separable.__doc__ = (
        f"activation(each channel by itself over {rank} axes, then all of a place, + bias)."
    )
    return separable


separable_conv1d, separable_conv2d = map(_separable, (1, 2))
