"""AWQ: weights that meet large inputs are scaled up before they are rounded.

Source: Lin et al., "AWQ: activation-aware weight quantization for LLM compression and
    acceleration", 2023, arXiv:2306.00978, section 3.2.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine.errors import InvalidArgumentError
from .configs import AWQConfig
from .gptq import Rounded
from .levels import find_levels

_LEAST = 1e-8


class InputMagnitudes:
    """The largest magnitude of each input.

    Args:
        num_inputs: how many there are.

    Attributes:
        most: (num_inputs,), float32.
        count: how many inputs there were.
    """

    def __init__(self, num_inputs: int) -> None:
        self.most = np.zeros(num_inputs, np.float32)
        self.count = 0

    def add(self, x: Any) -> None:
        """Take in inputs (..., num_inputs).

        Raises:
            InvalidArgumentError: they have another size.
        """
        if x.shape[-1] != len(self.most):
            raise InvalidArgumentError(
                f"AWQ: expected inputs of size {len(self.most)}, got shape {x.shape}"
            )
        rows = np.asarray(x, np.float32).reshape(-1, x.shape[-1])
        if len(rows):
            np.maximum(self.most, np.abs(rows).max(axis=0), out=self.most)
        self.count += len(rows)


class Scaled(NamedTuple):
    """A matrix that was scaled, then rounded: W is about the rounded one / scales.

    Attributes:
        rounded: the numbers.
        scales: of the inputs.
    """

    rounded: Rounded
    scales: Any


def awq_round(weights: Any, inputs: InputMagnitudes, config: AWQConfig) -> Scaled:
    """The matrix in few bits, with the scales s = most ** ratio that change least.

    The ratios tried are 0, 1/n, ..., 1; the change is the mean of ((W - W') * most) ** 2.

    Args:
        weights: (outputs, inputs).
        inputs: what was seen of them.
        config: bits, groups, and n.
    """
    weights = np.asarray(weights, np.float32)
    most = np.where(inputs.most < _LEAST, np.float32(1), inputs.most)
    size = weights.shape[1] if config.group_size == -1 else config.group_size
    groups = np.arange(weights.shape[1]) // size
    best: Scaled | None = None
    least = np.inf
    for i in range(config.num_grid_points + 1):
        scales = np.maximum(most ** np.float32(i / config.num_grid_points), np.float32(1e-4))
        scales = scales / max(np.sqrt(scales.max() * scales.min()), np.float32(_LEAST))
        levels = find_levels(weights * scales, config.weight_bits, group_size=config.group_size)
        numbers = levels.numbers(weights * scales, groups)
        change = (weights - levels.floats(numbers, groups) / scales) * most
        cost = float(np.mean(change**2))
        if best is None or cost < least:
            best, least = Scaled(Rounded(numbers.astype(np.int32), levels, groups), scales), cost
    assert best is not None
    return best
