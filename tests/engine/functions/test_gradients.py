"""Gradients through functions, and of functions inside functions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar import engine as eng
from laminar.engine.errors import (
    UnimplementedError,
)
from laminar.engine.graph import FLOATING, TensorSpec
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.arithmetic import square
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.ops.math.reduce import reduce_sum
from tests.engine import programs

from ...sampling import examples


def tensor(value: Any, dtype: str = "float32") -> Any:
    return eng.convert_to_tensor(np.asarray(value, dtype))


@define("TestNoGradientInside", dtypes=FLOATING)
def no_gradient_inside(x: TensorSpec) -> TensorSpec:
    """x, without a rule for its gradient."""
    return x


no_gradient_inside.reference(lambda xp, x: x)


def test_gradient_of_a_composition() -> None:
    f = eng.function(square)
    g = eng.function(lambda x: square(f(x)))
    x = tensor(2)
    assert g(x) == 16.0
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = g(x)
    assert tape.gradient(y, x) == 32.0


def test_gradients_reach_captures() -> None:
    v, frozen = eng.Variable(3.0), eng.Variable(5.0, trainable=False)
    outside = tensor(7)
    f = eng.function(lambda x: x * v * frozen * outside)
    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch([x, outside])
        y = f(x)
    found = tape.gradient(y, [x, v, frozen, outside])
    assert [None if g is None else float(g) for g in found] == [105.0, 70.0, None, 30.0]


def test_a_missing_gradient_matters_only_if_it_is_asked_for() -> None:
    f = eng.function(lambda x: no_gradient_inside(x))
    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert y == 2.0
    with pytest.raises(UnimplementedError, match="TestNoGradientInside has no gradient"):
        tape.gradient(y, x)


def test_what_no_tape_watches_is_not_recorded() -> None:
    f = eng.function(tanh)
    with eng.GradientTape() as tape:
        f(tensor(1))
    assert tape._records == []
    assert f.concrete(tensor(1))._backwards == {}  # nor is a gradient prepared


def test_results_that_carry_no_gradient() -> None:
    f = eng.function(lambda x: (x * 2.0, cast(x, "int32"), x, x))
    x = tensor(3)
    with eng.GradientTape(persistent=True) as tape:
        tape.watch(x)
        doubled, number, same, again = f(x)
    assert tape.gradient(doubled, x) == 2.0
    assert tape.gradient(number, x) is None
    assert tape.gradient([same, again], x) == 2.0


@pytest.mark.parametrize("order", [2, 3, 4])
def test_derivatives_of_higher_order(order: int) -> None:
    v = eng.Variable(np.asarray(0.7))
    f = eng.function(lambda x: tanh(x * v) * x)
    tapes = [eng.GradientTape() for _ in range(order)]

    def derivative(fn: Any, depth: int, x: Any) -> Any:
        if not depth:
            return fn(x)
        with tapes[depth - 1] as tape:
            tape.watch(x)
            y = derivative(fn, depth - 1, x)
        return tape.gradient(y, x)

    x = eng.convert_to_tensor(np.asarray(0.4))
    found = derivative(f, order, x)
    tapes = [eng.GradientTape() for _ in range(order)]
    expected = derivative(f._fn, order, x)
    assert float(found) == pytest.approx(float(expected), rel=1e-12)


def test_second_order_sees_the_state_of_the_call() -> None:
    v = eng.Variable(np.asarray(1.0))

    def f(x: Any) -> Any:
        v.assign_add(1.0)
        y = v * x * x
        v.assign_add(10.0)
        return y * v

    def second(fn: Any) -> tuple[float, float]:
        v.assign(1.0)
        x = eng.convert_to_tensor(np.asarray(3.0))
        with eng.GradientTape() as outer:
            outer.watch(x)
            with eng.GradientTape() as inner:
                inner.watch(x)
                y = fn(x)
            dx = inner.gradient(y, x)
        ddx = outer.gradient(dx, x)
        return float(ddx), float(v)

    assert second(eng.function(f)) == second(f) == (2 * 2.0 * 12.0, 12.0)


def test_tapes_inside_and_outside() -> None:
    @eng.function
    def slope(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = x * x * x
        return tape.gradient(y, x)

    x = tensor(2)
    with eng.GradientTape() as tape:
        tape.watch(x)
        dx = slope(x)
    assert (dx, tape.gradient(dx, x)) == (12.0, 12.0)


@examples(30)
@given(programs.programs(), st.integers(0, 2**31))
def test_random_programs_agree(program: programs.Program, seed: int) -> None:
    """NumPy, eager, function and Session; then gradients of the last three, twice."""
    inputs = list(np.random.default_rng(seed).normal(size=(2, 2, 2)))
    tensors = [eng.convert_to_tensor(x) for x in inputs]

    def last(*xs: Any) -> Any:
        return programs.run(program, xs)[-1]

    eager, traced = last(*tensors), eng.function(last, jit_compile=False)
    np.testing.assert_allclose(eager.numpy(), programs.reference(program, inputs)[-1], rtol=1e-12)
    np.testing.assert_array_equal(traced(*tensors).numpy(), eager.numpy())
    with eng.Graph().as_default():
        xs = [eng.placeholder("float64", [2, 2], name=n) for n in "ab"]
        y = traced(*xs)
        with eng.Session() as session:
            np.testing.assert_array_equal(
                session.run(y, dict(zip(xs, inputs, strict=True))), eager.numpy()
            )

    def slopes(fn: Any) -> list[Any]:
        with eng.GradientTape() as outer:
            outer.watch(tensors)
            with eng.GradientTape() as inner:
                inner.watch(tensors)
                result = fn(*tensors)
            first = inner.gradient(result, tensors, unconnected_gradients="zero")
            total = reduce_sum(square(first[0])) + reduce_sum(square(first[1]))
        return [*first, *outer.gradient(total, tensors, unconnected_gradients="zero")]

    for a, b in zip(slopes(last), slopes(traced), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-9, atol=1e-11)


def test_what_a_loop_starts_from_has_a_gradient_even_where_it_is_stopped_inside() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        x, y, z = (eng.placeholder("float32", [2]) for _ in range(3))

        def body(x: Any, y: Any) -> Any:
            stopped = eng.stop_gradient(y * y)
            return x * x + stopped, stopped + eng.stop_gradient(z)

        rx, _ = eng.while_loop(lambda x, y: reduce_sum(x) < 100.0, body, [x, y])
        dx, dy, dz = eng.gradients(rx, [x, y, z])
        feeds = {x: [3.0, 4.0], y: [2.0, 3.0], z: [0.0, 0.0]}
        np.testing.assert_array_equal(session.run(dx, feeds), [156.0, 400.0])
        np.testing.assert_array_equal(session.run(dy, feeds), [0.0, 0.0])
        assert dz is None  # of what is no first value, a stopped part is none of the loop


def test_what_reaches_another_result_of_a_loop_has_a_gradient_of_zeros() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        a, b = eng.constant(2.0), eng.constant(3.0)
        _, (first, second) = eng.scan(lambda c, x: (c, (a * x, b * x)), 0.0, np.ones(4, "float32"))
        da, db = eng.gradients(reduce_sum(first) + eng.stop_gradient(reduce_sum(second)), [a, b])
        assert session.run([da, db]) == [4.0, 0.0]
