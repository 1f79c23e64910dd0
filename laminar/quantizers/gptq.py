"""GPTQ: rounding a matrix input by input, each error made good by the inputs after it.

Source: Frantar et al., "GPTQ: accurate post-training quantization for generative pre-trained
    transformers", 2022, arXiv:2210.17323, algorithm 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..engine.errors import InvalidArgumentError
from .configs import GPTQConfig
from .levels import Levels, find_levels

# So many inputs are rounded before what comes after them is told.
_BLOCK = 128


class Rounded(NamedTuple):
    """A matrix as whole numbers.

    Attributes:
        numbers: (outputs, inputs).
        levels: what they stand for.
        groups: the group of each input.
    """

    numbers: Any
    levels: Levels
    groups: Any


class InputProducts:
    """The mean of 2 x x' over inputs x, which is what errors of weights cost: the Hessian.

    Args:
        num_inputs: the size of x.

    Attributes:
        mean: (num_inputs, num_inputs), float32.
        count: how many inputs there were.
    """

    def __init__(self, num_inputs: int) -> None:
        self.mean = np.zeros((num_inputs, num_inputs), np.float32)
        self.count = 0

    def add(self, x: Any) -> None:
        """Take in inputs (..., num_inputs).

        Raises:
            InvalidArgumentError: they have another size.
        """
        if x.shape[-1] != len(self.mean):
            raise InvalidArgumentError(
                f"GPTQ: expected inputs of size {len(self.mean)}, got shape {x.shape}"
            )
        rows = np.asarray(x, np.float32).reshape(-1, x.shape[-1])
        count = self.count + len(rows)
        if len(rows):
            self.mean *= self.count / count
            self.mean += (2 / count) * (rows.T @ rows)
        self.count = count


def gptq_round(weights: Any, inputs: InputProducts, config: GPTQConfig) -> Rounded:
    """The matrix in few bits that changes what it gives for `inputs` little.

    Args:
        weights: (outputs, inputs).
        inputs: what was seen of them.
        config: bits, groups, damping and order.
    """
    weights = np.array(weights, np.float32)
    hessian = inputs.mean.astype(np.float64)
    diagonal = np.diag(hessian).copy()
    diagonal[diagonal == 0] = 1  # inputs that are always 0 cost nothing
    np.fill_diagonal(hessian, diagonal + config.hessian_damping * diagonal.mean())
    num_inputs = weights.shape[1]
    order = np.arange(num_inputs)
    if config.activation_order:
        order = np.argsort(-diagonal, kind="stable")
        weights, hessian = weights[:, order], hessian[np.ix_(order, order)]
    # Row i of the upper factor says how the error of input i is made good by those after it.
    upper = np.linalg.cholesky(np.linalg.inv(hessian)).T.astype(np.float32)
    size = num_inputs if config.group_size == -1 else config.group_size
    groups = np.arange(num_inputs) // size
    numbers = np.empty(weights.shape, np.int32)
    found: list[Levels] = []
    for begin in range(0, num_inputs, _BLOCK):
        block = slice(begin, min(begin + _BLOCK, num_inputs))
        errors = np.empty((len(weights), block.stop - begin), np.float32)
        for i in range(begin, block.stop):
            if groups[i] == len(found):
                group = weights[:, i : i + size]
                found.append(
                    find_levels(
                        group,
                        config.weight_bits,
                        symmetric=config.symmetric,
                        per_channel=config.per_channel,
                    )
                )
            column, first = weights[:, i : i + 1], np.zeros(1, int)
            numbers[:, i : i + 1] = found[-1].numbers(column, first)
            kept = found[-1].floats(numbers[:, i : i + 1], first)
            error = (column - kept) / upper[i, i]
            errors[:, i - begin : i - begin + 1] = error
            weights[:, i + 1 : block.stop] -= error * upper[i, i + 1 : block.stop]
        weights[:, block.stop :] -= errors @ upper[block, block.stop :]
    back = np.argsort(order)
    scale, zero = (
        np.concatenate([getattr(each, name) for each in found], axis=1)
        for name in ("scale", "zero")
    )
    return Rounded(numbers[:, back], Levels(scale, zero, found[0].most), groups[back])
