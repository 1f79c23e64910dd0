"""Data in several forms that all say the same, and a model that learns it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import laminar
from laminar import layers, optimizers
from laminar.datasets import Dataset
from laminar.utils import PyDataset

rng = np.random.default_rng(0)
X = rng.normal(size=(40, 3)).astype("float32")
Y = (X @ np.array([[1.0], [-2.0], [0.5]]) + 0.1).astype("float32")
W = rng.uniform(0.5, 2.0, 40).astype("float32")


def linear(**options: Any) -> laminar.Sequential:
    model = laminar.Sequential(
        [layers.Input((3,)), layers.Dense(1, kernel_initializer="ones", name="head")]
    )
    given: dict[str, Any] = {"optimizer": optimizers.SGD(0.1), "loss": "mse"}
    model.compile(**(given | options))
    return model


class Numbered(PyDataset):
    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        rows = slice(10 * index, 10 * index + 10)
        return X[rows], Y[rows], W[rows]


def endless() -> Iterator[Any]:
    while True:
        for i in range(0, 40, 10):
            yield X[i : i + 10], Y[i : i + 10], W[i : i + 10]


def sliced() -> Dataset:
    return Dataset.from_tensor_slices((X, Y, W))


ARRAYS: dict[str, Any] = {"batch_size": 10, "shuffle": False}


class Endless(Numbered):
    @property
    def num_batches(self) -> int | None:
        return None

    def __getitem__(self, index: int) -> Any:
        return super().__getitem__(index % 4)
