"""Matrix products by cuBLASLt, through the bindings of nvmath-python. No other file names them.

The library's matrices lie column after column. So C, whose rows are contiguous, is to it the
transpose of what we mean: it computes C^T = B^T A^T, each operand as it lies in memory or
transposed. The algorithm is chosen once, by the library's heuristics for the sizes and alignments;
the workspace is one for each GPU, whose one stream runs one product after the other.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from ...cuda_program import Product, Strides
from ...graph import DType
from ..interface import Gpu, Memory

# NVIDIA's advice for Hopper: cuBLAS documentation, section 2.1.5 (workspaces).
_WORKSPACE_BYTES = 32 << 20
_MOST_ALIGNMENT = 256

# cudaDataType and cublasComputeType_t, by the type of the operands or the result.
_TYPES = {"float32": 0, "float64": 1, "float16": 2, "bfloat16": 14}
_IN_FLOAT, _IN_DOUBLE = 68, 70
_TRANSPOSE = 1  # CUBLAS_OP_T


class Matrix(NamedTuple):
    """A matrix as the library sees it, column after column.

    Attributes:
        rows: in memory.
        columns: in memory.
        leading: elements from a column to the next.
        is_transposed: whether the product takes its transpose.
    """

    rows: int
    columns: int
    leading: int
    is_transposed: bool = False


def matrix_of(rows: int, columns: int, row: int, column: int) -> Matrix | None:
    """The matrix of elements at `row * i + column * j`; None where neither stride is 1."""
    if (row == 1 or rows == 1) and (columns == 1 or column >= rows):
        return Matrix(rows, columns, max(column, rows))
    if (column == 1 or columns == 1) and (rows == 1 or row >= columns):
        return Matrix(columns, rows, max(row, columns), is_transposed=True)
    return None


class Batch(NamedTuple):
    """One axis of a batch: how many, and how far apart in each of A, B, C."""

    size: int
    strides: tuple[int, int, int]


def batch_of(product: Product) -> Batch | None:
    """The axes of a batch as one; None where they are not one in each of the operands."""
    operands = product.a.batch, product.b.batch, product.c.batch
    kept = [i for i, n in enumerate(product.batch) if n != 1]
    if not kept:
        return Batch(1, (0, 0, 0))
    for outer, inner in zip(kept, kept[1:], strict=False):
        if any(s[outer] != s[inner] * product.batch[inner] for s in operands):
            return None
    count = int(np.prod([product.batch[i] for i in kept]))
    a, b, c = (s[kept[-1]] for s in operands)
    return Batch(count, (a, b, c))


def plan_product(
    gpu: Gpu, product: Product, addresses: Sequence[int]
) -> Callable[[int], None] | None:
    """What computes a product at addresses, on a stream; None where the library cannot."""
    a, b, c = product.a, product.b, product.c
    if str(product.dtype) not in _TYPES or str(product.out_dtype) not in _TYPES:
        return None
    first, second = b, a  # of C^T = B^T A^T
    places = [addresses[1], addresses[0], addresses[2]]
    shape = product.columns, product.rows
    swapped = c.column != 1
    if swapped:  # C lies column after column itself
        first, second, places = a, b, list(addresses)
        shape = product.rows, product.columns
    batch = batch_of(product)
    m, n = shape
    k = product.inner
    left = _operand(first, m, k, is_first_transposed=not swapped)
    right = _operand(second, k, n, is_first_transposed=not swapped)
    result = _operand(c, m, n, is_first_transposed=not swapped)
    if batch is None or left is None or right is None or result is None or result.is_transposed:
        return None
    library = _library(gpu)
    if library is None:
        return None
    strides = batch.strides if swapped else (batch.strides[1], batch.strides[0], batch.strides[2])
    return library.plan(
        (left, right, result),
        (product.dtype, product.dtype, product.out_dtype),
        places,
        Batch(batch.size, strides),
    )


def _operand(s: Strides, rows: int, columns: int, *, is_first_transposed: bool) -> Matrix | None:
    """An operand of the library's product, of what is its transpose in ours."""
    row, column = (s.column, s.row) if is_first_transposed else (s.row, s.column)
    return matrix_of(rows, columns, row, column)


