"""Products with whole numbers of few bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from ....graph import float32, int32
from ...ir.builder import Builder
from ...ir.launch import Launch
from ...ir.not_lowered import NotLoweredError
from ...ir.program import KernelArguments, KernelPlanner, Operand, View
from ...ir.sizes import is_known, shown
from ...kernels.low_bits.byte_products import plan_byte_product, plan_byte_sums
from ...kernels.low_bits.weight_products import plan_weight_product
from ...target.byte_unit import byte_unit
from .joining import copy_into
from .slicing import zeros
from .table import Lowered, lowers

_QUAD = 4


@lowers("ByteMatMul")
def _byte_matmul(b: Builder, step: Lowered, x: Operand, y: Operand) -> Operand:
    (*lead, inner), (_, columns) = b.shape(x), b.shape(y)
    _check_terms(step, inner)
    rows = math.prod(lead)
    is_transposed = isinstance(y, View) and y.strides[1] != 1 and y.strides[0] == 1
    if is_transposed:
        y = b.transpose(y, [1, 0])
    planner = _ByteProductPlanner((rows, columns, inner), is_transposed)
    x = _filled_up(b, x, _QUAD)
    totals = b.reduce("sum", b.cast(b.reshape(x, (rows, b.shape(x)[-1])), int32), [1])
    shapes = [((*lead, columns), int32)]
    work = rows * inner * columns
    return b.kernel_call("byte_matmul", [x, totals, y], shapes, planner, work=work)[0]


@dataclass(frozen=True)
class _ByteProductPlanner(KernelPlanner):
    """A product of matrices of bytes, the second of which may be given transposed."""

    sizes: tuple[int, int, int] = field(repr=False)  # rows, columns, terms of a sum
    is_transposed: bool

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        left, sums, right = arguments.inputs
        rows, columns, inner = map(arguments.real, self.sizes)
        target = arguments.target
        plan = plan_byte_sums if self.is_transposed else plan_byte_product
        unit = byte_unit(target.vector_bytes)
        return plan(left, sums, right, arguments.outputs[0], rows, columns, inner, target, unit)


@lowers("FewBitsMatMul")
def _few_bits(b: Builder, step: Lowered, x: Operand, w: Operand, *groups: Operand) -> Operand:
    *lead, inner = b.shape(x)
    _check_terms(step, inner)
    if b.dtype(x) != float32:
        raise NotLoweredError(f"FewBitsMatMul of {b.dtype(x)}")
    columns, bits = step.attrs["columns"], step.attrs["bits"]
    size = min(step.attrs["group_size"] or inner, inner)
    rows = math.prod(lead)
    grouped = b.reshape(_filled_up(b, x, size), (rows, -(-inner // size), size))
    totals = b.reduce("sum", grouped, [2])
    planner = _WeightProductPlanner(rows, columns, inner, bits, size)
    given = [x, w, totals, *groups]
    work = rows * inner * columns
    return b.kernel_call("few_bits", given, [((*lead, columns), float32)], planner, work=work)[0]


@dataclass(frozen=True)
class _WeightProductPlanner(KernelPlanner):
    """A product of floats with weights of few bits, which have scales by groups of rows."""

    rows: int = field(repr=False)
    columns: int
    inner: int
    bits: int
    group_size: int

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        left, right, sums, *groups = arguments.inputs
        return plan_weight_product(
            left,
            right,
            arguments.outputs[0],
            sums,
            (groups[0], groups[1]) if groups else None,
            arguments.real(self.rows),
            self.columns,
            self.inner,
            self.bits,
            self.group_size,
            arguments.target,
        )


def _check_terms(step: Lowered, inner: int) -> None:
    if not inner or not is_known(inner):
        raise NotLoweredError(f"{step.type} of {shown((inner,))} terms")


def _filled_up(b: Builder, x: Operand, size: int) -> Operand:
    """With zeros behind the last axis up to a multiple of `size`."""
    shape = b.shape(x)
    *lead, count = shape
    if not count % size:
        return x
    wide = zeros(b, (*lead, count + -count % size), x)
    none, ones = [0] * len(shape), [1] * len(shape)
    copy_into(b, b.narrow(wide, none, shape, ones), x)
    return wide
