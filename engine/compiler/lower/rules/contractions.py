"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ....graph import DType, bfloat16, float32, float64
from ...ir.builder import Builder, broadcast
from ...ir.element_types import wide
from ...ir.launch import Buffer, Launch, Matrix
from ...ir.not_lowered import NotLoweredError
from ...ir.program import KernelArguments, KernelPlanner, Operand, Shape, View, contiguous
from ...kernels.gemm.operand_format import Factors
from ...kernels.gemm.products import plan_product
from ...target.bfloat16_unit import pair_unit
from .table import Lowered, lowers


@lowers("MatMul", takes_halves=True)
def _matmul(b: Builder, step: Lowered, x: Operand, y: Operand) -> Operand:
    dtype = wide(b.dtype(x))
    if dtype not in (float32, float64) and not dtype.is_integer:
        raise NotLoweredError(f"MatMul of {dtype}")
    left, right = factors(b, _matrix(b, x), _matrix(b, y))
    if step.attrs["transpose_a"]:
        left = _swapped(b, left)
    if step.attrs["transpose_b"]:
        right = _swapped(b, right)
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise NotLoweredError(f"MatMul of {left.shape} and {right.shape}")
    if dtype.is_integer:
        return _sums_of_products(b, left, right)
    if step.order is not None and step.dtypes[0] == dtype:
        found = _product_in_order(b, left, right, step.order)
        if found is not None:
            return found
    return b.cast(product(b, left, right, dtype), step.dtypes[0])


def _sums_of_products(b: Builder, x: View, y: View) -> Operand:
    """x @ y as loops, for whole numbers."""
    x = b.reshape(x, (*x.shape, 1))
    y = b.reshape(y, (*y.shape[:-2], 1, *y.shape[-2:]))
    terms = b.compute(lambda s, p, q: p * q, x, y)
    return b.reduce("sum", terms, [len(b.shape(terms)) - 2])


def factors(b: Builder, x: View, y: View) -> tuple[View, View]:
    """The operands of a product as its kernels take them.

    That is halves where the machine multiplies these faster, also where both have been made
    float32 for the product alone; otherwise halves become float32.
    """
    taken = b.machine.halves
    if taken is None:
        taken = frozenset({bfloat16} if pair_unit() is not None else ())
    if taken:
        left, right = b.halves_of(x), b.halves_of(y)
        if left is not None and right is not None and b.dtype(left) == b.dtype(right) in taken:
            return left, right
    return b.widened(x), b.widened(y)


def _matrix(b: Builder, x: Operand) -> View:
    return x if isinstance(x, View) else b.copy(x)


def _swapped(b: Builder, x: View) -> View:
    rank = len(x.shape)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def product(b: Builder, x: View, y: View, dtype: DType) -> Operand:
    """x @ y: (..., m, k) and (..., k, n), the leading axes broadcast.

    `x` and `y` are what `factors` gives; `dtype`, of the product, is float32 for bfloat16.
    """
    (m, k), (k2, n) = x.shape[-2:], y.shape[-2:]
    if k != k2:
        raise NotLoweredError(f"MatMul of {x.shape} and {y.shape}")
    lead = broadcast([x.shape[:-2], y.shape[:-2]])
    if not lead or math.prod(y.shape[:-2]) == 1:
        rows = _joined(x)
        if rows is not None:  # one product, of all rows
            right = y._replace(shape=y.shape[-2:], strides=y.strides[-2:])
            return _kernel_call(b, rows, _readable(b, right), (), dtype, (*lead, m, n))
    return _batched(b, x, y, lead, dtype)


def _joined(x: View) -> View | None:
    """The matrices of a batch one below the other; None if their rows are not evenly apart."""
    *lead, k = x.shape
    size, step = lead[-1], x.strides[-2]
    for n, s in zip(reversed(lead[:-1]), reversed(x.strides[:-2]), strict=True):
        if n != 1 and s != step * size:
            return None
        size *= n
    return x._replace(shape=(size, k), strides=(step, x.strides[-1]))


def _readable(b: Builder, y: View) -> View:
    """With rows or columns that are contiguous; rows, in a loop: then no iteration copies."""
    one = [s for n, s in zip(y.shape[-2:], y.strides[-2:], strict=True) if n != 1]
    if b.is_fixed(y) and len(one) == 2 and one[1] != 1:
        return b.once(("rows", y), lambda: b.copy(y))
    return y if not one or 1 in one else b.copy(y)


def product_into(b: Builder, x: View, y: View, shape: Shape, strides: Shape) -> View | None:
    """A new storage of `shape` whose element (batch..., i, j) in `strides` is that of x @ y.

    None if no kernel can write it so. The batch axes of `x` and `y` are alike.
    """
    lead = x.shape[:-2]
    y = _readable(b, y)
    axes = _joined_batch(lead, x.strides[:-2], y.strides[:-2], strides[:-2])
    if len(axes) > 2:
        return None
    sizes = tuple(axis[0] for axis in axes)
    left, right = (
        v._replace(
            shape=(*sizes, *v.shape[-2:]), strides=(*(axis[i] for axis in axes), *v.strides[-2:])
        )
        for i, v in ((1, x), (2, y))
    )
    steps = (*(axis[3] for axis in axes), *strides[-2:])
    return _kernel_call(b, left, right, sizes, wide(b.dtype(x)), shape, steps)


