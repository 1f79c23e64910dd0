"""Gradients taken inside of branches, bodies and functions, of tensors from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import FailedPreconditionError
from laminar.engine.functions import remat
from laminar.engine.ops.math.elementary import tanh


def tensor(value: Any) -> Any:
    return eng.convert_to_tensor(np.asarray(value, "float64"))


def in_branch(f: Callable[[], Any], p: Any) -> Any:
    return eng.cond(p > 0.0, f, lambda: tensor(-1.0))


def in_nested_branch(f: Callable[[], Any], p: Any) -> Any:
    return in_branch(lambda: in_branch(f, p), p)


def in_while(f: Callable[[], Any], p: Any) -> Any:
    return eng.while_loop(lambda i, d: i < 3, lambda i, d: (i + 1, f()), (0, p))[1]


def in_scan(f: Callable[[], Any], p: Any) -> Any:
    return eng.scan(lambda d, _: (f(), None), p, length=2)[0]


def in_function(f: Callable[[], Any], p: Any) -> Any:
    return eng.function(f)()


def in_place(f: Callable[[], Any], p: Any) -> Any:
    return f()


PLACES = pytest.mark.parametrize(
    "place", [in_place, in_branch, in_nested_branch, in_while, in_scan, in_function]
)


def run(graph_of: Callable[[Any, Any], Any], x: float) -> tuple[Any, Any]:
    """What a function of (x, p) gives in a graph of a function, and in a plain graph."""
    traced = eng.function(graph_of)(tensor(x), tensor(1.0))
    with eng.Graph().as_default():
        fed = [eng.placeholder("float64", [], name=n) for n in "xp"]
        y = graph_of(*fed)
        with eng.Session() as session:
            return np.asarray(traced), session.run(y, dict(zip(fed, [x, 1.0], strict=True)))


@PLACES
def test_gradients(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        y = x * x
        return place(lambda: eng.gradients(y * 3.0 + x, x)[0], p)

    np.testing.assert_array_equal(run(program, 2.0), 13.0)


@PLACES
def test_of_what_a_condition_and_a_loop_outside_give(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        y = eng.cond(p > 0.0, lambda: tanh(x), lambda: x)
        (_, z) = eng.while_loop(lambda i, z: i < 3, lambda i, z: (i + 1, z * x), (0, y))
        return place(lambda: eng.gradients(z * y, x)[0], p)

    t = np.tanh(0.5)
    expected = 2 * t * (1 - t**2) * 0.5**3 + t**2 * 3 * 0.5**2
    np.testing.assert_allclose(run(program, 0.5), expected, rtol=1e-12)


@PLACES
def test_second_order(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        y = x * x * x
        (dy,) = eng.gradients(y, x)
        return place(lambda: eng.gradients(dy * y, x)[0], p)

    np.testing.assert_array_equal(run(program, 2.0), 15 * 2.0**4)  # (3 x**5)'


@PLACES
def test_variables(place: Any) -> None:
    v = eng.Variable(np.asarray(2.0))

    @eng.function
    def program(p: Any) -> Any:
        y = v * v
        return place(lambda: eng.gradients(y * v, v)[0], p)

    assert program(tensor(1.0)) == 12.0


@PLACES
def test_eager_values(place: Any) -> None:
    x = tensor(2.0)

    @eng.function
    def program(p: Any) -> Any:
        y = x * x
        return place(lambda: eng.gradients(y * x, x)[0], p)

    assert program(tensor(1.0)) == 12.0


@PLACES
def test_results_inside_and_outside_with_weights(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        y = x * x
        return place(lambda: eng.gradients([y, y * x], x, [x, 2.0])[0], p)

    np.testing.assert_array_equal(run(program, 3.0), 3.0 * 6.0 + 2.0 * 27.0)


@PLACES
def test_stop_gradients(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        y = x * x
        return place(lambda: eng.gradients(y * x, [x, y], stop_gradients=[y])[0], p)

    np.testing.assert_array_equal(run(program, 3.0), 9.0)


@PLACES
def test_a_tape_outside(place: Any) -> None:
    v = eng.Variable(np.asarray(5.0))

    def program(x: Any, p: Any) -> Any:
        with eng.GradientTape(persistent=True) as tape:
            tape.watch(x)
            y = x * x * v
            return place(lambda: tape.gradient(y * 3.0 * v, x) + tape.gradient(y * v, v), p)

    expected = 6.0 * 2 * 25 + 4 * 2 * 5.0
    assert eng.function(program)(tensor(2.0), tensor(1.0)) == expected


@PLACES
def test_a_tape_of_eager_values(place: Any) -> None:
    x, v = tensor(2.0), eng.Variable(np.asarray(5.0))
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = x * x * v
        found = eng.function(lambda p: place(lambda: tape.gradient(y * v, [x, v])[1], p))(
            tensor(1.0)
        )
    assert found == 2 * 2**2 * 5.0


@PLACES
def test_a_tape_inside(place: Any) -> None:
    def program(x: Any, p: Any) -> Any:
        def slope() -> Any:
            with eng.GradientTape() as tape:
                tape.watch(x)
                y = x * x * p
            return tape.gradient(y, x)

        return place(slope, p)

    np.testing.assert_array_equal(run(program, 3.0), 6.0)


def test_a_variable_that_is_read_inside_alone() -> None:
    v = eng.Variable(np.asarray(5.0))

    @eng.function
    def program(p: Any) -> Any:
        with eng.GradientTape() as tape:
            return in_branch(lambda: tape.gradient(v * v, v), p)

    assert program(tensor(1.0)) == 10.0


def test_an_argument_is_a_variable_of_its_own() -> None:
    found: list[Any] = []

    def body(i: Any, y: Any) -> Any:
        found.extend(eng.gradients(y * y, [x, y]))
        return i + 1, y

    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
        eng.while_loop(lambda i, y: i < 3, body, (0, x * x))
    assert found[0] is None
    assert found[1] is not None


def test_a_tensor_of_another_graph_is_refused() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float64", [], name="x")
    with eng.Graph().as_default():
        y = eng.placeholder("float64", [], name="y")
        with pytest.raises(FailedPreconditionError, match="belongs to another graph"):
            eng.gradients(y * y, x)


def test_through_a_remat() -> None:
    def program(x: Any, p: Any) -> Any:
        y = remat(lambda x: tanh(x * x))(x)
        return in_branch(lambda: eng.gradients(y * y, x)[0], p)

    t = np.tanh(0.25)
    np.testing.assert_allclose(run(program, 0.5), 2 * t * (1 - t**2), rtol=1e-12)
