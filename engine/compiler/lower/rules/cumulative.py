"""Running sums, products and recurrences along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....graph import DType, bool_, float32, float64
from ...ir.builder import Builder
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import KernelArguments, KernelPlanner, Operand, View
from ...kernels.other.scan import plan_scan
from .slicing import shifted
from .table import Lowered, lowers


@lowers("Cumsum")
def _cumsum(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _running(b, step, "sum", x, 0.0)


@lowers("Cumprod")
def _cumprod(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _running(b, step, "prod", x, 1.0)


@lowers("LinearRecurrence")
def _recurrence(b: Builder, step: Lowered, factor: Operand, x: Operand) -> Operand:
    return _scan(b, step, "recurrence", x, factor)


def _running(b: Builder, step: Lowered, kind: str, x: Operand, first: float) -> Operand:
    y = _scan(b, step, kind, x)
    if not step.attrs["exclusive"]:
        return y
    return shifted(b, y, step.attrs["axis"], reverse=step.attrs["reverse"], fill=first)


def _scan(b: Builder, step: Lowered, kind: str, x: Operand, *factors: Operand) -> View:
    axis = step.attrs["axis"] % len(b.shape(x))
    return running(b, kind, x, axis, *factors, reverse=step.attrs["reverse"])


def running(
    b: Builder, kind: str, x: Operand, axis: int, *factors: Operand, reverse: bool = False
) -> View:
    """Running sums, products or a recurrence (see kernels/scan.py) along an axis.

    Raises:
        NotLoweredError: they are of a type that the kernels do not have.
    """
    shape, dtype = b.shape(x), b.dtype(x)
    if dtype == bool_ or (dtype.is_floating and dtype not in (float32, float64)):
        raise NotLoweredError(f"running {kind} of {dtype}")
    sizes = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))
    planner = ScanPlanner(kind, sizes, dtype, reverse)
    return b.kernel_call(kind, [x, *factors], [(shape, dtype)], planner)[0]


@dataclass(frozen=True)
class ScanPlanner(KernelPlanner):
    """A scan along the middle one of three axes; of a recurrence, with factors."""

    kind: str = field(repr=False)
    sizes: tuple[int, int, int]
    dtype: DType = field(repr=False)
    reverse: bool

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        outer, size, inner = map(arguments.real, self.sizes)
        x, *factors = arguments.inputs
        return plan_scan(
            self.kind,
            x,
            factors[0] if factors else None,
            arguments.outputs[0],
            (outer, size, inner),
            self.dtype,
            arguments.target,
            reverse=self.reverse,
        )
