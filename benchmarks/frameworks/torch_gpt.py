"""The decoder of words in PyTorch, with its fused attention."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn import functional

from ..problems import Array, Problem


class Attention(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Attention to what came before; queries, keys and values are one product."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.split, self.join = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch, length, width = x.shape
        parts = self.split(x).view(batch, length, 3, self.heads, width // self.heads)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        y = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
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


class Decoder(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """Attention and two dense layers, each added to what it is given."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.dense1, self.dense2 = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Any) -> Any:
        x = x + self.attention(self.norm1(x))
        return x + self.dense2(functional.gelu(self.dense1(self.norm2(x))))


class Gpt(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """A decoder of words; the output is the logits of the next ones."""

    def __init__(self, problem: Problem) -> None:
        super().__init__()
        weights = problem.weights
        words, width = weights["words"][0].shape
        self.words = nn.Embedding(words, width)
        self.positions = nn.Embedding(*weights["positions"][0].shape)
        self.names = problem.decoders
        for name in self.names:
            heads = weights[f"{name}-attention"][0].shape[1]
            self.add_module(name, Decoder(width, heads))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words)

    def forward(self, x: Any) -> Any:
        x = self.words(x) + self.positions.weight
        for name in self.names:
            x = self.get_submodule(name)(x)
        return self.head(self.norm(x))
