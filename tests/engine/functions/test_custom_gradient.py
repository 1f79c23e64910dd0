"""`custom_gradient`: eagerly, in functions, in graphs, and of higher order."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine import TensorSpec
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.math.elementary import exp, log1p, sin


def tensor(value: Any) -> Any:
    return eng.convert_to_tensor(np.asarray(value, np.float64))


@eng.custom_gradient
def log1p_exp(x: Any) -> Any:
    """log(1 + exp(x)), whose plain gradient is NaN where exp(x) is infinite."""
    e = exp(x)

    def backward(*dys: Any, upstream: Any = None) -> Any:
        (dy,) = dys if upstream is None else (upstream,)
        return dy * (1.0 - 1.0 / (1.0 + e))

    return log1p(e), backward


@eng.custom_gradient
def scaled(x: Any, y: Any, *, factor: float) -> Any:
    """(x + y, x y) whose gradients are multiplied by `factor`; y gets none."""

    def backward(da: Any, db: Any) -> Any:
        return (da + db * y) * factor, None

    return {"sum": x + y, "product": x * y}, backward


def eagerly(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    """The gradients of a scalar function, at once."""
    tensors = [tensor(x) for x in xs]
    with eng.GradientTape() as tape:
        tape.watch(tensors)
        y = fn(*tensors)
    return [None if d is None else float(d) for d in tape.gradient(y, tensors)]


def through_a_function(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    return eagerly(eng.function(fn), *xs)


def through_nested_functions(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    inner = eng.function(fn)
    return eagerly(eng.function(lambda *args: inner(*args) * 1.0), *xs)


def inside_a_function(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    inner = eng.function(fn)

    @eng.function
    def slopes(*tensors: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(list(tensors))
            y = inner(*tensors)
        return tape.gradient(y, list(tensors))

    return [None if d is None else float(d) for d in slopes(*(tensor(x) for x in xs))]


def in_a_graph(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    with eng.Graph().as_default():
        symbols = [eng.placeholder("float64", [], name=f"x{i}") for i in range(len(xs))]
        found = eng.gradients(fn(*symbols), symbols)
        with eng.Session() as session:
            values = iter(
                session.run(
                    [d for d in found if d is not None], dict(zip(symbols, xs, strict=True))
                )
            )
    return [None if d is None else float(next(values)) for d in found]


def with_a_function_in_a_graph(fn: Callable[..., Any], *xs: float) -> list[float | None]:
    return in_a_graph(eng.function(fn), *xs)


WAYS = [
    eagerly,
    through_a_function,
    through_nested_functions,
    inside_a_function,
    in_a_graph,
    with_a_function_in_a_graph,
]


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_is_the_given_one(way: Callable[..., list[float | None]]) -> None:
    assert way(log1p_exp, 1000.0) == [1.0]
    assert way(lambda x: log1p_exp(x * 2.0), 0.5) == pytest.approx([2 / (1 + np.exp(-1.0))])
    both = way(lambda x, y: sum(scaled(x, y, factor=10.0).values()), 3.0, 5.0)
    assert both == [60.0, None]


@pytest.mark.parametrize("way", WAYS)
def test_of_second_order(way: Callable[..., list[float | None]]) -> None:
    """The rule itself is differentiated, through what it keeps of the forward computation too."""

    def slope(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = log1p_exp(x)
        return tape.gradient(y, x)

    s = 1 / (1 + np.exp(-0.3))
    assert way(slope, 0.3) == pytest.approx([s * (1 - s)])


@pytest.mark.parametrize("way", [eagerly, through_a_function])
def test_of_second_order_by_two_tapes_around(way: Callable[..., list[float | None]]) -> None:
    fn = eng.function(log1p_exp) if way is through_a_function else log1p_exp
    x = tensor(0.3)
    with eng.GradientTape() as outer:
        outer.watch(x)
        with eng.GradientTape() as inner:
            inner.watch(x)
            y = fn(x)
        dx = inner.gradient(y, x)
    s = 1 / (1 + np.exp(-0.3))
    assert float(outer.gradient(dx, x)) == pytest.approx(s * (1 - s))


@pytest.mark.parametrize("way", WAYS)
def test_what_the_rule_uses_besides(way: Callable[..., list[float | None]]) -> None:
    v, outside = eng.Variable(np.asarray(4.0)), tensor(5.0)

    @eng.custom_gradient
    def f(x: Any) -> Any:
        y = sin(x)
        unused = x * 7.0  # only the rule needs it
        return y, lambda dy: dy * v * outside * unused

    assert way(f, 2.0) == [4.0 * 5.0 * 14.0]


def test_the_values_are_those_of_the_function() -> None:
    found = scaled(tensor(3.0), 5.0, factor=1.0)
    assert (float(found["sum"]), float(found["product"])) == (8.0, 15.0)
    assert float(eng.function(log1p_exp)(tensor(0.0))) == pytest.approx(np.log(2))


def test_nothing_keeps_the_rule_alive() -> None:
    x = tensor(2.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        kept = tensor([1.0, 2.0])
        alive = weakref.ref(kept)
        y = eng.custom_gradient(lambda z, kept=kept: (z * 1.0, lambda dy: dy * kept[1]))(x)
        del kept
    assert float(tape.gradient(y, x)) == 2.0
    del y, tape
    gc.collect()
    assert alive() is None


def test_the_number_of_gradients_is_checked() -> None:
    @eng.custom_gradient
    def f(x: Any) -> Any:
        return x * 1.0, lambda dy: (dy, dy)

    with pytest.raises(InvalidArgumentError, match="returned 2 values for 1 arguments"):
        eagerly(f, 1.0)
    with pytest.raises(InvalidArgumentError, match="returned 2 values for 1 arguments"):
        eng.function(f).concrete(TensorSpec([], "float64"))


def with_variables(w: Any) -> Callable[[Any], Any]:
    """x w, whose gradients are 10 and 100 times as large."""

    @eng.custom_gradient
    def times(x: Any) -> Any:
        def backward(dy: Any, variables: Any = None) -> Any:
            assert [v is w for v in variables] == [True]
            return 10.0 * dy * w.as_tensor(), [100.0 * dy * x]

        return x * w, backward

    return times


def test_gradients_of_variables() -> None:
    w = eng.Variable(np.float64(3.0))
    times = with_variables(w)

    def slopes(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = times(x) + w
        return tape.gradient(y, [x, w])

    for fn in (slopes, eng.function(slopes)):
        assert [d.numpy() for d in fn(tensor(2.0))] == [30.0, 201.0]
    with eng.Graph().as_default(), eng.Session() as session:
        w = eng.Variable(np.float64(3.0), name="w")
        x = eng.constant(np.float64(2.0))
        found = eng.gradients(with_variables(w)(x), [x, w])
        session.run(w.initializer)
        assert session.run(found) == [30.0, 200.0]


def test_without_such_an_argument_variables_get_nothing() -> None:
    w = eng.Variable(np.float64(3.0))

    @eng.custom_gradient
    def times(x: Any) -> Any:
        return x * w, lambda dy: dy

    x = tensor(2.0)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = times(x)
    assert tape.gradient(y, w) is None


def test_the_gradient_function_may_differentiate_the_forward_computation() -> None:
    w = eng.Variable(np.float64(3.0))

    @eng.custom_gradient
    def times(x: Any) -> Any:
        y = sin(x) * w

        def backward(dy: Any, variables: Any = None) -> Any:
            dx, dw = eng.gradients(y, [x, variables[0]], grad_ys=dy)
            assert dw is not None
            return dx, [10.0 * dw]

        return y, backward

    @eng.function
    def slopes(x: Any) -> Any:
        y = times(x) * 2.0
        return eng.gradients(y, [x, w])

    expected = [2 * 3 * np.cos(0.5), 2 * 10 * np.sin(0.5)]
    np.testing.assert_allclose(slopes(tensor(0.5)), expected)
    with eng.Graph().as_default(), eng.Session() as session:
        w = eng.Variable(np.float64(3.0), name="w")
        x = eng.constant(np.float64(0.5))
        found = eng.gradients(times(x) * 2.0, [x, w])
        session.run(w.initializer)
        np.testing.assert_allclose(session.run(found), expected)
