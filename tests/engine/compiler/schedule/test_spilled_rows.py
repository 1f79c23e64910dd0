"""What a kernel over rows keeps for a later phase: where, and that values are right with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import laminar
from laminar import ops
from laminar.engine.compiler.ir.builder import Builder
from laminar.engine.compiler.ir.program import View
from laminar.engine.compiler.schedule.buffer_assignment import BufferAssignment, assign_buffers
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.graph import float32
from tests.engine.ops.native import every_cluster

Array = np.ndarray[Any, Any]

rng = np.random.default_rng(0)


def laid_out(b: Builder) -> BufferAssignment:
    layout = assign_buffers(b.program, b.copy)
    b.program.verify()
    assert len(layout.kernels) == 1
    return layout


def exponentials(b: Builder, length: int) -> tuple[View, View]:
    """Those of rows less their maximum, and the sums of them."""
    x = b.storage((40, length), float32, "input")
    top = b.reduce("max", x, (1,), keepdims=True)
    e = b.compute(lambda s, x, t: s.exp(x - t), x, top)
    return e, b.reduce("sum", e, (1,), keepdims=True)


def concentration(b: Builder, e: View, total: View) -> View:
    """The sum of the squares of shares: nothing of the size of a row goes out."""
    share = b.compute(lambda s, e, t: e / t, e, total)
    return b.reduce("sum", b.compute(lambda s, p: p * p, share), (1,))


def test_a_row_is_on_the_stack_where_nothing_of_its_size_is_written() -> None:
    b = Builder()
    e, total = exponentials(b, 1000)
    b.program.outputs = [concentration(b, e, total)]
    layout = laid_out(b)
    assert layout.rows == {e.storage}
    assert e.storage not in layout.stored


def test_a_long_row_is_in_memory() -> None:
    b = Builder()
    e, total = exponentials(b, 100_000)
    b.program.outputs = [concentration(b, e, total)]
    layout = laid_out(b)
    assert not layout.rows
    assert e.storage in layout.stored


def test_a_row_is_in_the_place_of_what_becomes_of_it() -> None:
    b = Builder()
    e, total = exponentials(b, 1000)
    share = b.compute(lambda s, e, t: e / t, e, total)
    b.program.outputs = [share]
    layout = laid_out(b)
    assert not layout.rows
    assert layout.place[e.storage] == share.storage


def test_what_is_cheap_is_made_again_from_what_is_not() -> None:
    b = Builder()
    e, _ = exponentials(b, 1000)
    double = b.compute(lambda s, e: e + e, e)
    total = b.reduce("sum", double, (1,), keepdims=True)
    b.program.outputs = [concentration(b, double, total)]
    layout = laid_out(b)
    assert layout.rows == {e.storage}
    assert double.storage not in layout.stored


def test_many_cheap_values_together_are_not_cheap() -> None:
    b = Builder()
    x = b.storage((40, 1000), float32, "input")
    y = x
    for _ in range(8):
        y = b.compute(lambda s, y, x: y * x + 1, y, x)
    total = b.reduce("sum", y, (1,), keepdims=True)
    b.program.outputs = [concentration(b, y, total)]
    assert laid_out(b).rows == {y.storage}


# Values


def shares(x: Array, axis: Any = -1) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    found: Array = e / e.sum(axis, keepdims=True)
    return found


def entropy(x: Any) -> Any:
    return -ops.sum(ops.softmax(x) * ops.log_softmax(x), -1)


def of_squashed(x: Any) -> Any:
    y = ops.tanh(x)
    y = y - ops.mean(y, -1, keepdims=True)
    return ops.sum(y * y, -1) + ops.max(y, -1)


def wanted_of_squashed(x: Array) -> Array:
    y = np.tanh(x)
    y = y - y.mean(-1, keepdims=True)
    found: Array = (y * y).sum(-1) + y.max(-1)
    return found


CASES: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
    "softmax": (ops.softmax, shares),
    "log_softmax": (ops.log_softmax, lambda x: np.log(shares(x))),
    "entropy": (entropy, lambda x: -(shares(x) * np.log(shares(x))).sum(-1)),
    "squashed": (of_squashed, wanted_of_squashed),
    "two axes": (
        lambda x: ops.sum(ops.softmax(x, (0, 2)) ** 2, (0, 2)),
        lambda x: (shares(x, (0, 2)) ** 2).sum((0, 2)),
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("dtype", ["float32", "float64", "bfloat16"])
@pytest.mark.parametrize("length", [257, 1024, 1030, 5000, 9000])
def test_values(length: int, dtype: str) -> None:
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    x = (rng.normal(size=(2, 3, length)) * 3).astype(kind)
    tolerance = {"float32": 4e-6, "float64": 1e-13, "bfloat16": 4e-2}[dtype]
    with every_cluster():
        for name, (function, expected) in CASES.items():
            found = laminar.function(function)(ops.convert_to_tensor(x))
            wanted = expected(x.astype("float64"))
            np.testing.assert_allclose(
                np.asarray(found, "float64"), wanted, tolerance, tolerance * 1e-2, err_msg=name
            )


def test_specials_of_long_rows() -> None:
    """A place that is masked has no share; a NaN, or two infinities, are in one row alone."""
    x = rng.normal(size=(6, 1025)).astype("float32")
    x[1, 1024] = np.nan
    x[2, 3] = np.inf
    x[3, 7:] = -np.inf
    x[4, :] = -np.inf
    x[5, ::2] = -1e9
    with every_cluster():
        p = np.asarray(laminar.function(ops.softmax)(x))
        h = np.asarray(laminar.function(lambda x: ops.sum(ops.softmax(x) ** 2, -1))(x))
    for found in (p, h):
        assert np.isfinite(found[[0, 3, 5]]).all()
    assert np.isnan(p[[1, 2, 4]]).any(1).all()
    assert np.isnan(h[[1, 2, 4]]).all()
    assert not p[3, 7:].any()
    assert not p[5, ::2].any()
    np.testing.assert_allclose(p[3, :7], shares(x[3, :7].astype("float64")), 1e-6)
    np.testing.assert_allclose(p[5, 1::2], shares(x[5, 1::2].astype("float64")), 1e-6)


def test_threads_change_no_bit() -> None:
    x = rng.normal(size=(3000, 1024)).astype("float32")
    f = laminar.function(lambda x: (ops.softmax(x), entropy(x)))
    found = []
    before = num_threads()
    try:
        for n in (1, 2, 3):
            laminar.set_threads(n)
            found.append([np.asarray(y).tobytes() for y in f(x)])
    finally:
        laminar.set_threads(before)
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
@pytest.mark.parametrize("length", [40, 200, 20000])
def test_two_values_are_kept_of_a_row_of_halves(dtype: Any, length: int) -> None:
    """A quotient, and the exponentials that are made of it, which halves cannot take."""

    def shares(x: Any) -> Any:
        return ops.softmax(x / (ops.abs(x) + 0.5))

    x = rng.normal(size=(3, length)).astype(dtype)
    with every_cluster():
        found = laminar.function(shares)(x)
    wide = x.astype(np.float64)
    e = np.exp(wide / (np.abs(wide) + 0.5))
    expected = e / e.sum(-1, keepdims=True)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), expected, rtol=0.03, atol=1e-7)
