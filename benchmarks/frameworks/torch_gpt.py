"""Transformers in PyTorch, with its fused attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..problems import Array, Problem


class Attention(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Attention to all, or to what came before; queries, keys and values are one product."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.split, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.split(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        attend = functional.scaled_dot_product_attention
        y = attend(query, key, value, is_causal=self.is_causal)
        return self.join(y.transpose(1, 2).reshape(x.shape))

    def load(self, *arrays: Array) -> None:
        """Take Keras's weights, kernels and biases in turn."""
        *inner, kernel, bias = (torch.from_numpy(array.copy()) for array in arrays)
        width = len(bias)
        with torch.no_grad():
            self.split.weight.copy_(torch.cat([w.reshape(width, width).T for w in inner[::2]]))
            self.split.bias.copy_(torch.cat([b.flatten() for b in inner[1::2]]))
            self.join.weight.copy_(kernel.reshape(width, width).T)
            self.join.bias.copy_(bias)


class Block(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Attention and two dense layers, each added to what it is given."""

    def __init__(self, width: int, heads: int, is_causal: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads, is_causal)
        self.dense1, self.dense2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.dense2(functional.gelu(self.dense1(self.norm2(x))))


class Transformer(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Blocks, and the normalization behind them."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        self.names = problem.decoders
        for name in self.names:
            width, heads, _ = problem.weights[f"{name}-attention"][0].shape
            self.add_module(name, Block(width, heads, problem.is_causal))
        self.norm = nn.LayerNorm(width)

    def blocks(self, x: Any) -> Any:
        for name in self.names:
            x = self.get_submodule(name)(x)
        return self.norm(x)


class Gpt(Transformer):
    """A decoder of words, or an encoder; the output is the logits of the next, or of all."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        words, width = problem.weights["words"][0].shape
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(*problem.weights["positions"][0].shape)
        self.head = nn.Linear(width, words)

    def forward(self, x: Any) -> Any:
        return self.head(self.blocks(self.words(x) + self.positions.weight))


class Vit(Transformer):
    """An encoder of the patches of images, and a dense layer."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        size, _, channels, width = problem.weights["patches"][0].shape
        self.patches = nn.Conv2d(channels, width, size, stride=size)
        self.positions = nn.Embedding(*problem.weights["positions"][0].shape)
        self.dense = nn.Linear(width, problem.units("dense"))

    def forward(self, x: Any) -> Any:
        x = self.patches(x).permute(0, 2, 3, 1).flatten(1, 2)
        return self.dense(self.blocks(x + self.positions.weight).mean(1))
