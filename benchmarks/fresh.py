"""Trainings in processes of their own: how long the first step takes, how much memory they need.

A process has caches of compiled code, as far as its framework keeps one, in a folder of its own:
cold caches are empty, warm ones are those of an earlier process that did the same.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from .cases import Case, printed_by
from .problems import Problem

# workload -> the one whose training it starts
TRAININGS = {
    "first-step-mlp": "train-mlp",
    "first-step-mlp-cold": "train-mlp",
    "first-step-resnet20": "train-resnet20",
    "first-step-resnet20-cold": "train-resnet20",
    **{f"memory-{name}": f"train-{name}" for name in ("mlp", "convnet", "resnet20", "gpt", "lstm")},
}

_CACHES = ("LAMINAR_CACHE", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
# Whatever was compiled is kept, however small and quick it was.
_KEEP_ALL = {
    "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
}


def cases(
    framework: str, others: Mapping[str, Callable[[Problem], Case]], is_tiny: bool
) -> dict[str, Callable[[Problem], Case]]:
    """The workloads here that a framework has, by its other ones."""

    def starter(name: str) -> Callable[[Problem], Case]:
        kind = PeakMemory if name.startswith("memory") else FirstStep
        return lambda _: kind(framework, name, is_tiny)

    found = {name: starter(name) for name, training in TRAININGS.items() if training in others}
    if "digits" in others:
        found["digits-epoch"] = others["digits"]
    return found


class FreshTraining(Case):
    """A process that trains; see training_process.py."""

    is_fresh_process = True

    def __init__(self, framework: str, workload: str, is_tiny: bool) -> None:
        self.arguments = [framework, workload, *(["--tiny"] if is_tiny else [])]
        self.folder = tempfile.TemporaryDirectory()

    def checks(self) -> list[float]:
        losses = self.trained(self.folder.name)["losses"]
        return [float(loss) for loss in losses]

    def run(self) -> None:
        self.trained(self.folder.name)

    def trained(self, folder: str) -> dict[str, Any]:
        """What a process with its caches in `folder` reports."""
        variables = {name: str(Path(folder, name.lower())) for name in _CACHES} | _KEEP_ALL
        printed = printed_by(
            "-m", f"{__package__}.training_process", *self.arguments, variables=variables
        )
        report: dict[str, Any] = json.loads(printed.splitlines()[-1])
        return report


class FirstStep(FreshTraining):
    """The seconds of the first step of a model that has been built."""

    def sample(self, number: int) -> float:
        return sum(self.seconds() for _ in range(number)) / number

    def seconds(self) -> float:
        if not self.arguments[1].endswith("-cold"):
            return float(self.trained(self.folder.name)["seconds"])
        with tempfile.TemporaryDirectory() as empty:
            return float(self.trained(empty)["seconds"])


class PeakMemory(FreshTraining):
    """The most memory that the process holds, in bytes."""

    def sample(self, number: int) -> float:
        return max(float(self.trained(self.folder.name)["bytes"]) for _ in range(number))
