"""What a framework costs beside its kernels: an eager op, a call of `fit`, `predict` of one row.

The classes serve laminar and Keras: `k` is either of the two modules.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case, seconds_of
from .frameworks.keras_networks import Training, build, perceptron
from .problems import Problem


class Add(Case):
    """`a + b` of two small tensors, not in a graph."""

    steps = 100

    def __init__(self, k: Any) -> None:
        self.a, self.b = k.ops.ones((4, 4)), k.ops.full((4, 4), 2.0)

    def checks(self) -> list[float]:
        return [float(number) for number in np.asarray(self.a + self.b).ravel()]

    def run(self) -> None:
        a, b = self.a, self.b
        for _ in range(self.steps):
            a + b


class FitCall(Training):
    """What a call of `fit` takes beyond its steps.

    It is the time of `fit` on one batch without the time of a step, which is what each further
    batch adds.
    """

    def __init__(self, k: Any, problem: Problem) -> None:
        super().__init__(k, perceptron, k.optimizers.SGD(1e-3), problem)
        self.steps = 1

    def run(self) -> None:
        self.fit(self.problem.batch)

    def sample(self, number: int) -> float:
        one = seconds_of(self.run, number)
        count, further = len(self.problem.x), self.problem.batches - 1
        all_batches = seconds_of(lambda: self.fit(count), -(-number // further))
        return one - (all_batches - one) / further


class PredictRow(Case):
    """`predict` of one row."""

    def __init__(self, k: Any, problem: Problem) -> None:
        self.model = build(k, perceptron, problem)
        self.row = problem.x[:1]

    def checks(self) -> list[float]:
        return [float(logit) for logit in self.model.predict(self.row, verbose=0)[0]]

    def run(self) -> None:
        self.model.predict(self.row, verbose=0)
