"""Functions of one array in laminar, and an update by its Adam."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import laminar

from ..cases import Case
from ..problems import Problem
from ..rows import ends, on_rows
from ..workloads import CHECKED_STEPS


class Rows(Case):
    """A function of the numbers."""

    def __init__(self, function: Callable[[Any], Any], problem: Problem) -> None:
        self.x = laminar.ops.convert_to_tensor(problem.x)
        self.function = laminar.function(function)

    def checks(self) -> list[float]:
        return ends(self.function(self.x))

    def run(self) -> None:
        self.function(self.x)


class Updates(Case):
    """Updates of the numbers, which are their own first gradient."""

    def __init__(self, problem: Problem) -> None:
        self.weights = laminar.Variable(problem.x, name="x")
        self.gradient = laminar.ops.convert_to_tensor(problem.x)
        optimizer = laminar.optimizers.Adam(1e-3)
        optimizer.build([self.weights])
        self.update = laminar.function(lambda g: optimizer.apply([g], [self.weights]))

    def checks(self) -> list[float]:
        for _ in range(CHECKED_STEPS):
            self.run()
        return ends(self.weights)

    def run(self) -> None:
        self.update(self.gradient)


CASES = on_rows(
    {
        "softmax": partial(Rows, laminar.ops.softmax),
        "layer-norm": partial(Rows, lambda x: laminar.ops.layer_normalization(x, epsilon=1e-5)),
        "gelu": partial(Rows, lambda x: laminar.ops.gelu(x, approximate=False)),
        "adam": Updates,
    }
)
