"""The specializations of a cluster: which of them serves which sizes.

A `CompiledProgram` is right for all sizes of a pattern (size_patterns.py).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, TypeAlias

from ...dumps import folder
from ...ops.core.cluster import ClusterBody
from ..codegen import driver_words
from ..ir.kernel_target import Target
from ..lower.cluster_body import ClusterLowering
from ..schedule.buffer_assignment import assign_buffers
from ..target.host import LINE
from ..target.llvm import vector_bytes
from ..target.thread_count import num_threads
from .compiled_program import CompiledProgram
from .dump import dump_kernels, dump_plan, dump_program
from .executable_plan import ExecutablePlan
from .kernel_table import KernelTable
from .loaded_code import LoadedCode
from .planner import Planner
from .size_patterns import SizePatterns

# What refers to a variable's array while a cluster runs: its store, and the list of objects.
_OWN_REFERENCES = 2


_Patterns: TypeAlias = SizePatterns[tuple[CompiledProgram, ClusterLowering]]


class Specializations:
    """The specializations of a body, made when sizes come that none of them serves.

    Args:
        body: the operations of a cluster.
        arrays: its inputs that are arrays of data.
        sizes: its inputs that are sizes.
    """

    def __init__(self, body: ClusterBody, arrays: Sequence[int], sizes: Sequence[int]) -> None:
        self._body = body
        self._arrays = arrays
        self._patterns = _Patterns(body, arrays, sizes)

    @functools.cached_property
    def _places(self) -> dict[str, str]:
        """The user's line for each operation."""
        return {
            step.label: str(step.operation.location)
            for step in self._body.steps
            if step.operation is not None and step.operation.location is not None
        }

    def __len__(self) -> int:
        return len(self._patterns)

    def planned(self, key: Any, *, uses_loaded: bool = False) -> tuple[ExecutablePlan, str, bool]:
        """The executable plan for shapes, why its program had to be compiled, and whether it would
        have other code than what is loaded.

        Args:
            key: the shapes of the arrays, and the sizes.
            uses_loaded: whether to plan with the code that is loaded.
        """
        planner, executable_plan, reason, misses = self._planned(key, uses_loaded)
        if folder() is not None:
            dump_plan(planner.table(self._places))
        return executable_plan, reason, misses

    def explained(
        self, key: Any, *, uses_loaded: bool
    ) -> tuple[ExecutablePlan, KernelTable, list[int]]:
        """The same plan, its kernels, and which of them its launches are of."""
        planner, executable_plan, _, _ = self._planned(key, uses_loaded)
        return executable_plan, planner.table(self._places), planner.launched

    def _planned(self, key: Any, uses_loaded: bool) -> tuple[Planner, ExecutablePlan, str, bool]:
        def plan(
            made: tuple[CompiledProgram, ClusterLowering], values: Sequence[int], is_exact: bool
        ) -> tuple[Planner, ExecutablePlan, bool]:
            available = LoadedCode() if uses_loaded and not is_exact else None
            target = Target(vector_bytes(), num_threads(), bool(values), available)
            planner, executable_plan = self._executable_plan(made, values, target)
            return planner, executable_plan, available is not None and available.misses

        (planner, executable_plan, misses), reason = self._patterns.planned(
            key, self._compile, plan
        )
        return planner, executable_plan, reason, misses

    def _executable_plan(
        self, made: tuple[CompiledProgram, ClusterLowering], values: Sequence[int], target: Target
    ) -> tuple[Planner, ExecutablePlan]:
        """The executable plan of a program for real sizes, and who has made it."""
        compiled, lowering = made
        variables = sorted(lowering.variables)
        externals: dict[int, int] = {}
        wants: list[int] = []
        for i in self._arrays:
            externals[lowering.inputs[i]] = len(wants)
            wants.append(0)
        for i in variables:
            written = lowering.variables[i] in lowering.program.updates
            externals[lowering.variables[i]] = len(wants)
            own = driver_words.WANT_OWN | _OWN_REFERENCES << 8 if written else 0
            storage = lowering.program.storages[lowering.variables[i]]
            is_few = storage.num_elements * storage.dtype.size <= LINE  # next to nothing to gain
            wants.append(own if is_few else driver_words.WANT_LINE | own)
        for view in lowering.program.outputs:
            externals[view.storage] = len(wants)
            wants.append(0)
        planner = Planner(compiled, values, externals, wants, target)
        return planner, planner.plan(variables)

    def _compile(
        self, shapes: Sequence[Any], num_sizes: int
    ) -> tuple[CompiledProgram, ClusterLowering]:
        lowering = ClusterLowering(self._body, shapes, num_sizes)
        dump_program(self._body.name, lowering.program)
        layout = assign_buffers(lowering.program, lowering.builder.copy)
        lowering.program.verify()
        dump_kernels(self._body.name, layout)
        compiled = CompiledProgram(layout, vector_bytes(), self._body.name)
        return compiled, lowering
