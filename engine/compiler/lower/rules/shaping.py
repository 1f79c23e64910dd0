"""Ops that only shape: their results are views, and sizes are numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ....graph import int32, int64
from ...ir.builder import Builder, as_it_is
from ...ir.not_lowered import NotLoweredError
from ...ir.program import Operand, Size, View, array_literal
from ...ir.sizes import is_known
from .table import Lowered, filled, lowers


@lowers("Const", takes_halves=True, any_attributes=True)
def _const(b: Builder, step: Lowered) -> Operand:
    value = step.attrs["value"]
    if value.size == 1 and value.ndim == 0:
        if step.dtypes[0] in (int32, int64) and is_known(int(value)):
            return Size(int(value), step.dtypes[0])
        return array_literal(value, step.dtypes[0])
    return b.array(value, step.dtypes[0])


@lowers("Identity", "StopGradient", takes_halves=True)
def _identity(b: Builder, step: Lowered, x: Operand) -> Operand:
    return x


@lowers("CustomGradient", takes_halves=True, any_attributes=True, ignores_attributes=True)
def _custom_gradient(b: Builder, step: Lowered, *operands: Operand) -> Sequence[Operand]:
    return operands[: step.attrs["outputs"]]


@lowers("Replicated", takes_halves=True, any_attributes=True, ignores_attributes=True)
def _replicated(b: Builder, step: Lowered, *operands: Operand) -> Sequence[Operand]:
    return operands


@lowers("Barrier", takes_halves=True)
def _barrier(b: Builder, step: Lowered, *operands: Operand) -> Sequence[Operand]:
    count = step.attrs["outputs"]
    return b.fenced(operands[:count])


@lowers("Dim", takes_halves=True)
def _dim(b: Builder, step: Lowered, x: Operand) -> Operand:
    return Size(b.shape(x)[step.attrs["axis"]], int32)


@lowers("Rank", takes_halves=True)
def _rank(b: Builder, step: Lowered, x: Operand) -> Operand:
    return Size(len(b.shape(x)), int32)


@lowers("Size", takes_halves=True)
def _size(b: Builder, step: Lowered, x: Operand) -> Operand:
    return Size(math.prod(b.shape(x)), int64)


@lowers("Cast", takes_halves=True)
def _cast(b: Builder, step: Lowered, x: Operand) -> Operand:
    return b.cast(x, step.dtypes[0])


@lowers("Reshape", takes_halves=True)
def _reshape(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    shape = list(filled(step.attrs["shape"], dims))
    total = math.prod(b.shape(x))
    if -1 in shape:
        place = shape.index(-1)
        shape[place] = 1
        rest = math.prod(shape)
        if not rest or total % rest:
            raise NotLoweredError(f"Reshape of {b.shape(x)} to {shape}")
        shape[place] = total // rest
    if math.prod(shape) != total:
        raise NotLoweredError(f"Reshape of {b.shape(x)} to {shape}")
    return b.reshape(x, tuple(shape))


@lowers("ExpandDims", takes_halves=True)
def _expand_dims(b: Builder, step: Lowered, x: Operand) -> Operand:
    shape = b.shape(x)
    rank = len(shape) + len(step.attrs["axis"])
    new = {a % rank for a in step.attrs["axis"]}
    rest = iter(shape)
    return b.reshape(x, tuple(1 if i in new else next(rest) for i in range(rank)))


@lowers("Squeeze", takes_halves=True)
def _squeeze(b: Builder, step: Lowered, x: Operand) -> Operand:
    shape = b.shape(x)
    axis = step.attrs["axis"]
    gone = [i for i, n in enumerate(shape) if n == 1]
    if axis is not None:
        wanted = [a % len(shape) for a in axis]
        if any(a not in gone for a in wanted):
            raise NotLoweredError(f"Squeeze of {shape} along {axis}")
        gone = wanted
    return b.reshape(x, tuple(n for i, n in enumerate(shape) if i not in gone))


@lowers("Transpose", takes_halves=True)
def _transpose(b: Builder, step: Lowered, x: Operand) -> Operand:
    rank = len(b.shape(x))
    axes = step.attrs["axes"]
    order = range(rank)[::-1] if axes is None else [a % rank for a in axes]
    return b.transpose(x, order)


@lowers("BroadcastTo", takes_halves=True)
def _broadcast_to(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    if not isinstance(x, View):
        return b.map(as_it_is, [x], b.dtype(x), shape)
    return b.broadcast(x, shape)


@lowers("SumTo")
def _sum_to(b: Builder, step: Lowered, x: Operand, *dims: Operand) -> Operand:
    shape = filled(step.attrs["shape"], dims)
    own = b.shape(x)
    lead = len(own) - len(shape)
    if lead < 0:
        raise NotLoweredError(f"SumTo of {own} to {shape}")
    axes = [a for a, n in enumerate(own) if a < lead or (shape[a - lead] == 1 and n != 1)]
    if any(n != m for n, m in zip(own[lead:], shape, strict=True) if m != 1):
        raise NotLoweredError(f"SumTo of {own} to {shape}")
    return b.reshape(b.total(x, axes), shape) if axes else x


@lowers("ZerosLike", takes_halves=True)
def _zeros_like(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _fill_like(b, step, x, 0)


@lowers("OnesLike", takes_halves=True)
def _ones_like(b: Builder, step: Lowered, x: Operand) -> Operand:
    return _fill_like(b, step, x, 1)


def _fill_like(b: Builder, step: Lowered, x: Operand, number: int) -> Operand:
    shape = b.shape(x)
    value = array_literal(number if step.dtypes[0].is_integer else float(number), step.dtypes[0])
    if not shape:
        return value
    return b.full(shape, value.value, step.dtypes[0])
