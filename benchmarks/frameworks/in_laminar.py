"""The workloads in laminar."""

from __future__ import annotations

import numpy as np

import laminar
from laminar import engine

from ..cases import Case, FirstUse, Program
from .keras_cases import Cases, cases


class SessionRun(Case):
    """`Session.run` of one small matrix product, fed."""

    def __init__(self) -> None:
        graph = engine.Graph()
        with graph.as_default():
            self.x = engine.placeholder("float32", [None, 4])
            self.y = self.x @ np.full((4, 4), 2.0, "float32")
        self.session = engine.Session(graph=graph)
        self.value = np.ones((2, 4), "float32")

    def checks(self) -> list[float]:
        return [float(number) for number in self.session.run(self.y, {self.x: self.value}).ravel()]

    def run(self) -> None:
        self.session.run(self.y, {self.x: self.value})


CASES: Cases = {
    "import": lambda _: FirstUse("import laminar"),
    "first-add": lambda _: FirstUse("import laminar; a = laminar.ops.ones((4, 4)); a + a"),
    "session-run": lambda _: SessionRun(),
    "digits": lambda p: Program("examples/digits.py", "--epochs", str(p.epochs)),
    **cases(laminar),
}
