"""Running sums, products and recurrences along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....graph import bool_, float32, float64
from ...ir.builder import Builder
from ...ir.kernel_target import Target
from ...ir.launch import Buffer
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, View
from ...kernels.other.scan import plan_scan
from .table import Lowered, lowers


@lowers("Cumsum")
def _cumsum(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _scan(b, step, "sum", x)


@lowers("Cumprod")
def _cumprod(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _scan(b, step, "prod", x)


@lowers("LinearRecurrence")
def _recurrence(b: Builder, step: Lowered, factor: Operand, x: Operand) -> Operand:
    return _scan(b, step, "recurrence", x, factor)


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

    def plan(real: Callable[[int], int], target: Target, inputs: Any, outputs: Any) -> Any:
        outer, size, inner = map(real, sizes)
        own, *others = inputs
        return plan_scan(
            kind,
            Buffer(own),
            Buffer(others[0]) if others else None,
            Buffer(outputs[0]),
            (outer, size, inner),
            dtype,
            target,
            reverse=reverse,
        )

    return b.kernel_call(kind, [x, *factors], [(shape, dtype)], plan)[0]
