"""Products with whole numbers of few bits."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ....graph import float32, int32
from ...ir.builder import Builder
from ...ir.kernel_target import Target
from ...ir.launch import Buffer
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, View
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
    planned = plan_byte_product
    if isinstance(y, View) and y.strides[1] != 1 and y.strides[0] == 1:
        y, planned = b.transpose(y, [1, 0]), plan_byte_sums

    def plan(real: Callable[[int], int], target: Target, inputs: Any, outputs: Any) -> Any:
        sizes = real(rows), real(columns), real(inner)
        unit = byte_unit(target.vector_bytes)
        left, sums, right = map(Buffer, inputs)
        return planned(left, sums, right, Buffer(outputs[0]), *sizes, target, unit)

    x = _filled_up(b, x, _QUAD)
    totals = b.reduce("sum", b.cast(b.reshape(x, (rows, b.shape(x)[-1])), int32), [1])
    shapes = [((*lead, columns), int32)]
    work = rows * inner * columns
    return b.kernel_call("byte_matmul", [x, totals, y], shapes, plan, work=work)[0]


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

    def plan(real: Callable[[int], int], target: Target, inputs: Any, outputs: Any) -> Any:
        left, right, sums, *rest = map(Buffer, inputs)
        scales = (rest[0], rest[1]) if rest else None
        sizes = real(rows), columns, inner, bits, size
        c = Buffer(outputs[0])
        return plan_weight_product(left, right, c, sums, scales, *sizes, target)

    given = [x, w, totals, *groups]
    work = rows * inner * columns
    return b.kernel_call("few_bits", given, [((*lead, columns), float32)], plan, work=work)[0]


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
