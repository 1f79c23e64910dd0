"""Input pipelines: images shuffled, put into batches and normalised; no step follows."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .cases import Case
from .problems import Problem

SCALE = np.float32(1 / 255)


class Epoch(Case):
    """A pass over all batches; a step is a batch.

    Args:
        problem: the images, uint8, and their labels.
        batches: gives (float images, labels) again and again, in another order each time.
    """

    def __init__(self, problem: Problem, batches: Iterable[Any]) -> None:
        self.batches = batches
        self.steps = -(-len(problem.x) // problem.batch)

    def checks(self) -> list[float]:
        """What no order changes: the mean of all pixels, the number and the sum of the labels."""
        pairs = [(np.asarray(x), np.asarray(y)) for x, y in self.batches]
        assert all(x.dtype == "float32" for x, _ in pairs)
        labels = np.concatenate([y for _, y in pairs])
        pixels = sum(float(x.sum(dtype="float64")) for x, _ in pairs)
        return [pixels / len(labels), float(len(labels)), float(labels.sum())]

    def run(self) -> None:
        for _ in self.batches:
            pass
