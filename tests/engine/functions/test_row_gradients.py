"""Gradients of variables of which conditions and loops look up rows are IndexedSlices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops, optimizers
from laminar.engine.ops.array.indexed_slices import IndexedSlices

ROWS, COLUMNS = 50, 3
START = np.random.default_rng(0).normal(size=(ROWS, COLUMNS))


@pytest.fixture
def w() -> eng.Variable:
    return eng.Variable(START)


Loss = Callable[[Any, Any], Any]


def zero() -> Any:
    return ops.zeros((), "float64")


def look_up(w: Any, i: Any) -> Any:
    return ops.sum(ops.take(w, i, axis=0) ** 2)


def in_both_branches(w: Any, i: Any) -> Any:
    some: Any = i[:1]
    return ops.cond(ops.sum(i) > 3, lambda: look_up(w, i), lambda: 3.0 * look_up(w, some))


def in_one_branch(w: Any, i: Any) -> Any:
    return ops.cond(ops.sum(i) > 3, lambda: look_up(w, i), zero) + look_up(w, i)


def in_a_scan(w: Any, i: Any) -> Any:
    def step(c: Any, k: Any) -> Any:
        found = ops.reshape(ops.take(w, k, axis=0), (-1, COLUMNS))
        return c * 0.5 + ops.sum(found, axis=0), None

    return ops.sum(ops.scan(step, ops.zeros((COLUMNS,), "float64"), i)[0] ** 2)


def in_a_while(w: Any, n: Any) -> Any:
    def body(k: Any, c: Any) -> Any:
        return k + 1, c * 0.5 + ops.take(w, k, axis=0)

    start = (ops.zeros((), "int32"), ops.zeros((COLUMNS,), "float64"))
    return ops.sum(ops.while_loop(lambda k, c: k < n, body, start)[1] ** 2)


def of_another_number_each_time(w: Any, n: Any) -> Any:
    def body(k: Any, c: Any) -> Any:
        return k + 1, c * 0.5 + look_up(w, ops.arange(k) * 2)

    return ops.while_loop(lambda k, c: k < n, body, (ops.zeros((), "int32"), zero()))[1]


def in_a_condition_in_a_loop(w: Any, n: Any) -> Any:
    def body(k: Any, c: Any) -> Any:
        return k + 1, c + ops.cond(k % 2 == 0, lambda: look_up(w, k), zero)

    return ops.while_loop(lambda k, c: k < n, body, (ops.zeros((), "int32"), zero()))[1]


def in_a_loop_in_a_loop(w: Any, n: Any) -> Any:
    def inner(j: Any, c: Any) -> Any:
        return j + 1, c * 0.9 + look_up(w, j)

    def body(k: Any, c: Any) -> Any:
        start = (ops.zeros((), "int32"), c)
        return k + 1, ops.while_loop(lambda j, c: j < k, inner, start)[1]

    return ops.while_loop(lambda k, c: k < n, body, (ops.zeros((), "int32"), zero()))[1]


CASES: list[tuple[Loss, Any]] = [
    *[(in_both_branches, i) for i in ([1, 2, 2], [1, 0])],
    *[(in_one_branch, i) for i in ([1, 2, 2], [1, 0])],
    *[(in_a_scan, i) for i in ([1, 5, 5, 7], [[1, 2, 3], [3, 3, 3]])],
    (in_a_while, 5),
    (of_another_number_each_time, 4),
    (in_a_condition_in_a_loop, 6),
    (in_a_loop_in_a_loop, 4),
]


def gradient(w: eng.Variable, loss: Loss, i: Any) -> Any:
    with eng.GradientTape() as tape:
        y = loss(w, i)
    return tape.gradient(y, w)


@pytest.mark.parametrize("native", [False, True])
@pytest.mark.parametrize(("loss", "i"), CASES, ids=lambda v: getattr(v, "__name__", None))
def test_values(w: eng.Variable, loss: Loss, i: Any, native: bool) -> None:
    kinds: list[Any] = []

    @eng.function(jit_compile=native)
    def traced(i: Any) -> Any:
        dw = gradient(w, loss, i)
        kinds.append(type(dw))
        return ops.convert_to_tensor(dw)

    given = ops.convert_to_tensor(i, "int32")
    expected = np.asarray(gradient(w, loss, given))
    np.testing.assert_allclose(traced(given), expected, rtol=1e-12, atol=1e-12)
    assert kinds == [IndexedSlices]


def test_no_iterations(w: eng.Variable) -> None:
    @eng.function(jit_compile=False)
    def traced(n: Any) -> Any:
        dw = gradient(w, in_a_while, n)
        return dw.values, dw.indices, ops.convert_to_tensor(dw)

    values, indices, dense = traced(ops.convert_to_tensor(0))
    assert (values.shape, indices.shape) == ((0, COLUMNS), (0,))
    assert not dense.numpy().any()


def test_a_branch_that_uses_all_of_it(w: eng.Variable) -> None:
    @eng.function
    def traced(i: Any) -> Any:
        def loss(w: Any, i: Any) -> Any:
            return ops.cond(ops.sum(i) > 3, lambda: look_up(w, i), lambda: ops.sum(w))

        dw = gradient(w, loss, i)
        assert not isinstance(dw, IndexedSlices)
        return dw

    np.testing.assert_array_equal(traced(np.array([1, 0])), np.ones((ROWS, COLUMNS)))


@pytest.mark.parametrize("make", [optimizers.SGD, optimizers.Adam])
def test_a_step_of_training(w: eng.Variable, make: Callable[[float], Any]) -> None:
    other, dense, rows = eng.Variable(START), make(0.1), make(0.1)

    @eng.function
    def step(i: Any) -> None:
        rows.apply([gradient(w, in_a_scan, i)], [w])

    i = ops.convert_to_tensor([1, 5, 5, 7])
    for _ in range(2):
        step(i)
        dense.apply([ops.convert_to_tensor(gradient(other, in_a_scan, i))], [other])
    np.testing.assert_allclose(w.numpy(), other.numpy(), rtol=1e-9)


def test_second_derivatives(w: eng.Variable) -> None:
    """Of sum over the rows of |w_i|^2, by w once more: 2 for each time that a row is looked up."""

    @eng.function(jit_compile=False)
    def twice(n: Any) -> Any:
        with eng.GradientTape() as outer:
            dw = gradient(w, of_another_number_each_time, n)
            total = ops.sum(dw.values) if isinstance(dw, IndexedSlices) else ops.sum(dw)
        return ops.convert_to_tensor(outer.gradient(total, w))

    found = twice(ops.convert_to_tensor(3)).numpy()
    expected = np.zeros((ROWS, COLUMNS))
    expected[0] = 2 * (0.5 + 1.0)  # in the second and in the third iteration
    expected[2] = 2.0
    np.testing.assert_allclose(found, expected)
