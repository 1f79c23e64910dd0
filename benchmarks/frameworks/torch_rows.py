"""Functions of one array in PyTorch, and its fused Adam."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from ..cases import Case
from ..problems import Problem
from ..rows import ends, on_rows
from ..workloads import CHECKED_STEPS


class Rows(Case):
    """A function of the numbers."""

    def __init__(self, function: Callable[[Any], Any], problem: Problem, is_compiled: bool) -> None:
        self.x = torch.from_numpy(problem.x)
        self.function = torch.compile(function) if is_compiled else function

    def checks(self) -> list[float]:
        return ends(self.function(self.x))

    def run(self) -> None:
        self.function(self.x)


class Updates(Case):
    """Updates of the numbers, which are their own first gradient."""

    def __init__(self, problem: Problem, is_compiled: bool) -> None:
        self.weights = torch.tensor(problem.x, requires_grad=True)
        self.weights.grad = torch.tensor(problem.x)
        optimizer = torch.optim.Adam([self.weights], lr=1e-3, eps=1e-7, fused=not is_compiled)
        self.update = torch.compile(optimizer.step) if is_compiled else optimizer.step

    def checks(self) -> list[float]:
        for _ in range(CHECKED_STEPS):
            self.update()
        return ends(self.weights.detach())

    def run(self) -> None:
        self.update()


def softmax(x: Any) -> Any:
    return functional.softmax(x, -1)


def layer_norm(x: Any) -> Any:
    return functional.layer_norm(x, x.shape[-1:])


def rows_cases(is_compiled: bool) -> dict[str, Callable[[Problem], Case]]:
    """The workloads, run as they are or by torch.compile."""
    functions = {"softmax": softmax, "layer-norm": layer_norm, "gelu": functional.gelu}
    return on_rows(
        {
            **{
                name: partial(Rows, function, is_compiled=is_compiled)
                for name, function in functions.items()
            },
            "adam": partial(Updates, is_compiled=is_compiled),
        }
    )