class _Lt:
    """The library on one GPU."""

    def __init__(self, gpu: Gpu, lt: Any) -> None:
        self._gpu, self._lt = gpu, lt
        with gpu:
            self._handle = lt.create()
        self._workspace: Memory = gpu.allocate(_WORKSPACE_BYTES)

    def plan(
        self,
        matrices: Sequence[Matrix],
        dtypes: Sequence[DType],
        places: Sequence[int],
        batch: Batch,
    ) -> Callable[[int], None] | None:
        """What multiplies the first two matrices into the third; None: no algorithm does."""
        lt = self._lt
        is_double = str(dtypes[2]) == "float64"
        wide = np.float64 if is_double else np.float32
        description = lt.matmul_desc_create(
            _IN_DOUBLE if is_double else _IN_FLOAT, _TYPES["float64" if is_double else "float32"]
        )
        names = lt.MatmulDescAttribute
        _set(
            (lt.matmul_desc_set_attribute, lt.get_matmul_desc_attribute_dtype),
            description,
            {
                names.TRANSA: _TRANSPOSE * matrices[0].is_transposed,
                names.TRANSB: _TRANSPOSE * matrices[1].is_transposed,
            },
        )
        layouts = [
            self._layout(matrix, dtype, batch.size, stride)
            for matrix, dtype, stride in zip(matrices, dtypes, batch.strides, strict=True)
        ]
        found = self._algorithm(description, layouts, places)
        if found is None:
            return None
        one, zero = np.ones(1, wide), np.zeros(1, wide)
        a, b, c = places
        in_a, in_b, in_c = layouts
        handle, space = self._handle, self._workspace

        def run(stream: int) -> None:
            lt.matmul(
                handle,
                description,
                one.ctypes.data,
                a,
                in_a,
                b,
                in_b,
                zero.ctypes.data,
                c,
                in_c,
                c,
                in_c,
                found.ctypes.data,
                space.address,
                _WORKSPACE_BYTES,
                stream,
            )

        return run

    def _layout(self, matrix: Matrix, dtype: DType, count: int, stride: int) -> int:
        lt = self._lt
        made: int = lt.matrix_layout_create(
            _TYPES[str(dtype)], matrix.rows, matrix.columns, matrix.leading
        )
        if count > 1:
            names = lt.MatrixLayoutAttribute
            _set(
                (lt.matrix_layout_set_attribute, lt.get_matrix_layout_attribute_dtype),
                made,
                {names.BATCH_COUNT: count, names.STRIDED_BATCH_OFFSET: stride},
            )
        return made

    def _algorithm(
        self, description: int, layouts: Sequence[int], places: Sequence[int]
    ) -> Any | None:
        """What the heuristics choose, as the library's struct."""
        lt = self._lt
        preference = lt.matmul_preference_create()
        names = lt.MatmulPreferenceAttribute
        a, b, c = map(alignment, places)
        _set(
            (lt.matmul_preference_set_attribute, lt.get_matmul_preference_attribute_dtype),
            preference,
            {
                names.MAX_WORKSPACE_BYTES: _WORKSPACE_BYTES,
                names.MIN_ALIGNMENT_A_BYTES: a,
                names.MIN_ALIGNMENT_B_BYTES: b,
                names.MIN_ALIGNMENT_C_BYTES: c,
                names.MIN_ALIGNMENT_D_BYTES: c,
            },
        )
        found = np.zeros(1, lt.matmul_heuristic_result_dtype)  # which begins with the algorithm
        count = np.zeros(1, np.int32)
        x, y, z = layouts
        try:
            lt.matmul_algo_get_heuristic(
                self._handle,
                description,
                x,
                y,
                z,
                z,
                preference,
                1,
                found.ctypes.data,
                count.ctypes.data,
            )
        except lt.cuBLASLtError:  # it has none for this
            return None
        finally:
            lt.matmul_preference_destroy(preference)
        return found if count[0] else None


def alignment(address: int) -> int:
    """The largest power of two, up to 256, that an address is a multiple of."""
    return min(address & -address, _MOST_ALIGNMENT) if address else _MOST_ALIGNMENT


def _set(
    functions: tuple[Callable[..., Any], Callable[..., Any]], what: int, values: Mapping[Any, int]
) -> None:
    """Set attributes, by what sets one and what tells its type."""
    setter, dtype_of = functions
    for attribute, value in values.items():
        buffer = np.array([value], dtype_of(attribute))
        setter(what, attribute, buffer.ctypes.data, buffer.nbytes)


@functools.cache
def _library(gpu: Gpu) -> _Lt | None:
    """The library on a GPU; None where it is not installed."""
    if not gpu.architecture:
        return None
    bindings = bindings_or_none()
    return None if bindings is None else _Lt(gpu, bindings)


@functools.cache
def bindings_or_none() -> Any:
    """nvmath's bindings, if they and the library are there."""
    try:
        found = importlib.import_module("nvmath.bindings.cublasLt")
        found.get_version()
    except Exception:  # the library has errors of its own, which cannot be named without it
        return None
    return found
