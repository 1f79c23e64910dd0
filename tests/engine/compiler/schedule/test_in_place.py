"""Values that take the memory of others: which do, and that nothing is lost by it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.program import KernelCall, Size, View
from laminar.engine.compiler.lower.rules.contractions import product
from laminar.engine.compiler.schedule.buffer_assignment import BufferAssignment, assign_buffers
from laminar.engine.graph import float32, int32
from tests.engine.ops.native import every_cluster

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def softmax_of_a_product(b: Builder, length: int) -> tuple[View, View, View]:
    """The product, the exponentials and their shares."""
    x, w = (b.storage(shape, float32, "input") for shape in ((40, 8), (8, length)))
    # Over columns of a matrix, so it is no epilogue.
    z = b.reshape(product(b, x, w, float32), (5, 8, length))
    top = b.reduce("max", z, (2,), keepdims=True)
    e = b.compute(lambda s, z, t: s.exp(z - t), z, top)
    p = b.compute(lambda s, e, t: e / t, e, b.reduce("sum", e, (2,), keepdims=True))
    again = product(b, p, b.storage((length, 3), float32, "input"), float32)
    assert isinstance(again, View)
    b.program.outputs = [again]
    return z, e, p


def laid_out(b: Builder) -> BufferAssignment:
    layout = assign_buffers(b.program, b.copy)
    b.program.verify()
    return layout


def test_a_short_row_is_written_over_what_it_is_made_of() -> None:
    """And what it takes on the way stays in registers."""
    b = Builder()
    z, e, p = softmax_of_a_product(b, 64)
    layout = laid_out(b)
    assert layout.place[p.storage] == z.storage
    assert e.storage not in layout.stored


def test_a_long_row_keeps_what_it_needs_later_where_the_result_goes() -> None:
    b = Builder()
    z, e, p = softmax_of_a_product(b, 1000)
    layout = laid_out(b)
    assert e.storage in layout.stored
    assert layout.place[e.storage] == layout.place[p.storage] == p.storage != z.storage


def test_what_is_needed_later_stays() -> None:
    b = Builder()
    z, _, p = softmax_of_a_product(b, 64)
    b.program.outputs.append(b.reduce("max", b.reshape(z, (40, 64)), (0,)))
    layout = laid_out(b)
    assert layout.place[p.storage] == p.storage


def test_what_is_read_elsewhere_than_it_is_written_stays() -> None:
    b = Builder()
    x, w = (b.storage((8, 8), float32, "input") for _ in range(2))
    z = product(b, x, w, float32)
    turned = b.compute(lambda s, z, t: z + t, z, b.transpose(z, (1, 0)))
    again = product(b, turned, w, float32)
    assert isinstance(again, View)
    b.program.outputs = [again]
    layout = laid_out(b)
    assert layout.place[turned.storage] == turned.storage


def test_numbers_made_of_sizes_come_first() -> None:
    """So the gradient of a mean joins the kernel that makes what the mean is of."""
    b = Builder()
    x = b.storage((30, 200), float32, "input")
    rows = b.reduce("sum", x, (1,), keepdims=True)
    total = b.reduce("sum", rows, (0, 1))
    factor = b.compute(lambda s, n: 1 / n, b.cast(Size(30, int32), float32), dtype=float32)
    y = b.compute(lambda s, x, r, f: x * r * f, x, rows, factor)
    b.program.outputs = [y, total]
    numbers, *others = laid_out(b).kernels
    assert numbers.writes >= {factor.storage}
    assert [k.writes >= {rows.storage, y.storage} for k in others] == [True, False]
    assert not any(isinstance(s, KernelCall) for k in others for s in k.all_statements)


def normalized(x: Any, w: Any, b: Any, v: Any) -> tuple[Any, Any]:
    half = ops.cast(x, "bfloat16") @ ops.cast(w, "bfloat16") + ops.cast(b, "bfloat16")
    wide = ops.cast(ops.relu(half), "float32")
    y = ops.cast(ops.layer_normalization(wide, epsilon=1e-3), "bfloat16")
    return ops.cast(half, "float32") * 2, ops.cast(y @ ops.cast(v, "bfloat16"), "float32")


@pytest.mark.parametrize("length", [1, 15, 17, 33, 100])
def test_rows_of_halves(length: int) -> None:
    """The last vector of a row of 17 has one element, which is written alone."""
    x, w, b, v = (
        rng.normal(size=shape).astype(ml_dtypes.bfloat16).astype(np.float32)
        for shape in ((16, 48), (48, length), (length,), (length, 5))
    )
    with every_cluster():
        found = laminar.function(normalized)(x, w, b, v)
    expected = laminar.function(normalized, jit_compile=False)(x, w, b, v)
    for a, e in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(e), rtol=0.03, atol=0.3)


def chain(x: Any, w: Any) -> Any:
    """Rows in place, several times over, with a value that is read again at the end."""
    z = x @ w
    p = ops.softmax(z)
    q = ops.softmax(ops.exp(p) * 3 + p)
    return ops.softmax(q @ w) + ops.sum(p, -1, keepdims=True) + ops.max(p, 0)


@pytest.mark.parametrize("function", [chain])
@pytest.mark.parametrize("length", [1, 16, 17, 64, 130, 500])
def test_values(function: Callable[..., Any], length: int) -> None:
    x, w = (rng.normal(size=(n, length)).astype(np.float32) for n in (7, length))
    with every_cluster():
        found = laminar.function(function)(x, w)
    wide = x.astype(np.float64), w.astype(np.float64)

    def softmax(x: Array) -> Array:
        e = np.exp(x - x.max(-1, keepdims=True))
        return np.asarray(e / e.sum(-1, keepdims=True))

    p = softmax(wide[0] @ wide[1])
    q = softmax(np.exp(p) * 3 + p)
    expected = softmax(q @ wide[1]) + p.sum(-1, keepdims=True) + p.max(0)
    np.testing.assert_allclose(np.asarray(found), expected, rtol=3e-5)


def test_what_begins_as_zeros_stays_where_it_is() -> None:
    """The gradient of a slice of everything: zeros are written before what comes upon them."""
    x = rng.normal(size=(1, 5, 6)).astype(np.float32)
    w = rng.normal(size=(6, 6)).astype(np.float32)

    def gradient(x: Any) -> Any:
        with laminar.GradientTape() as tape:
            tape.watch(x)
            y = ops.sum(ops.tanh((x @ w)[0]))
        return tape.gradient(y, x)

    with every_cluster():
        found = laminar.function(gradient)(x)
    wide = x.astype(np.float64) @ w
    expected = (1 - np.tanh(wide) ** 2) @ w.T
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-4, atol=1e-5)
