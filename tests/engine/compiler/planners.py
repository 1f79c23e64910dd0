"""Planners of kernel calls for programs that are not run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from laminar.engine.compiler.ir.launch import Launch
from laminar.engine.compiler.ir.program import KernelArguments, KernelPlanner


@dataclass(frozen=True)
class NotPlanned(KernelPlanner):
    """Stands for a kernel whose launches nobody asks for."""

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        raise AssertionError("it is not run")
