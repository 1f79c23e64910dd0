"""Saving and loading in Keras: .weights.h5."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..cases import Case
from ..checkpoints import Files, Loading, Saving
from ..problems import Problem


class Weights(Files):
    """A stack of dense layers without biases."""

    def __init__(self, k: Any, problem: Problem) -> None:
        super().__init__(problem)
        units = self.arrays[0].shape[0]
        layers = [k.layers.Dense(units, use_bias=False) for _ in self.arrays]
        self.model = k.Sequential([k.layers.Input((units,)), *layers])
        self.model.set_weights(self.arrays)
        self.path = self.folder / "saved.weights.h5"

    def save(self) -> None:
        self.model.save_weights(self.path)

    def load(self) -> Sequence[Any]:
        self.model.load_weights(self.path)
        return [weight.numpy() for weight in self.model.weights]


def cases(k: Any) -> dict[str, Callable[[Problem], Case]]:
    """By name, what prepares a workload in `k`."""
    return {
        "save-50m": lambda p: Saving(Weights(k, p)),
        "load-50m": lambda p: Loading(Weights(k, p)),
    }
