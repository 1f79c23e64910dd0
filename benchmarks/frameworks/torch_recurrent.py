"""The recurrent network in PyTorch, with its own LSTM."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ..problems import Array, Problem


class Lstm(nn.Module):  # type: ignore[misc]  # torch is Any to the type checker
    """The output of the last step."""

    def __init__(self, features: int, units: int) -> None:
        super().__init__()
        self.layer = nn.LSTM(features, units, batch_first=True)

    def forward(self, x: Any) -> Any:
        return self.layer(x)[0][:, -1]

    def load(self, kernel: Array, recurrent_kernel: Array, bias: Array) -> None:
        """Take Keras's weights, whose gates come in torch's order; of two biases one is zeros."""
        layer = self.layer
        values = (kernel.T, recurrent_kernel.T, bias, bias * 0)
        names = ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0")
        with torch.no_grad():
            for name, value in zip(names, values, strict=True):
                getattr(layer, name).copy_(torch.from_numpy(value.copy()))


def recurrent(problem: Problem) -> Any:
    """An LSTM, and a dense layer on its last output."""
    features, width = problem.weights["lstm"][0].shape
    net = nn.Sequential()
    net.add_module("lstm", Lstm(features, width // 4))
    net.add_module("dense", nn.Linear(width // 4, problem.units("dense")))
    return net
