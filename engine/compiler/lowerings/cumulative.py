"""Running sums, products and recurrences along an axis."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...graph import bool_, float32, float64
from ..builder import Builder
from ..emit import NotLoweredError
from ..kernels.launch import Buffer
from ..kernels.scan import plan_scan
from ..program import Operand, View
from .contractions import target
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
    shape, dtype = b.shape(x), step.dtypes[0]
    if dtype == bool_ or (dtype.is_floating and dtype not in (float32, float64)):
        raise NotLoweredError(f"{step.type} of {dtype}")
    axis = step.attrs["axis"] % len(shape)
    sizes = (math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :]))

    def plan(real: Callable[[int], int], inputs: Any, outputs: Any) -> Any:
        outer, size, inner = map(real, sizes)
        own, *others = inputs
        return plan_scan(
            kind,
            Buffer(own),
            Buffer(others[0]) if others else None,
            Buffer(outputs[0]),
            (outer, size, inner),
            dtype,
            target(),
            reverse=step.attrs["reverse"],
        )

    return b.library(kind, [x, *factors], [(shape, dtype)], plan)[0]
