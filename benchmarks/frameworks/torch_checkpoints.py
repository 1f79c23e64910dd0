"""Saving and loading in torch: safetensors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..cases import Case
from ..checkpoints import Files, Loading, Saving
from ..problems import Problem

try:
    from safetensors.torch import load_file, save_file
except ImportError:  # torch is compared without these workloads
    HAS_SAFETENSORS = False
else:
    HAS_SAFETENSORS = True


class Safetensors(Files):
    """Parameters in a .safetensors file, read into parameters that are there."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem)
        self.parameters = {
            str(i): torch.from_numpy(array.copy()) for i, array in enumerate(self.arrays)
        }
        self.path = str(self.folder / "saved.safetensors")

    def save(self) -> None:
        save_file(self.parameters, self.path)

    def load(self) -> Sequence[Any]:
        for name, value in load_file(self.path).items():
            self.parameters[name].copy_(value)
        return list(self.parameters.values())


CASES: dict[str, Callable[[Problem], Case]] = {}
if HAS_SAFETENSORS:
    CASES["save-50m"] = lambda p: Saving(Safetensors(p))
    CASES["load-50m"] = lambda p: Loading(Safetensors(p))
