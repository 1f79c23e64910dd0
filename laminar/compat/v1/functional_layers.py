"""`tf.layers`: layers as functions, whose variables are those of a variable scope."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from laminar import engine, ops
from laminar.engine.graph import GraphTensor, Tensor
from laminar.engine.ops.core.basic import identity
from laminar.engine.state import GraphKeys

from . import neural
from .adapting import v1
from .flow import cond
from .init_ops import Ones, Zeros
from .layer_parts import finished, known_size, scope, with_bias
from .maths import tensordot
from .values import tensor
from .variables import get_variable


@v1()
def dense(
    inputs: Any,
    units: int,
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
    """activation(inputs @ kernel + bias), over the last axis."""
    x = tensor(inputs)
    with scope(name, "dense", reuse):
        kernel = get_variable(
            "kernel",
            [known_size("dense", x, -1), units],
            x.dtype,
            kernel_initializer,
            kernel_regularizer,
            trainable,
            constraint=kernel_constraint,
        )
        y = ops.matmul(x, kernel) if x.shape.rank == 2 else tensordot(x, kernel, [[-1], [0]])
        y = with_bias(
            y, use_bias, units, bias_initializer, bias_regularizer, trainable, bias_constraint
        )
        return finished(y, activation, activity_regularizer)


def _pooling(fn: Callable[..., Any]) -> Callable[..., Any]:
    @v1()
    def pool(
        inputs: Any,
        pool_size: Any,
        strides: Any,
        padding: Any = "valid",
        data_format: Any = "channels_last",
    ) -> Tensor:
        found: Tensor = fn(tensor(inputs), pool_size, strides, padding.lower(), data_format)
        return found

    pool.__doc__ = fn.__doc__
    return pool


max_pooling = _pooling(ops.max_pool)
average_pooling = _pooling(ops.average_pool)


@v1()
def flatten(inputs: Any, data_format: Any = "channels_last") -> Tensor:
    """All axes but the first as one."""
    x = tensor(inputs)
    dims = list(x.shape[1:])
    size = math.prod(d for d in dims if d is not None) if None not in dims else -1
    if size == -1 and x.shape[0] is None:
        found: Tensor = ops.reshape(x, [ops.shape(x)[0], -1])
    else:
        found = ops.reshape(x, [-1, size] if size != -1 else [x.shape[0], -1])
    return found


@v1()
def dropout(
    inputs: Any,
    rate: Any = 0.5,
    noise_shape: Any = None,
    seed: Any = None,
    training: Any = False,
) -> Any:
    """While training, numbers left out with probability `rate`."""
    if isinstance(training, bool | int):
        return (
            neural.dropout(inputs, None, noise_shape, seed, rate)
            if training
            else identity(tensor(inputs))
        )
    return cond(
        training,
        lambda: neural.dropout(inputs, None, noise_shape, seed, rate),
        lambda: identity(tensor(inputs)),
    )


@v1()
def batch_normalization(
    inputs: Any,
    axis: int = -1,
    momentum: float = 0.99,
    epsilon: float = 1e-3,
    center: bool = True,
    scale: bool = True,
    beta_initializer: Any = Zeros,
    gamma_initializer: Any = Ones,
    moving_mean_initializer: Any = Zeros,
    moving_variance_initializer: Any = Ones,
    beta_regularizer: Any = None,
    gamma_regularizer: Any = None,
    beta_constraint: Any = None,
    gamma_constraint: Any = None,
    training: Any = False,
    trainable: bool = True,
    name: str | None = None,
    reuse: Any = None,
    *,
    fused: bool | None = None,
) -> Any:
    """Each channel with mean 0 and variance 1, then scaled and shifted.

    While training these are of the batch, and `GraphKeys.UPDATE_OPS` lists the operations that take
    them into the moving averages, which are used otherwise. `fused` changes nothing.
    """
    x = tensor(inputs)
    rank = len(x.shape)
    place = axis % rank
    size = known_size("batch_normalization", x, axis)
    with scope(name, "batch_normalization", reuse):
        gamma = beta = None
        if scale:
            gamma = get_variable(
                "gamma",
                [size],
                x.dtype,
                gamma_initializer,
                gamma_regularizer,
                trainable,
                constraint=gamma_constraint,
            )
        if center:
            beta = get_variable(
                "beta",
                [size],
                x.dtype,
                beta_initializer,
                beta_regularizer,
                trainable,
                constraint=beta_constraint,
            )
        averages = [
            get_variable(part, [size], x.dtype, initializer, trainable=False)
            for part, initializer in (
                ("moving_mean", moving_mean_initializer),
                ("moving_variance", moving_variance_initializer),
            )
        ]
        found = _statistics(x, place, averages, training, momentum)
        mean, variance, offset, factor = (
            None if v is None else ops.reshape(v, [size if a == place else 1 for a in range(rank)])
            for v in (*found, beta, gamma)
        )
        return neural.batch_normalization(x, mean, variance, offset, factor, epsilon)


def _statistics(x: Tensor, place: int, averages: Any, training: Any, momentum: float) -> Any:
    """(mean, variance) to normalize with, where `training` is a bool or a tensor."""
    over = [a for a in range(len(x.shape)) if a != place]
    if isinstance(training, bool | int) and not training:
        return [v.as_tensor() for v in averages]
    of_batch = neural.moments(x, over)
    if isinstance(training, bool | int):
        used, rate = of_batch, 1.0 - momentum
    else:
        used = [
            cond(training, lambda b=b: identity(b), lambda v=v: identity(v.as_tensor()))
            for b, v in zip(of_batch, averages, strict=True)
        ]
        rate = cond(training, lambda: engine.constant(1.0 - momentum), lambda: engine.constant(0.0))
    for v, b in zip(averages, of_batch, strict=True):
        update = v.assign_sub((v - b) * rate)
        if isinstance(update, GraphTensor):
            update.graph.root.add_to_collection(GraphKeys.UPDATE_OPS, update.op)
    return used
