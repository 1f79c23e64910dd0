"""The networks in bare JAX: functions of weights, in the form of `problems`.

`network(weights, x, is_training)` gives the logits and, by name, the weights that change otherwise
than by their gradients: the moving averages of batch normalizations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax import lax
from jax import numpy as jnp

from ..problems import Block

Arrays = dict[str, list[Any]]
Network = Callable[[Arrays, Any, bool], tuple[Any, Arrays]]

relu = jax.nn.relu


def dense(weights: Sequence[Any], x: Any) -> Any:
    kernel, bias = weights
    return x @ kernel + bias


def convolve(kernel: Any, x: Any, *, stride: int = 1, padding: int = 0) -> Any:
    pads = [(padding, padding)] * 2
    axes = ("NHWC", "HWIO", "NHWC")
    return lax.conv_general_dilated(x, kernel, (stride, stride), pads, dimension_numbers=axes)


def max_pool(x: Any) -> Any:
    """The largest of each 2x2 window; its gradient is faster than that of reduce_window."""
    batch, height, width, channels = x.shape
    return x.reshape(batch, height // 2, 2, width // 2, 2, channels).max(axis=(2, 4))


def perceptron(weights: Arrays, x: Any, is_training: bool) -> tuple[Any, Arrays]:
    """Dense layers with ReLU between."""
    *hidden, last = sorted(weights)
    for name in hidden:
        x = relu(dense(weights[name], x))
    return dense(weights[last], x), {}


def convnet(weights: Arrays, x: Any, is_training: bool, *, padding: int = 0) -> tuple[Any, Arrays]:
    """Two convolutions, pooling, two dense layers."""
    for kernel, bias in (weights["conv1"], weights["conv2"]):
        x = relu(convolve(kernel, x, padding=padding) + bias)
    x = max_pool(x).reshape(len(x), -1)
    return dense(weights["dense2"], relu(dense(weights["dense1"], x))), {}


def normalize(weights: Sequence[Any], x: Any, is_training: bool) -> tuple[Any, list[Any]]:
    """Batch normalization with Keras's constants, and its weights with new moving averages."""
    gamma, beta, moving_mean, moving_variance = weights
    if not is_training:
        return gamma * (x - moving_mean) * lax.rsqrt(moving_variance + 1e-3) + beta, [*weights]
    mean = x.mean(axis=(0, 1, 2))
    variance = jnp.square(x).mean(axis=(0, 1, 2)) - jnp.square(mean)
    y = gamma * (x - mean) * lax.rsqrt(variance + 1e-3) + beta
    moved = [0.99 * moving_mean + 0.01 * mean, 0.99 * moving_variance + 0.01 * variance]
    return y, [gamma, beta, *moved]


def residual_network(blocks: Sequence[Block]) -> Network:
    """The residual network for small images."""

    def network(weights: Arrays, x: Any, is_training: bool) -> tuple[Any, Arrays]:
        moved: Arrays = {}

        def normalized(x: Any, conv: str, norm: str, *, size: int = 3, stride: int = 1) -> Any:
            x = convolve(weights[conv][0], x, stride=stride, padding=size // 2)
            x, moved[norm] = normalize(weights[norm], x, is_training)
            return x

        x = relu(normalized(x, "conv0", "norm0"))
        for block in blocks:
            name, stride = block.name, block.stride
            y = relu(normalized(x, f"{name}-conv1", f"{name}-norm1", stride=stride))
            y = normalized(y, f"{name}-conv2", f"{name}-norm2")
            if stride > 1:
                x = normalized(x, f"{name}-conv3", f"{name}-norm3", size=1, stride=stride)
            x = relu(x + y)
        return dense(weights["dense"], x.mean(axis=(1, 2))), moved

    return network


def gpt(blocks: Sequence[str], *, is_causal: bool = True) -> Network:
    """A decoder of words, or an encoder; the output is the logits of the next, or of all."""

    def network(weights: Arrays, x: Any, is_training: bool) -> tuple[Any, Arrays]:
        x = weights["words"][0][x] + weights["positions"][0]
        return dense(weights["head"], transformer(weights, x, blocks, is_causal)), {}

    return network


def vit(blocks: Sequence[str]) -> Network:
    """An encoder of the patches of images, and a dense layer."""

    def network(weights: Arrays, x: Any, is_training: bool) -> tuple[Any, Arrays]:
        kernel, bias = weights["patches"]
        x = convolve(kernel, x, stride=len(kernel)) + bias
        x = x.reshape(len(x), -1, x.shape[-1]) + weights["positions"][0]
        return dense(weights["dense"], transformer(weights, x, blocks, False).mean(axis=1)), {}

    return network


def transformer(weights: Arrays, x: Any, blocks: Sequence[str], is_causal: bool) -> Any:
    for name in blocks:
        y = layer_norm(weights[f"{name}-norm1"], x)
        x = x + attend(weights[f"{name}-attention"], y, is_causal)
        y = dense(weights[f"{name}-dense1"], layer_norm(weights[f"{name}-norm2"], x))
        x = x + dense(weights[f"{name}-dense2"], jax.nn.gelu(y, approximate=False))
    return layer_norm(weights["norm"], x)


def recurrent(weights: Arrays, x: Any, is_training: bool) -> tuple[Any, Arrays]:
    """An LSTM, and a dense layer on its last output; the inputs of all steps are one product."""
    kernel, recurrent_kernel, bias = weights["lstm"]

    def step(state: Any, part: Any) -> tuple[Any, None]:
        h, c = state
        i, f, g, o = jnp.split(part + h @ recurrent_kernel, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((len(x), len(recurrent_kernel)), x.dtype)
    (h, _), _ = lax.scan(step, (zeros, zeros), x.swapaxes(0, 1) @ kernel + bias)
    return dense(weights["dense"], h), {}


def layer_norm(weights: Sequence[Any], x: Any) -> Any:
    gamma, beta = weights
    mean = x.mean(axis=-1, keepdims=True)
    centred = x - mean
    variance = jnp.square(centred).mean(axis=-1, keepdims=True)
    return gamma * centred * lax.rsqrt(variance + 1e-5) + beta


def attend(weights: Sequence[Any], x: Any, is_causal: bool) -> Any:
    """Attention to all, or to what came before, with several heads."""
    *inner, kernel, bias = weights
    pairs = zip(inner[::2], inner[1::2], strict=True)
    query, key, value = (jnp.einsum("btd,dhk->bhtk", x, w) + b[:, None] for w, b in pairs)
    scores = jnp.einsum("bhtk,bhsk->bhts", query * query.shape[-1] ** -0.5, key)
    if is_causal:
        is_seen = jnp.tril(jnp.ones(scores.shape[-2:], bool))
        scores = jnp.where(is_seen, scores, -jnp.inf)
    shares = jax.nn.softmax(scores)
    found = jnp.einsum("bhts,bhsk->bthk", shares, value)
    return jnp.einsum("bthk,hkd->btd", found, kernel) + bias


def cross_entropy(logits: Any, labels: Any) -> Any:
    """The mean over labels of -log softmax(logits)[label]."""
    chosen = jax.nn.one_hot(labels, logits.shape[-1]) * jax.nn.log_softmax(logits)
    return -chosen.sum() / labels.size
