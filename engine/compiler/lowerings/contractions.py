"""Matrix products."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...graph import DType, float32, float64
from .. import llvm, threads
from ..builder import Builder, broadcast
from ..emit import NotLoweredError
from ..kernels.gemm import Matrix, plan_gemm
from ..kernels.launch import Buffer
from ..kernels.tiles import Target
from ..program import Operand, Shape, View
from .table import Lowered, lowers


def target() -> Target:
    """What kernels are planned for now."""
    return Target(llvm.vector_bytes(), threads.num_threads())


@lowers("MatMul")
def _matmul(b: Builder, step: Lowered, x: Operand, y: Operand) -> Operand:
    dtype = b.dtype(x)
    if dtype not in (float32, float64):
        raise NotLoweredError(f"MatMul of {dtype}")
    left, right = _matrix(b, x), _matrix(b, y)
    if step.attrs["transpose_a"]:
        left = _swapped(b, left)
    if step.attrs["transpose_b"]:
        right = _swapped(b, right)
    if len(left.shape) < 2 or len(right.shape) < 2:
        raise NotLoweredError(f"MatMul of {left.shape} and {right.shape}")
    return product(b, left, right, dtype)


def _matrix(b: Builder, x: Operand) -> View:
    return x if isinstance(x, View) else b.copy(x)


def _swapped(b: Builder, x: View) -> View:
    rank = len(x.shape)
    return b.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def product(b: Builder, x: View, y: View, dtype: DType) -> Operand:
    """x @ y: (..., m, k) and (..., k, n), the leading axes broadcast."""
    (m, k), (k2, n) = x.shape[-2:], y.shape[-2:]
    if k != k2:
        raise NotLoweredError(f"MatMul of {x.shape} and {y.shape}")
    lead = broadcast([x.shape[:-2], y.shape[:-2]])
    if not lead or math.prod(y.shape[:-2]) == 1:
        rows = _joined(x)
        if rows is not None:  # one product, of all rows
            right = y._replace(shape=y.shape[-2:], strides=y.strides[-2:])
            return b.reshape(_single(b, rows, right, dtype), (*lead, m, n))
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
    """With rows or columns that are contiguous."""
    one = [s for n, s in zip(y.shape[-2:], y.strides[-2:], strict=True) if n != 1]
    return y if not one or 1 in one else b.copy(y)


def _single(b: Builder, x: View, y: View, dtype: DType) -> View:
    return _library(b, x, _readable(b, y), (), dtype)


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
    left = View(
        wide_x.storage,
        (*sizes, *x.shape[-2:]),
        (*(s for _, s, _ in axes), *x.strides[-2:]),
        wide_x.offset,
    )
    right = View(
        wide_y.storage,
        (*sizes, *y.shape[-2:]),
        (*(s for _, _, s in axes), *wide_y.strides[-2:]),
        wide_y.offset,
    )
    left = left._replace(strides=(*left.strides[:-2], *wide_x.strides[-2:]))
    found = _library(b, left, right, sizes, dtype)
    return b.reshape(found, (*lead, m, n))


def _joined_batch(
    lead: Shape, x: tuple[int, ...], y: tuple[int, ...]
) -> list[tuple[int, int, int]]:
    """The axes of a batch with the strides of both, neighbours put together where both allow it."""
    found: list[tuple[int, int, int]] = []
    for n, s, t in zip(lead, x, y, strict=True):
        if n == 1:
            continue
        if found:
            size, before_s, before_t = found[-1]
            if before_s == s * n and before_t == t * n:
                found[-1] = (size * n, s, t)
                continue
        found.append((n, s, t))
    return found


def _library(b: Builder, x: View, y: View, batch: Shape, dtype: DType) -> View:
    """The product as kernels; batch axes lead in both."""
    (m, k), n = x.shape[-2:], y.shape[-1]
    size = dtype.size

    def plan(real: Callable[[int], int], inputs: Any, outputs: Any, epilogue: Any = None) -> Any:
        rows, inner, columns = real(m), real(k), real(n)

        def matrix(view: View) -> Matrix:
            strides = [real(s) for s in view.strides]
            row, column = strides[-2:]
            if real(view.shape[-2]) == 1:
                row = max(row, 1) if column == 1 else 1
            return Matrix(
                Buffer(view.storage, real(view.offset) * size), row, column, tuple(strides[:-2])
            )

        c_batch = []
        step = rows * columns
        for length in reversed(batch):
            c_batch.append(step)
            step *= real(length)
        c = Matrix(Buffer(outputs[0]), columns, 1, tuple(reversed(c_batch)))
        return plan_gemm(
            matrix(x),
            matrix(y),
            c,
            rows,
            columns,
            inner,
            dtype,
            target(),
            batch=tuple(real(length) for length in batch),
            epilogue=epilogue,
        )

    work = math.prod((*batch, m, n, k))
    return b.library_on("matmul", (x, y), (*batch, m, n), dtype, plan, work=work)
