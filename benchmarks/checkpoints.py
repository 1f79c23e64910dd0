"""Saving and loading of 50 million parameters, and what watching a session costs.

The files lie in a folder that is removed at the end. Each framework writes as it does by itself: a
checkpoint of laminar is forced to the disk, what Keras and safetensors write is not.

To load is to have all values in memory of the parameters' own, each byte touched once. A map of
the file that nobody has read, which `safetensors.torch.load_file` gives by itself, is no load: a
step of training would read the file then, and could not write to it. So safetensors' values are
copied into parameters that are there, as `load_state_dict` does. Laminar besides compares the
checksum of each array; it gives variables their values when all are right, so it reads into other
memory than the variables have, and lets go of theirs.
"""

from __future__ import annotations

import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .cases import Case, seconds_of
from .problems import Array, Problem

_STEPS = 20  # between two checkpoints, so that nothing else of the first is measured


def shown(values: Sequence[Any]) -> list[float]:
    """The first number of each array, and the sum of the first row, to be compared."""
    arrays = [np.asarray(value) for value in values]
    return [float(n) for a in arrays for n in (a.flat[0], a[:1].sum(dtype="float64"))]


class Files(ABC):
    """Arrays that are written, or read, in a folder."""

    def __init__(self, problem: Problem) -> None:
        self.arrays: list[Array] = [array for found in problem.weights.values() for array in found]
        self._folder = tempfile.TemporaryDirectory()
        self.folder = Path(self._folder.name)

    @abstractmethod
    def save(self) -> None:
        """Write all."""

    @abstractmethod
    def load(self) -> Sequence[Any]:
        """Read all into memory of their own."""


class Saving(Case):
    """All arrays written as one file or checkpoint, over the one before."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def checks(self) -> list[float]:
        self.files.save()
        return shown(self.files.load())

    def run(self) -> None:
        self.files.save()


class Loading(Case):
    """All arrays read into memory of their own."""

    def __init__(self, files: Files) -> None:
        self.files = files

    def checks(self) -> list[float]:
        self.files.save()
        return shown(self.files.load())

    def run(self) -> None:
        self.files.load()


class Blocking(Case):
    """What a checkpoint that is written beside it takes of the training: the call that begins it,
    and what the next step takes more than others.

    Args:
        save: begins to write.
        wait: until all is written.
        step: updates all parameters.
        result: the parameters.
    """

    def __init__(self, save: Any, wait: Any, step: Any, result: Any) -> None:
        self._save, self._wait, self._step, self._result = save, wait, step, result

    def checks(self) -> list[float]:
        self._step()
        self._save()
        self._wait()
        return shown(self._result())

    def run(self) -> None:
        self._save()
        self._step()

    def sample(self, number: int) -> float:
        spent = 0.0
        for _ in range(number):
            alone = seconds_of(self._step, 3)
            spent += max(0.0, seconds_of(self.run, 1) - alone)
            self._wait()
            self._step()
        return spent / number


class Hooks(Case):
    """What a hook that does nothing costs a step of a session.

    Args:
        bare: one step of a session without hooks.
        watched: the same with `count` hooks.
        count: of them.
    """

    def __init__(self, bare: Any, watched: Any, count: int) -> None:
        self._bare, self._watched, self._count = bare, watched, count

    def checks(self) -> list[float]:
        return [float(self._bare()), float(self._watched())]

    def run(self) -> None:
        self._bare()
        self._watched()

    def sample(self, number: int) -> float:
        times = [
            (seconds_of(self._watched, _STEPS), seconds_of(self._bare, _STEPS))
            for _ in range(number)
        ]
        return max(0.0, float(np.median([one - other for one, other in times]))) / self._count
