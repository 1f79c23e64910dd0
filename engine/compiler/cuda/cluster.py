"""Clusters as CUDA programs: made for the shapes that come, run by the device of the cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from ... import forks
from ...cuda_program import CudaProgram, LoadedProgram, ProgramDevice
from ...graph import Operation, bfloat16, float16, resource
from ...ops.control.structured import WHILE
from ...ops.core.cluster import ClusterBody, run_steps
from ...ops.core.registry import definition_of
from ...ops.linalg.byte_matmul import byte_matmul
from ...ops.linalg.few_bits_matmul import few_bits_matmul
from ...ops.state.variable import VariableStore
from ..ir.machine import Machine
from ..ir.sizes import Sizes, known_sizes
from ..lower.cluster_body import ClusterLowering, variables_of
from ..lower.size_inputs import sizes_among_inputs
from ..plan.fallback import fall_back
from ..plan.size_patterns import SizePatterns
from ..plan.supported_ops import Acceptance
from ..schedule.buffer_assignment import BufferAssignment, assign_buffers
from . import nvrtc
from .planner import CudaPlanner, Externals
from .updates import updates_together

_log = logging.getLogger(__name__)

# Reductions are cut into more parts than on a CPU: there are many more threads.
GPU = Machine(
    part_bytes=1 << 13, most_parts=256, recomputes=True, halves=frozenset({float16, bfloat16})
)


# What the CPU alone has kernels for.
_WITHOUT = frozenset({byte_matmul, few_bits_matmul})


class _Structure:
    """What a body is for any sizes of a pattern."""

    def __init__(self, body: ClusterBody, shapes: Sequence[Any], num_sizes: int) -> None:
        self.lowering = ClusterLowering(body, shapes, num_sizes, GPU)
        builder = self.lowering.builder
        layout = assign_buffers(self.lowering.program, builder.copy, GPU)
        self.lowering.program.verify()
        self.layout: BufferAssignment = updates_together(layout)

    def sizes(self, values: Sequence[int]) -> Sizes:
        """The real sizes, with those that are derived from them."""
        return Sizes(known_sizes(values, self.layout.program.derived.values()))


class CudaPrograms:
    """The programs of a body, for the shapes that come.

    Args:
        body: the operations of a cluster.

    Attributes:
        arrays: its inputs that are arrays of data.
        sizes: its inputs that are sizes.
        variables: its inputs that are handles of variables that it reads or writes.
    """

    def __init__(self, body: ClusterBody) -> None:
        self._body = body
        self.sizes = sizes_among_inputs(body)
        specs = body.specs[: body.num_inputs]
        self.arrays = [
            i for i, s in enumerate(specs) if s.dtype != resource and i not in self.sizes
        ]
        self.variables = sorted(variables_of(body))
        self._patterns = SizePatterns[_Structure](body, self.arrays, self.sizes)

    def program(self, key: Any) -> CudaProgram:
        """The program for some shapes of the arrays, and sizes.

        Raises:
            NotLoweredError: there is none.
        """

        def make(shapes: Sequence[Any], num_sizes: int) -> _Structure:
            return _Structure(self._body, shapes, num_sizes)

        return self._patterns.planned(key, make, self._plan)[0]

    def _plan(self, made: _Structure, values: Sequence[int], _: bool) -> CudaProgram:
        lowering, sizes = made.lowering, made.sizes(values)
        externals = Externals(
            {lowering.inputs[i]: k for k, i in enumerate(self.arrays)},
            {lowering.variables[i]: k for k, i in enumerate(self.variables)},
            {view.storage: k for k, view in enumerate(lowering.program.outputs)},
        )
        return CudaPlanner(made.layout, sizes.real, externals).plan()


class CudaCluster:
    """A body as a function of a kernel context and its inputs."""

    def __init__(self, body: ClusterBody, device: ProgramDevice) -> None:
        self._body = body
        self._device = device
        self._lock = forks.lock()
        self._programs = CudaPrograms(body)
        self._loaded: dict[Any, LoadedProgram | None] = {}  # None: the reference kernels run

    def __call__(self, context: Any, *inputs: Any) -> list[Any]:
        """The outputs for inputs; variables among them are updated."""
        programs = self._programs
        stores = [inputs[i] for i in programs.variables]
        key = self._key(inputs)
        found = self._loaded.get(key)
        if found is None and key not in self._loaded:
            found = self._load(key)
        if found is not None and _are_usable(stores):
            outputs = found.run([inputs[i] for i in programs.arrays], stores)
            if outputs is not None:
                return outputs
        return run_steps(context, *inputs, body=self._body)

    def _key(self, inputs: Sequence[Any]) -> Any:
        programs = self._programs
        shapes = tuple([tuple(inputs[i].shape) for i in programs.arrays])
        return (*shapes, *(int(inputs[i]) for i in programs.sizes))

    def _load(self, key: Any) -> LoadedProgram | None:
        with self._lock:
            if key in self._loaded:
                return self._loaded[key]
            found = None
            if not any(0 in shape for shape in key if isinstance(shape, tuple)):
                try:
                    program = self._programs.program(key)
                    images = nvrtc.images_of(program.kernels, self._device.architecture)
                    found = self._device.load_program(program, images)
                except Exception as error:
                    fall_back(self._body.name, error)
            self._loaded[key] = found
            return found


def _are_usable(stores: Sequence[VariableStore]) -> bool:
    """Whether variables have values, and no two handles are of one."""
    return len({id(s) for s in stores}) == len(stores) and all(
        store.value_or_none() is not None for store in stores
    )


class CudaCompiler:
    """Compiles clusters for the GPUs of this process; see `Compiler` in ops/core/cluster.py."""

    def __init__(self) -> None:
        self._acceptance = Acceptance()

    def prepare(self) -> None:
        """Nothing: the compiler is loaded when it is first used."""

    def accepts(self, operations: Sequence[Operation]) -> list[bool]:
        """Which operations have a form as CUDA kernels."""
        try:
            found = self._acceptance(operations)
        except Exception as error:
            fall_back("a graph", error)
            return [False] * len(operations)
        return [
            is_so and op.definition not in WHILE and definition_of(op) not in _WITHOUT
            for is_so, op in zip(found, operations, strict=True)
        ]

    def build(self, body: ClusterBody) -> Callable[..., Any] | None:
        """The function of a body; None where its device runs no programs, or nothing makes them."""
        device: Any = body.device
        if not hasattr(device, "load_program"):
            return None
        reason = nvrtc.why_not() if device.architecture else ""
        if reason:
            _log.warning("%s runs op by op: %s", body.name, reason)
            return None
        return CudaCluster(body, device)