def _product_in_order(b: Builder, x: View, y: View, order: Shape) -> View | None:
    """x @ y in memory with its axes in `order`, so that a transpose copies nothing.

    None where no kernel can write it so, or it is one product of all rows.
    """
    lead = broadcast([x.shape[:-2], y.shape[:-2]])
    shape = (*lead, x.shape[-2], y.shape[-1])
    last = len(shape) - 1
    if x.shape[-1] != y.shape[-2] or order[-1] != last or math.prod(y.shape[:-2]) == 1:
        return None
    places = [order.index(a) for a in range(len(shape))]
    stored = tuple(shape[a] for a in order)
    steps = contiguous(stored)
    left, right = (b.broadcast(z, (*lead, *z.shape[-2:])) for z in (x, y))
    assert isinstance(left, View)
    assert isinstance(right, View)
    made = product_into(b, left, right, stored, tuple(steps[p] for p in places))
    return None if made is None else b.transpose(made, places)


def _batched(b: Builder, x: View, y: View, lead: Shape, dtype: DType) -> Operand:
    (m, _), n = x.shape[-2:], y.shape[-1]
    y = _readable(b, y)
    wide_x = b.broadcast(x, (*lead, *x.shape[-2:]))
    wide_y = b.broadcast(y, (*lead, *y.shape[-2:]))
    assert isinstance(wide_x, View)
    assert isinstance(wide_y, View)
    axes = _joined_batch(lead, wide_x.strides[:-2], wide_y.strides[:-2])
    if len(axes) > 2:
        wide_x, wide_y = b.copy(wide_x), b.copy(wide_y)
        axes = _joined_batch(lead, wide_x.strides[:-2], wide_y.strides[:-2])
    sizes = tuple(size for size, _, _ in axes)
    left = wide_x._replace(
        shape=(*sizes, *x.shape[-2:]),
        strides=(*(s for _, s, _ in axes), *wide_x.strides[-2:]),
    )
    right = wide_y._replace(
        shape=(*sizes, *y.shape[-2:]),
        strides=(*(s for _, _, s in axes), *wide_y.strides[-2:]),
    )
    return _kernel_call(b, left, right, sizes, dtype, (*lead, m, n))


def _joined_batch(lead: Shape, *operands: tuple[int, ...]) -> list[tuple[int, ...]]:
    """The axes of a batch with the strides of each operand.

    If there are more than two, neighbours are put together where all can be.
    """
    found: list[tuple[int, ...]] = []
    are_few = sum(n != 1 for n in lead) <= 2
    for n, *strides in zip(lead, *operands, strict=True):
        if n == 1:
            continue
        if (
            found
            and not are_few
            and all(t == s * n for t, s in zip(found[-1][1:], strides, strict=True))
        ):
            found[-1] = (found[-1][0] * n, *strides)
        else:
            found.append((n, *strides))
    return found


def _kernel_call(
    b: Builder,
    x: View,
    y: View,
    batch: Shape,
    dtype: DType,
    shape: Shape,
    places: Shape | None = None,
) -> View:
    """The product as kernels; batch axes lead in both.

    Args:
        b: the program.
        x: (batch..., m, k).
        y: (batch..., k, n).
        batch: its sizes, at most two.
        dtype: of the result.
        shape: of the result.
        places: strides of the result along (batch..., m, n); None: in this order.
    """
    unit = pair_unit() if b.dtype(x) == bfloat16 else None
    if unit is not None:
        x = _readable(b, x)
    steps = contiguous((*batch, x.shape[-2], y.shape[-1])) if places is None else places
    sizes = (*batch, *x.shape[-2:], y.shape[-1])
    return b.kernel_call_on(
        "matmul",
        (x, y),
        shape,
        dtype,
        ProductPlanner(sizes, steps, b.dtype(x), Factors(dtype, unit)),
        work=math.prod(sizes),
        epilogue=places is None,
    )


@dataclass(frozen=True)
class ProductPlanner(KernelPlanner):
    """The kernels of a product of matrices, or of batches of them.

    Attributes:
        sizes: of the batch, with at most two axes; rows, terms of a sum, columns.
        steps: strides of the result along (batch..., rows, columns).
        dtype: of the operands.
        factors: what is multiplied, and what it is summed up in.
    """

    sizes: Shape = field(repr=False)
    steps: Shape = field(repr=False)
    dtype: DType = field(repr=False)
    factors: Factors = field(repr=False)

    def plan(self, arguments: KernelArguments) -> Sequence[Launch]:
        *batch, rows, inner, columns = map(arguments.real, self.sizes)
        left, right = (self._matrix(view, arguments.real) for view in arguments.views)
        *c_batch, row, _ = map(arguments.real, self.steps)
        return plan_product(
            left,
            right,
            Matrix(arguments.outputs[0], row, 1, tuple(c_batch)),
            rows,
            columns,
            inner,
            self.factors,
            arguments.target,
            batch=tuple(batch),
            epilogue=arguments.epilogue,
        )

    def _matrix(self, view: View, real: Callable[[int], int]) -> Matrix:
        *batch, row, column = map(real, view.strides)
        if real(view.shape[-2]) == 1:
            row = max(row, 1) if column == 1 else 1
        data = Buffer(view.storage, real(view.offset) * self.dtype.size)
        return Matrix(data, row, column, tuple(batch))
