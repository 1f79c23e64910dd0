"""What the executor costs beside the kernels: graphs of operations that do nothing."""

from __future__ import annotations

import numpy as np

from laminar import engine
from laminar.engine.ops.core.basic import identity
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext

from .cases import Case

NODES = 10_000


class Chain(Case):
    """Identities, each of the one before, without native code; the time is that of a node."""

    steps = NODES

    def __init__(self) -> None:
        with engine.Graph().as_default():
            x = engine.placeholder("float32", [4])
            self.plan = Plan(StepGraph(self.fetches(x), [x]))
        self.value = np.ones(4, "float32")
        self.context = StepContext()

    def fetches(self, x: engine.GraphTensor) -> list[engine.GraphTensor]:
        y = x
        for _ in range(NODES):
            y = _identity(y)
        return [y]

    def checks(self) -> list[float]:
        results = self.plan.run([self.value], self.context)
        return [float(len(results)), float(results[-1].sum())]

    def run(self) -> None:
        self.plan.run([self.value], self.context)


class FanOut(Chain):
    """Identities of one tensor."""

    def fetches(self, x: engine.GraphTensor) -> list[engine.GraphTensor]:
        return [_identity(x) for _ in range(NODES)]


def _identity(x: engine.GraphTensor) -> engine.GraphTensor:
    y = identity(x)
    assert isinstance(y, engine.GraphTensor)
    return y


class WhileLoop(Case):
    """A loop whose body adds 1; the time is that of an iteration."""

    steps = NODES

    def __init__(self) -> None:
        self.limit = engine.constant(NODES)

        @engine.function
        def count(limit: engine.Tensor) -> engine.Tensor:
            (i,) = engine.while_loop(lambda i: i < limit, lambda i: (i + 1,), (0,))
            found: engine.Tensor = i
            return found

        self.count = count

    def checks(self) -> list[float]:
        return [float(self.count(self.limit).numpy())]

    def run(self) -> None:
        self.count(self.limit)
