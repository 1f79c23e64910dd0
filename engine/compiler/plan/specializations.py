"""The specializations of a cluster: which of them serves which sizes.

A `CompiledProgram` is right for all sizes of a pattern: where it takes two for equal, they must be;
where it does not, they may be.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from ...dumps import folder
from ...errors import InvalidArgumentError
from ...ops.core.cluster import ClusterBody
from ..codegen import driver
from ..ir.kernel_target import Target
from ..ir.not_lowered import NotLoweredError
from ..ir.sizes import symbolic_size
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

# What refers to a variable's array while a cluster runs: its store, and the list of objects.
_OWN_REFERENCES = 2
# Raised where sizes are taken for different that must be equal, or do not allow what is asked for.
_DO_NOT_FIT = (InvalidArgumentError, NotLoweredError)
# For each unknown size a number; sizes of one number are equal whenever a structure serves them.
_Pattern: TypeAlias = tuple[int, ...]


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
        self._sizes = sizes
        self._specializations: dict[_Pattern, tuple[CompiledProgram, ClusterLowering]] = {}
        self._failed: set[_Pattern] = set()  # those that have none
        self._exact: dict[
            Any, tuple[CompiledProgram, ClusterLowering]
        ] = {}  # that serve no other sizes

    @functools.cached_property
    def _places(self) -> dict[str, str]:
        """The user's line for each operation."""
        return {
            step.label: str(step.operation.location)
            for step in self._body.steps
            if step.operation is not None and step.operation.location is not None
        }

    def __len__(self) -> int:
        return len(self._specializations) + len(self._exact)

    def planned(self, key: Any, *, uses_loaded: bool = False) -> tuple[ExecutablePlan, str, bool]:
        """The executable plan for shapes, why its structure had to be made, and whether it would
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
        sizes = self._unknown(key)
        for pattern in self._patterns(sizes):
            reason = ""
            with contextlib.suppress(*_DO_NOT_FIT):
                if pattern not in self._specializations:
                    reason = "sizes for which there is no plan on disk"
                    if self._specializations:
                        reason = "other sizes are equal than before"
                    try:
                        made = self._structure(self._given(key, pattern), len({*pattern}))
                    except _DO_NOT_FIT:
                        self._failed.add(pattern)
                        raise
                    self._specializations[pattern] = made
                values = [n for n, _ in dict(sorted(zip(pattern, sizes, strict=True))).values()]
                stock = LoadedCode() if uses_loaded else None
                target = Target(vector_bytes(), num_threads(), bool(values), stock)
                made = self._specializations[pattern]
                planner, executable_plan = self._executable_plan(made, values, target)
                return planner, executable_plan, reason, stock is not None and stock.misses
        reason = ""
        if key not in self._exact:  # only right for these very sizes
            reason = "sizes that depend on each other"
            self._exact[key] = self._structure(self._given(key), 0)
        target = Target(vector_bytes(), num_threads())
        planner, executable_plan = self._executable_plan(self._exact[key], [], target)
        return planner, executable_plan, reason, False

    def _executable_plan(
        self, made: tuple[CompiledProgram, ClusterLowering], values: Sequence[int], target: Target
    ) -> tuple[Planner, ExecutablePlan]:
        """The executable plan of a structure for real sizes, and who has made it."""
        structure, lowering = made
        variables = sorted(lowering.variables)
        externals: dict[int, int] = {}
        wants: list[int] = []
        for i in self._arrays:
            externals[lowering.inputs[i]] = len(wants)
            wants.append(0)
        for i in variables:
            written = lowering.variables[i] in lowering.program.updates
            externals[lowering.variables[i]] = len(wants)
            own = driver.WANT_OWN | _OWN_REFERENCES << 8 if written else 0
            storage = lowering.program.storages[lowering.variables[i]]
            is_few = storage.num_elements * storage.dtype.size <= LINE  # next to nothing to gain
            wants.append(own if is_few else driver.WANT_LINE | own)
        for view in lowering.program.outputs:
            externals[view.storage] = len(wants)
            wants.append(0)
        planner = Planner(structure, values, externals, wants, target)
        return planner, planner.plan(variables)

    def _given(self, key: Any, pattern: _Pattern | None = None) -> list[Any]:
        """What each input is: a shape, or the number that a size is.

        With a pattern, unknown sizes are symbolic sizes.
        """
        given: list[Any] = [()] * self._body.num_inputs
        numbers = None if pattern is None else iter(pattern)
        for i, part in zip((*self._arrays, *self._sizes), key, strict=True):
            if numbers is None:
                given[i] = part
            elif isinstance(part, int):
                given[i] = symbolic_size(next(numbers))
            else:
                dims = zip(self._body.specs[i].shape, part, strict=True)
                given[i] = tuple(symbolic_size(next(numbers)) if d is None else n for d, n in dims)
        return given

    def _unknown(self, key: Any) -> list[tuple[int, bool]]:
        """The unknown sizes in order, and whether each is a number of examples: of a first axis."""
        found = list[tuple[int, bool]]()
        for i, part in zip((*self._arrays, *self._sizes), key, strict=True):
            if isinstance(part, int):
                found.append((part, (part, True) in found))
            else:
                dims = zip(self._body.specs[i].shape, part, strict=True)
                found += [(n, axis == 0) for axis, (d, n) in enumerate(dims) if d is None]
        return found

    def _patterns(self, sizes: Sequence[tuple[int, bool]]) -> list[_Pattern]:
        """The patterns that may serve sizes: those that have a structure, then what to try.

        That there are as many examples as steps, say, is taken for chance, unless it must be so.
        """
        real = [n for n, _ in sizes]
        there = [p for p in self._specializations if len({*zip(p, real, strict=True)}) == len({*p})]
        there.sort(key=lambda p: len({*p}))
        found = dict.fromkeys([*there, _numbered(sizes), _numbered(real)])
        return [p for p in found if p not in self._failed]

    def _structure(
        self, shapes: Sequence[Any], num_sizes: int
    ) -> tuple[CompiledProgram, ClusterLowering]:
        lowering = ClusterLowering(self._body, shapes, num_sizes)
        dump_program(self._body.name, lowering.program)
        layout = assign_buffers(lowering.program, lowering.builder.copy)
        lowering.program.verify()
        dump_kernels(self._body.name, layout)
        structure = CompiledProgram(
            layout, lowering.builder.derived, vector_bytes(), self._body.name
        )
        return structure, lowering


def _numbered(sizes: Iterable[Any]) -> _Pattern:
    """The pattern of what is equal."""
    numbers: dict[Any, int] = {}
    return tuple([numbers.setdefault(x, len(numbers)) for x in sizes])
