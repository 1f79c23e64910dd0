"""Kernels between pages that cannot be touched.

Run with `python -m tests.engine.compiler.kernels.kernel_bounds`.

A read or write outside of an array ends the process. With the argument "beyond" one is made on
purpose.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import sys
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

import laminar
from laminar.engine.compiler.kernels import (
    Buffer,
    Convolution,
    Launch,
    PairUnit,
    Stream,
    Target,
    plan_conv_filter_gradient,
    plan_conv_forward,
    plan_conv_input_gradient,
)
from laminar.engine.graph import EagerTensor, bfloat16, float32, float64
from tests.engine.ops.native import every_cluster

from . import low_bit_products, pair_products
from .convolutions import numbers, same, shapes
from .epilogues import adding
from .pair_convolutions import cases
from .products import Product, Tiles
from .running import VECTOR_BYTES, Array, Prepared

_PAGE = mmap.PAGESIZE
_NO_ACCESS = 0
_libc = ctypes.CDLL(None, use_errno=True)
_held: list[Any] = []

PRODUCTS = [
    Product(7, 9, 5),
    Product(1, 70, 33),
    Product(31, 17, 40, transpose_b=True),
    Product(33, 40, 35, transpose_a=True),
    Product(258, 530, 300),
    Product(300, 513, 70, transpose_b=True),
    Product(1024, 20, 70, transpose_a=True),
    Product(70, 3, 20, transpose_a=True),
    Product(70, 5, 20, transpose_a=True, transpose_b=True),
    Product(1029, 1021, 515, transpose_a=True),
    Product(5, 6, 7, batch=(2, 3), repeat_b=True),
]
BESIDE = Product(130, 36, 9, gap=12)
STREAMED = Product(313, 301, 37, transpose_a=True)
CONVOLUTIONS = [
    same(2, (7, 9), 3, 5, 3),
    same(1, (9, 8), 17, 33, 3, 2, padding=(0, 1)),
    same(2, (8, 8), 1, 20, 3, padding=(0, 0)),
    same(1, (5, 6), 4, 140, 3),
    same(1, (12,), 6, 4, 4, 1, 2, 2),
    same(1, (3, 4, 5), 3, 7, 2),
    same(1, (9, 7), 21, 21, 3, 1, 1, 21),
    same(1, (9, 7), 21, 21, 3, 2, 2, 21),
    same(2, (9, 7), 32, 32, 3, 2, 1, 32),
    same(2, (3, 11), 35, 35, 3, 1, 1, 35, (3, 0)),
    same(2, (5, 5), 6, 9, 1, padding=(0, 0)),
    same(2, (7, 21), 3, 16, 3, 2),
    same(2, (7, 35), 8, 16, 3, padding=(2, 0)),
    same(9, (9, 7), 16, 32, 3),
    same(9, (8, 10), 32, 16, 3, padding=(0, 2)),
]

PAIR_CONVOLUTIONS = [
    same(2, (9, 38), 8, 20, 3, padding=(0, 0)),
    same(1, (7, 10), 20, 24, 3, 2, padding=(1, 1)),
    same(1, (3, 4, 8), 16, 136, 3),
    same(1, (12,), 32, 16, 4, 1, 2, 2),
    same(2, (6, 6), 6, 9, 1, padding=(0, 0)),
]


def guarded(shape: Sequence[int], dtype: Any, *, at_end: bool) -> Array:
    """An array that ends, or begins, at a page that cannot be touched."""
    num_bytes = math.prod(shape) * np.dtype(dtype).itemsize
    length = -(-max(num_bytes, 1) // _PAGE) * _PAGE
    memory = mmap.mmap(-1, length + 2 * _PAGE)
    _held.append(memory)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for page in (start, start + _PAGE + length):
        if _libc.mprotect(ctypes.c_void_p(page), _PAGE, _NO_ACCESS):
            raise OSError(ctypes.get_errno(), "mprotect")
    first = _PAGE + length - num_bytes if at_end else _PAGE
    whole = (
        np.frombuffer(memory, np.uint8, num_bytes, first) if num_bytes else np.empty(0, np.uint8)
    )
    found: Array = whole.view(dtype).reshape(shape)
    return found


def run(launches: list[Launch], arrays: Sequence[Array], *, at_end: bool) -> None:
    """Run launches on copies of the arrays between guards; scratch memory too."""
    held = []
    for array in arrays:
        copy = guarded(array.shape, array.dtype, at_end=at_end)
        copy[...] = array
        held.append(copy)
    Prepared(launches, held, lambda size: guarded((size,), np.uint8, at_end=at_end)).run(2)


def run_beside(product: Product, *, at_end: bool) -> None:
    """Run a product of a B that, if it ends with a page, begins beside a line."""
    a, b, c = product.arrays()
    run(product.plan(), [a, b.ravel()[: b.size - product.gap], c], at_end=at_end)


def run_streamed(product: Product, *, at_end: bool) -> None:
    """Run a product of which only the epilogue is stored, and goes through memory of its own."""
    a, b, c = product.arrays()
    to, row_bytes = Buffer(5), c.strides[-2]
    epilogue = adding(Buffer(2), row_bytes, Buffer(3), Buffer(4), product.vector_bytes, to)
    streamed = epilogue._replace(streams=(Stream(to, row_bytes),) * 3, result=0)
    sums = np.zeros(product.rows, np.float32), np.zeros(product.columns, np.float32)
    run(product.plan(streamed), [a, b, c[:0], *sums, c], at_end=at_end)


def run_convolution(conv: Convolution, dtype: Any, vector_bytes: int, *, at_end: bool) -> None:
    x, filters, dy = numbers(conv, dtype.numpy)
    of_x, of_filters, of_y = (np.zeros(shape, dtype.numpy) for shape in shapes(conv))
    target = Target(vector_bytes, 2)
    places = Buffer(0), Buffer(1), Buffer(2)
    for plan, arrays in (
        (plan_conv_forward, (x, filters, of_y)),
        (plan_conv_input_gradient, (dy, filters, of_x)),
        (plan_conv_filter_gradient, (x, dy, of_filters)),
    ):
        run(plan(*places, conv, dtype, target), arrays, at_end=at_end)


def run_in_own_memory(unit: PairUnit, *, at_end: bool) -> None:
    """Run contractions of which only the epilogue is stored, in memory of its own."""
    product = Product(70, 90, 40, dtype=bfloat16)
    a, b, c = pair_products.arrays_of(product)
    row_bytes = c.strides[-2]
    epilogue = adding(Buffer(2), row_bytes, Buffer(3), Buffer(4), 64, Buffer(5))._replace(result=0)
    sums = np.zeros(product.rows, np.float32), np.zeros(product.columns, np.float32)
    run(pair_products.plan(product, unit, epilogue), [a, b, c[:0], *sums, c], at_end=at_end)
    conv = PAIR_CONVOLUTIONS[0]
    x, filters, dy = numbers(conv, bfloat16.numpy)
    places = Buffer(0), Buffer(1), Buffer(2)
    for plan, operand, like in (
        (plan_conv_forward, x, dy),
        (plan_conv_input_gradient, dy, x),
    ):
        result: Array = np.zeros(like.shape, np.float32)
        channels = result.shape[-1]
        epilogue = adding(Buffer(2), channels * 4, Buffer(3), Buffer(4), 64, Buffer(5))
        own = epilogue._replace(result=0)
        launches = plan(*places, conv, float32, Target(64, 2), unit=unit, epilogue=own)
        sums = np.zeros(result.size // channels, np.float32), np.zeros(channels, np.float32)
        run(launches, [operand, filters, result[:0], *sums, result], at_end=at_end)


def run_pair_convolution(conv: Convolution, unit: PairUnit, *, at_end: bool) -> None:
    for arrays, result, launches in cases(conv, unit, 2).values():
        run(launches, [*arrays, result], at_end=at_end)


def run_rows(length: int, dtype: Any, *, at_end: bool) -> None:
    """Rows as native code: written out or in loops, and what is fetched of the next one."""
    x = guarded((3, length), dtype.numpy, at_end=at_end)
    x[...] = np.linspace(-3, 3, x.size).reshape(x.shape)
    with every_cluster():
        found = laminar.function(_of_rows)(EagerTensor(x))
    np.testing.assert_allclose(np.asarray(found[0], np.float64).sum(-1), 1, 2e-2)


def _of_rows(x: Any) -> Any:
    p = laminar.ops.softmax(x)
    squares = laminar.ops.sum(p * p, -1)
    return p, squares, laminar.ops.layer_normalization(x), laminar.ops.argmax(x, -1)


def run_low_bits(*, at_end: bool) -> None:
    """Products with numbers of few bits."""
    for unit, vector_bytes in low_bit_products.UNITS:
        for sizes in low_bit_products.SIZES:
            product = low_bit_products.ByteProduct(*sizes)
            a, totals, b, c = product.arrays()
            run(product.plan(unit, vector_bytes), [a, totals, b, c], at_end=at_end)
            turned = [a, totals, b.T.copy(), c]
            run(product.plan_sums(unit, vector_bytes), turned, at_end=at_end)
    for vector_bytes in VECTOR_BYTES:
        for weights in low_bit_products.WEIGHTS:
            run(weights.plan(vector_bytes), weights.arrays(), at_end=at_end)


def main() -> None:
    if sys.argv[1:] == ["beyond"]:
        product = Product(7, 9, 5)
        _, b, c = product.arrays()
        run(product.plan(), [np.zeros((6, 5), np.float32), b, c], at_end=True)
    for at_end in (True, False):
        run_low_bits(at_end=at_end)
        for vector_bytes in VECTOR_BYTES:
            for dtype in (float32, float64):
                for product in PRODUCTS:
                    case = replace(product, dtype=dtype, vector_bytes=vector_bytes)
                    run(case.plan(), case.arrays(), at_end=at_end)
                    with_loaded = replace(case, available=Tiles())
                    run(with_loaded.plan(), with_loaded.arrays(), at_end=at_end)
                beside = replace(BESIDE, dtype=dtype, vector_bytes=vector_bytes)
                run_beside(beside, at_end=at_end)
                run_streamed(replace(STREAMED, vector_bytes=vector_bytes), at_end=at_end)
                for conv in CONVOLUTIONS:
                    run_convolution(conv, dtype, vector_bytes, at_end=at_end)
        for dtype in (float32, float64, bfloat16):
            for length in (1, 15, 17, 129, 257, 1024, 1030):
                run_rows(length, dtype, at_end=at_end)
        for unit in pair_products.UNITS:
            for product in PRODUCTS:
                case = replace(product, dtype=bfloat16)
                run(pair_products.plan(case, unit), pair_products.arrays_of(case), at_end=at_end)
            run_in_own_memory(unit, at_end=at_end)
            for conv in PAIR_CONVOLUTIONS:
                run_pair_convolution(conv, unit, at_end=at_end)
    print("all inside")


if __name__ == "__main__":
    main()
