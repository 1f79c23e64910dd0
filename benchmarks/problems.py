"""The arrays of the workloads, the same for every framework: data, labels and first weights.

Weights are kept as Keras keeps them, by the name of the layer: a dense kernel is (inputs, units), a
convolution's (height, width, channels, filters), images are (batch, height, width, channels), and a
batch normalization has gamma, beta, moving mean, moving variance. The sizes of the layers follow
from them, so that no framework can build another network.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from .cases import ROOT

Array = np.ndarray[Any, np.dtype[Any]]
Weights = dict[str, list[Array]]

CLASSES = 10
SEED = 1
# The logits start small, so that the first loss is close to ln(CLASSES).
LAST_SCALE = 0.2
ATTENTION = "-attention"


@dataclass(frozen=True)
class Block:
    """A residual block: two 3x3 convolutions; with a stride, its shortcut is a 1x1 convolution."""

    name: str
    width: int
    stride: int


@dataclass(frozen=True)
class Problem:
    """What a workload computes with; `x` and `y` have `batches` batches of `batch` rows."""

    x: Array
    y: Array
    weights: Weights
    batch: int
    blocks: tuple[Block, ...] = ()
    epochs: int = 1
    is_causal: bool = True  # attention sees what came before, or all

    @property
    def batches(self) -> int:
        return len(self.x) // self.batch

    @property
    def test_and_train(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        """Every fifth row, and the others."""
        is_test = np.arange(len(self.x)) % 5 == 0
        return (self.x[is_test], self.y[is_test]), (self.x[~is_test], self.y[~is_test])

    @property
    def decoders(self) -> list[str]:
        """The names of the blocks of a Transformer."""
        return [name.removesuffix(ATTENTION) for name in self.weights if name.endswith(ATTENTION)]

    def units(self, layer: str) -> int:
        """The size of a layer's last axis."""
        return int(self.weights[layer][0].shape[-1])


def nothing() -> Problem:
    """For workloads without a network."""
    empty = np.zeros((0,), "float32")
    return Problem(empty, empty, {}, batch=1)


def perceptron(widths: Sequence[int], batch: int, batches: int) -> Problem:
    """Dense layers with ReLU between; `widths` from the input's to the output's."""
    draw = np.random.default_rng(SEED)
    weights = {}
    last = len(widths) - 1
    for number, (inputs, units) in enumerate(zip(widths, widths[1:], strict=False), 1):
        weights[f"dense{number}"] = dense(draw, inputs, units, is_last=number == last)
    return Problem(*rows(draw, (widths[0],), batch * batches), weights, batch)


