"""The workloads in laminar."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from functools import partial
from importlib import import_module

import numpy as np

import laminar
from laminar import engine
from laminar.datasets import Dataset

from .. import tasks, transfers
from ..cases import Case, FirstUse, Program
from ..executor import Chain, FanOut, WhileLoop
from ..inputs import SCALE, Epoch
from ..problems import Problem
from . import laminar_checkpoints, laminar_contractions, laminar_rows
from .keras_cases import Cases, cases
from .keras_networks import Training, bag


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


class DigitsExample(Program):
    """The example as it is; the model it saves goes to a folder that is removed at the end."""

    def __init__(self, epochs: int) -> None:
        self.folder = tempfile.TemporaryDirectory()
        arguments = ["--epochs", str(epochs), "--folder", self.folder.name]
        super().__init__("examples/digits.py", *arguments)


def image_batches(problem: Problem) -> Epoch:
    images = Dataset.from_tensor_slices((problem.x, problem.y)).shuffle(seed=1)
    return Epoch(problem, images.batch(problem.batch).map(lambda x, y: (x * SCALE, y)))


def loaded_late(module: str, names: Iterable[str]) -> Cases:
    """Cases of a module that is loaded when one of them is made.

    What lets tasks speak with each other takes 20 MB, which are no part of what a training needs.
    """

    def case(name: str, problem: Problem) -> Case:
        found: Case = import_module(f".{module}", __package__).CASES[name](problem)
        return found

    return {name: partial(case, name) for name in names}


CASES: Cases = {
    "import": lambda _: FirstUse("import laminar"),
    "first-add": lambda _: FirstUse("import laminar; a = laminar.ops.ones((4, 4)); a + a"),
    "session-run": lambda _: SessionRun(),
    "executor-chain": lambda _: Chain(),
    "executor-fan-out": lambda _: FanOut(),
    "while-loop": lambda _: WhileLoop(),
    "input-images": image_batches,
    "train-embeddings-lazy": lambda p: Training(
        laminar, bag, laminar.optimizers.Adam(1e-3, lazy=True), p
    ),
    "digits": lambda p: DigitsExample(p.epochs),
    **laminar_checkpoints.CASES,
    **laminar_rows.CASES,
    **laminar_contractions.CASES,
    **loaded_late("laminar_transfers", transfers.NAMES),
    **loaded_late("laminar_clusters", tasks.names()),
    **cases(laminar),
}