def convnet(size: int, filters: tuple[int, int], hidden: int, batch: int, batches: int) -> Problem:
    """Two 3x3 convolutions without padding, 2x2 max pooling, two dense layers."""
    draw = np.random.default_rng(SEED)
    features = ((size - 4) // 2) ** 2 * filters[1]
    weights = {
        "conv1": [convolution(draw, 3, 1, filters[0]), np.zeros(filters[0], "float32")],
        "conv2": [convolution(draw, 3, *filters), np.zeros(filters[1], "float32")],
        "dense1": dense(draw, features, hidden, is_last=False),
        "dense2": dense(draw, hidden, CLASSES, is_last=True),
    }
    return Problem(*rows(draw, (size, size, 1), batch * batches), weights, batch)


def resnet(size: int, blocks_per_stage: int, batch: int, batches: int) -> Problem:
    """The residual network for small images of 6n + 2 layers, n = `blocks_per_stage`.

    Source: He et al., "Deep Residual Learning for Image Recognition", 2016, arXiv:1512.03385,
        section 4.2, with projections where the width changes (their option B).
    """
    draw = np.random.default_rng(SEED)
    blocks = [
        Block(
            f"block{stage * blocks_per_stage + place + 1}", width, 2 if stage and not place else 1
        )
        for stage, width in enumerate((16, 32, 64))
        for place in range(blocks_per_stage)
    ]
    weights = {"conv0": [convolution(draw, 3, 3, 16)], "norm0": normalization(16)}
    channels = 16
    for block in blocks:
        name, width = block.name, block.width
        weights[f"{name}-conv1"] = [convolution(draw, 3, channels, width)]
        weights[f"{name}-norm1"] = normalization(width)
        weights[f"{name}-conv2"] = [convolution(draw, 3, width, width)]
        weights[f"{name}-norm2"] = normalization(width)
        if block.stride > 1:
            weights[f"{name}-conv3"] = [convolution(draw, 1, channels, width)]
            weights[f"{name}-norm3"] = normalization(width)
        channels = width
    weights["dense"] = dense(draw, channels, CLASSES, is_last=True)
    return Problem(*rows(draw, (size, size, 3), batch * batches), weights, batch, tuple(blocks))


def digits(epochs: int) -> Problem:
    """The network of examples/digits.py and the images that ship with laminar."""
    with np.load(ROOT / "datasets" / "digits.npz", allow_pickle=False) as arrays:
        x = arrays["images"][..., None].astype("float32") / 16
        y = arrays["labels"].astype("int32")
    draw = np.random.default_rng(SEED)
    weights = {
        "conv1": [convolution(draw, 3, 1, 32), np.zeros(32, "float32")],
        "conv2": [convolution(draw, 3, 32, 64), np.zeros(64, "float32")],
        "dense1": dense(draw, 4 * 4 * 64, 128, is_last=False),
        "dense2": dense(draw, 128, CLASSES, is_last=True),
    }
    return Problem(x, y, weights, batch=64, epochs=epochs)


def gpt(
    layers: int, width: int, heads: int, length: int, words: int, batch: int, batches: int
) -> Problem:
    """A decoder of `layers` blocks, normalized before each part, and the next word to be told.

    Source: Radford et al., "Language Models are Unsupervised Multitask Learners", 2019,
        section 2.3.
    """
    draw = np.random.default_rng(SEED)
    weights = {"words": table(draw, words, width), "positions": table(draw, length, width)}
    weights |= transformer(draw, layers, width, heads)
    weights["head"] = dense(draw, width, words, is_last=True)
    x, y = draw.integers(words, size=(2, batch * batches, length), dtype="int32")
    return Problem(x, y, weights, batch)


def bert(
    layers: int, width: int, heads: int, length: int, words: int, batch: int, batches: int
) -> Problem:
    """An encoder of the same form, which is to tell all words.

    Source: Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers", 2018,
        arXiv:1810.04805; normalized before each part, not behind it.
    """
    decoder = gpt(layers, width, heads, length, words, batch, batches)
    return replace(decoder, is_causal=False)


def vit(layers: int, width: int, heads: int, size: int, patch: int, batch: int) -> Problem:
    """An encoder of the patches of images, and a dense layer on the mean of what it gives.

    Source: Dosovitskiy et al., "An Image is Worth 16x16 Words", 2020, arXiv:2010.11929.
    """
    draw = np.random.default_rng(SEED)
    weights = {
        "patches": [convolution(draw, patch, 3, width), np.zeros(width, "float32")],
        "positions": table(draw, (size // patch) ** 2, width),
        **transformer(draw, layers, width, heads),
        "dense": dense(draw, width, CLASSES, is_last=True),
    }
    return Problem(*rows(draw, (size, size, 3), batch), weights, batch, is_causal=False)


def table(draw: np.random.Generator, rows: int, width: int) -> list[Array]:
    """A row of small numbers for each word, or place."""
    return [draw.standard_normal((rows, width), "float32") * np.float32(0.1)]


def transformer(draw: np.random.Generator, layers: int, width: int, heads: int) -> Weights:
    """Blocks of attention and two dense layers, and the normalization behind them."""
    weights = {}
    for number in range(1, layers + 1):
        name = f"block{number}"
        weights[f"{name}-norm1"] = normalization(width)[:2]
        weights[f"{name}{ATTENTION}"] = attention(draw, width, heads)
        weights[f"{name}-norm2"] = normalization(width)[:2]
        weights[f"{name}-dense1"] = dense(draw, width, 4 * width, is_last=False)
        weights[f"{name}-dense2"] = dense(draw, 4 * width, width, is_last=False)
    weights["norm"] = normalization(width)[:2]
    return weights


def recurrent(features: int, units: int, length: int, batch: int, batches: int) -> Problem:
    """An LSTM over sequences, and a dense layer on its last output."""
    draw = np.random.default_rng(SEED)
    kernel, bias = dense(draw, features, 4 * units, is_last=False)
    recurrent_kernel, _ = dense(draw, units, 4 * units, is_last=False)
    weights = {
        "lstm": [kernel, recurrent_kernel, bias],
        "dense": dense(draw, units, CLASSES, is_last=True),
    }
    return Problem(*rows(draw, (length, features), batch * batches), weights, batch)


def bag(words: int, width: int, length: int, batch: int, batches: int) -> Problem:
    """The mean of the embeddings of some words, and a dense layer on it."""
    draw = np.random.default_rng(SEED)
    weights = {
        "words": [draw.standard_normal((words, width), "float32")],
        "dense": dense(draw, width, CLASSES, is_last=True),
    }
    x = draw.integers(words, size=(batch * batches, length), dtype="int32")
    return Problem(x, draw.integers(CLASSES, size=len(x), dtype="int32"), weights, batch)


def matrix(rows: int) -> Problem:
    """Normal numbers in rows of 1024, and no network."""
    x = np.random.default_rng(SEED).standard_normal((rows, 1024), "float32")
    return Problem(x, np.zeros(rows, "int32"), {}, batch=rows)


def numbers(count: int) -> Problem:
    """0, 1, 2, ..., and no network."""
    x = np.arange(count, dtype="float32")
    return Problem(x, x, {}, batch=1)


def parameters(count: int, size: int) -> Problem:
    """Square matrices of normal numbers, and no network."""
    draw = np.random.default_rng(SEED)
    weights = {f"w{i}": [draw.standard_normal((size, size), "float32")] for i in range(count)}
    empty = np.zeros((0,), "float32")
    return Problem(empty, empty, weights, batch=1)


def images(count: int, size: int, batch: int) -> Problem:
    """Images of bytes, and no network."""
    draw = np.random.default_rng(SEED)
    x = draw.integers(256, size=(count, size, size), dtype="uint8")
    return Problem(x, draw.integers(CLASSES, size=count, dtype="int32"), {}, batch)


def rows(draw: np.random.Generator, shape: tuple[int, ...], count: int) -> tuple[Array, Array]:
    """Normal inputs and random labels."""
    x = draw.standard_normal((count, *shape), "float32")
    return x, draw.integers(CLASSES, size=count, dtype="int32")


def dense(draw: np.random.Generator, inputs: int, units: int, is_last: bool) -> list[Array]:
    scale = LAST_SCALE * inputs**-0.5 if is_last else (2 / inputs) ** 0.5
    kernel = draw.standard_normal((inputs, units), "float32") * np.float32(scale)
    return [kernel, np.zeros(units, "float32")]


def attention(draw: np.random.Generator, width: int, heads: int) -> list[Array]:
    """Kernel and bias of queries, keys, values and the output; a head is an axis of its own."""
    split, found = (heads, width // heads), []
    for _ in range(3):
        kernel, bias = dense(draw, width, width, is_last=False)
        found += [kernel.reshape(width, *split), bias.reshape(split)]
    kernel, bias = dense(draw, width, width, is_last=False)
    return [*found, kernel.reshape(*split, width), bias]


def convolution(draw: np.random.Generator, size: int, channels: int, filters: int) -> Array:
    scale = np.float32((2 / (size * size * channels)) ** 0.5)
    return draw.standard_normal((size, size, channels, filters), "float32") * scale


def normalization(channels: int) -> list[Array]:
    one, zero = np.ones(channels, "float32"), np.zeros(channels, "float32")
    return [one, zero, zero, one]
