"""cond, case and switch_case: at once, in functions, in sessions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.ops.core.registry import define

runs: list[str] = []


@define("TestNoted")
def noted(x: Any, *, label: str) -> Any:
    """x, leaving a note that it ran."""
    return x


@noted.reference
def _noted(xp: Any, x: Any, *, label: str) -> Any:
    runs.append(label)
    return x


def at_once(fn: Callable[..., Any], *args: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(y) for y in fn(*map(eng.convert_to_tensor, args))]


def in_function(fn: Callable[..., Any], *args: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(y) for y in eng.function(fn)(*map(eng.convert_to_tensor, args))]


def in_session(fn: Callable[..., Any], *args: Any) -> list[np.ndarray[Any, Any]]:
    with eng.Graph().as_default() as graph:
        given = [np.asarray(eng.convert_to_tensor(a).numpy()) for a in args]
        xs = [eng.placeholder(str(a.dtype), a.shape) for a in given]
        ys = fn(*xs)
        with eng.Session(graph=graph) as session:
            found: list[Any] = session.run(list(ys), dict(zip(xs, given, strict=True)))
            return [np.asarray(y) for y in found]


WAYS = [at_once, in_function, in_session]
every_way = pytest.mark.parametrize("way", WAYS)


@every_way
@pytest.mark.parametrize(("y", "expected"), [(2.0, 1.0), (0.0, 0.0)])
def test_only_the_taken_branch_runs(way: Any, y: float, expected: float) -> None:
    def g(x: Any, y: Any) -> Any:
        return [eng.cond(y == 0.0, lambda: y, lambda: noted(x / y, label="division"))]

    runs.clear()
    assert way(g, 2.0, y) == [expected]
    assert runs == (["division"] if y else [])


@every_way
@pytest.mark.parametrize("x", [3.0, -1.0])
def test_gradient_of_the_taken_branch(way: Any, x: float) -> None:
    def slope(x: Any) -> Any:
        with eng.GradientTape(persistent=True) as outer:
            outer.watch(x)
            with eng.GradientTape() as tape:
                tape.watch(x)
                y = eng.cond(x > 0, lambda: x * x * x, lambda: -x)
            dx = tape.gradient(y, x)
        return [y, dx, outer.gradient(dx, x, unconnected_gradients="zero")]

    expected = [x**3, 3 * x * x, 6 * x] if x > 0 else [-x, -1.0, 0.0]
    np.testing.assert_allclose(way(slope, x), expected)


def test_symbolic_gradients_of_one_graph() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = eng.cond(x > 0, lambda: x * x, lambda: -x)
        (dx,) = eng.gradients(y, [x])
        with eng.Session() as session:
            assert session.run([y, dx], {x: 3.0}) == [9.0, 6.0]
            assert session.run([y, dx], {x: -1.0}) == [1.0, -1.0]


@every_way
@pytest.mark.parametrize(("i", "expected"), [(0, 1.0), (1, 4.0), (2, 9.0), (-1, 9.0), (7, 9.0)])
def test_switch_case(way: Any, i: int, expected: float) -> None:
    def choose(i: Any, x: Any) -> Any:
        return [eng.switch_case(i, [lambda: x, lambda: x * 4, lambda: x * 9])]

    assert way(choose, i, 1.0) == [expected]


@every_way
@pytest.mark.parametrize(("i", "expected"), [(0, 1.0), (3, 4.0), (1, 9.0), (9, 9.0)])
def test_switch_case_by_number_with_a_default(way: Any, i: int, expected: float) -> None:
    def choose(i: Any, x: Any) -> Any:
        return [eng.switch_case(i, {0: lambda: x, 3: lambda: x * 4}, lambda: x * 9)]

    assert way(choose, i, 1.0) == [expected]


@every_way
@pytest.mark.parametrize(("x", "expected"), [(-1.0, 0.0), (0.5, 1.0), (5.0, 2.0)])
def test_case_takes_the_first_that_holds(way: Any, x: float, expected: float) -> None:
    def sort(x: Any) -> Any:
        pairs: Any = [(x < 0, lambda: x * 0), (x < 1, lambda: x * 0 + 1)]
        return [eng.case(pairs, lambda: x * 0 + 2)]

    assert way(sort, x) == [expected]


@every_way
@pytest.mark.parametrize("p", [True, False])
def test_structures_none_and_python_numbers(way: Any, p: bool) -> None:
    def both(p: Any, x: Any) -> Any:
        found = eng.cond(
            p,
            lambda: {"a": (x, 1.0), "b": None},
            lambda: {"a": [x * 2, x.sum() if hasattr(x, "sum") else x[0]], "b": None},
        )
        assert found["b"] is None
        return [found["a"][0], eng.convert_to_tensor(found["a"][1], "float64")]

    found = way(both, p, np.array([1.0, 2.0]))
    np.testing.assert_array_equal(found[0], [1.0, 2.0] if p else [2.0, 4.0])
    assert found[1].dtype == "float64"


@every_way
@pytest.mark.parametrize("p", [True, False])
def test_conditions_in_conditions(way: Any, p: bool) -> None:
    def nested(p: Any, q: Any, x: Any) -> Any:
        return [eng.cond(p, lambda: eng.cond(q, lambda: x, lambda: x * 2), lambda: x * 3)]

    assert way(nested, p, True, 1.0) == [1.0 if p else 3.0]
    assert way(nested, p, False, 1.0) == [2.0 if p else 3.0]


def test_branches_update_variables_in_the_order_of_the_program() -> None:
    v = eng.Variable(1.0)

    def step(p: Any) -> Any:
        before = v.value
        eng.cond(p, lambda: v.assign(v.value * 10), lambda: v.assign_add(1.0))
        between = v.value
        v.assign_add(0.5)
        return before, between, v.value

    traced = eng.function(step)
    for fn in (step, traced):
        v.assign(1.0)
        assert [float(y) for y in fn(eng.constant(True))] == [1.0, 10.0, 10.5]
        assert [float(y) for y in fn(eng.constant(False))] == [10.5, 11.5, 12.0]


@pytest.mark.parametrize("p", [True, False])
def test_gradient_for_a_variable_that_one_branch_reads(p: bool) -> None:
    v, w = eng.Variable(3.0), eng.Variable(5.0)

    def slopes(p: Any) -> Any:
        with eng.GradientTape() as tape:
            y = eng.cond(p, lambda: v.value * v.value, lambda: w.value * 2.0)
        return tape.gradient(y, [v, w], unconnected_gradients="zero")

    expected = [6.0, 0.0] if p else [0.0, 2.0]
    assert [float(d) for d in slopes(eng.constant(p))] == expected
    assert [float(d) for d in eng.function(slopes)(eng.constant(p))] == expected


def test_a_variable_without_a_value_is_read_only_where_it_is_used() -> None:
    with eng.Graph().as_default() as graph:
        p = eng.placeholder("bool", [])
        v = eng.Variable(2.0)
        y = eng.cond(p, lambda: v.read_value(), lambda: eng.constant(1.0))
        (dv,) = eng.gradients(y, [v])
        with eng.Session(graph=graph) as session:
            assert session.run(y, {p: False}) == 1.0
            session.run(v.initializer)
            assert session.run([y, dv], {p: True}) == [2.0, 1.0]
            assert session.run([y, dv], {p: False}) == [1.0, 0.0]


def test_a_python_condition_chooses_while_tracing() -> None:
    @eng.function
    def choose(x: Any, training: bool) -> Any:
        return eng.cond(training, lambda: x + 1, lambda: (x, x))

    assert float(choose(eng.constant(1.0), True)) == 2.0
    assert len(choose(eng.constant(1.0), False)) == 2


BAD: list[Any] = [
    pytest.param(
        lambda x: eng.cond(x > 0, lambda: x, lambda: (x, x)),
        InvalidArgumentError,
        "the branches must return one structure",
        id="structure",
    ),
    pytest.param(
        lambda x: eng.cond(x > 0, lambda: {"a": x}, lambda: {"a": None}),
        InvalidArgumentError,
        r"result\['a'\] is None in false_fn",
        id="none",
    ),
    pytest.param(
        lambda x: eng.cond(x > 0, lambda: (x, x), lambda: (x, eng.constant(1))),
        DTypeError,
        r"result\[1\] is int32\[\] in false_fn and float32\[\] in true_fn",
        id="dtype",
    ),
    pytest.param(
        lambda x: eng.cond(x > 0, lambda: x, lambda: object()),
        InvalidArgumentError,
        "result of false_fn must be a tensor",
        id="no-tensor",
    ),
    pytest.param(
        lambda x: eng.cond(eng.convert_to_tensor([x, x]) > 0, lambda: x, lambda: x),
        ShapeError,
        "the condition must be a scalar",
        id="vector",
    ),
    pytest.param(lambda x: eng.switch_case(x, [lambda: x]), DTypeError, "an integer", id="float"),
    pytest.param(
        lambda x: eng.switch_case(0, []), InvalidArgumentError, "at least one branch", id="empty"
    ),
    pytest.param(
        lambda x: eng.switch_case(eng.convert_to_tensor(x * 0, "int32"), {-1: lambda: x}),
        InvalidArgumentError,
        "numbered from 0 on",
        id="negative",
    ),
    pytest.param(lambda x: eng.case([]), InvalidArgumentError, "at least one pair", id="no-pairs"),
    pytest.param(
        lambda x: eng.case([(True, lambda: x), (True, lambda: x)], exclusive=True),
        InvalidArgumentError,
        "more than one condition holds",
        id="exclusive",
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), BAD)
def test_what_does_not_fit_names_the_users_line(build: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        eng.function(build)(eng.constant(1.0))
    assert caught.value.location.filename == __file__


def test_an_error_in_a_branch_names_its_operation() -> None:
    @define("TestBranchFails")
    def fails(x: Any) -> Any:
        """Raises."""
        return x

    @fails.reference
    def kernel(xp: Any, x: Any) -> Any:
        raise ValueError("not today")

    @eng.function
    def choose(x: Any) -> Any:
        return eng.cond(x > 0, lambda: fails(x, name="culprit"), lambda: x)

    assert float(choose(eng.constant(-1.0))) == -1.0
    with pytest.raises(InvalidArgumentError, match=r"not today \[operation 'culprit'\]") as caught:
        choose(eng.constant(1.0))
    assert caught.value.location is not None
    assert caught.value.location.function == "<lambda>"
    assert float(choose(eng.constant(-1.0))) == -1.0


def test_that_one_case_alone_holds_is_checked_at_run_time() -> None:
    def choose(x: Any) -> Any:
        pairs = [(x > 1.0, lambda: 10.0 * x), (x > 2.0, lambda: 20.0 * x), (x < 0.0, lambda: -x)]
        return eng.case(pairs, lambda: 0.0 * x, exclusive=True)

    with eng.Graph().as_default():
        fed = eng.placeholder("float64", [], name="x")
        y = choose(fed)
    session = eng.Session(graph=fed.graph)
    for f in (choose, eng.function(choose), lambda x: session.run(y, {fed: x.numpy()})):
        values = [float(f(eng.constant(v, "float64"))) for v in (1.5, -2.0, 0.5)]
        assert values == [15.0, 2.0, 0.0]
        with pytest.raises(InvalidArgumentError, match="more than one condition holds"):
            f(eng.constant(3.0, "float64"))
    session.close()


@pytest.mark.parametrize("taken", [True, False])
def test_branches_that_end_in_operations(taken: bool) -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        p = eng.placeholder("bool", [])
        v, w = eng.Variable(0.0, name="v"), eng.Variable(0.0, name="w")
        session.run(eng.global_variables_initializer())

        def write_both() -> Any:
            return eng.group(v.assign(3.0), w.assign(4.0))

        def write_one() -> Any:
            return eng.group(w.assign(6.0))

        def write_and_forget() -> None:
            v.assign(5.0)

        number = ops.cast(p, "int32")
        for made, when_taken, otherwise in (
            (eng.cond(p, write_both, eng.no_op), [3.0, 4.0], [0.0, 0.0]),
            (eng.cond(p, write_both, lambda: None), [3.0, 4.0], [0.0, 0.0]),
            (eng.cond(p, write_and_forget, lambda: None), [5.0, 0.0], [0.0, 0.0]),
            (eng.switch_case(number, [eng.no_op, write_both]), [3.0, 4.0], [0.0, 0.0]),
            (eng.case([(p, write_both)], default=write_one), [3.0, 4.0], [0.0, 6.0]),
        ):
            assert isinstance(made, eng.Operation)
            session.run([v.initializer, w.initializer])
            session.run(made, {p: taken})
            assert session.run([v, w]) == (when_taken if taken else otherwise)


def test_an_operation_and_a_value_side_by_side() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        p = eng.placeholder("bool", [])
        done, y = eng.cond(p, lambda: (eng.no_op(), 1.0), lambda: (None, 2.0))
        assert isinstance(done, eng.Operation)
        assert session.run([done, y], {p: False}) == [None, 2.0]
        with pytest.raises(InvalidArgumentError, match="must be a tensor"):
            eng.cond(p, eng.no_op, lambda: eng.constant(1.0))


def test_branches_of_other_shapes() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        p = eng.placeholder("bool", [])
        x = eng.placeholder("float32", [2])
        longer = eng.cond(p, lambda: x * 2.0, lambda: ops.concatenate([x, x]) * 3.0)
        deeper = eng.cond(p, lambda: x * 2.0, lambda: x[None] * 3.0)
        assert (str(longer.spec), str(deeper.spec)) == ("float32[?]", "float32[...]")
        found = session.run([longer, deeper], {p: False, x: [1.0, 2.0]})
        assert [v.tolist() for v in found] == [[3.0, 6.0, 3.0, 6.0], [[3.0, 6.0]]]
        dxs = [eng.gradients(y, x)[0] for y in (longer, deeper)]
        found = session.run(dxs, {p: False, x: [1.0, 2.0]})
        assert [v.tolist() for v in found] == [[6.0, 6.0], [3.0, 3.0]]


@every_way
@pytest.mark.parametrize("pred", [[[True]], [[False]], [True]])
def test_a_condition_of_one_element(way: Any, pred: Any) -> None:
    def g(p: Any, x: Any) -> Any:
        (total,) = eng.while_loop(lambda t: ops.reshape(t < 3.0, [1, 1]), lambda t: t + 1.0, [x])
        return [eng.cond(p, lambda: x * 2.0, lambda: -x), total]

    expected = 2.0 if np.all(pred) else -1.0
    assert way(g, pred, 1.0) == [expected, 3.0]


def test_a_condition_of_one_element_by_a_feed() -> None:
    with eng.Graph().as_default(), eng.Session() as session:
        p = eng.placeholder("bool")
        y = eng.cond(p, lambda: eng.constant(1), lambda: eng.constant(2))
        assert session.run(y, {p: [[True]]}) == 1
        assert session.run(y, {p: False}) == 2
        with pytest.raises(InvalidArgumentError, match="cannot reshape array of size 2"):
            session.run(y, {p: [True, False]})


def test_what_is_true_is_traced_first() -> None:
    traced: list[str] = []

    def branch(name: str) -> Any:
        def fn() -> Any:
            traced.append(name)
            return eng.constant(1.0)

        return fn

    with eng.Graph().as_default():
        eng.cond(eng.placeholder("bool", ()), branch("true"), branch("false"))
        eng.switch_case(eng.placeholder("int32", ()), [branch("first"), branch("second")])
    assert traced == ["true", "false", "first", "second"]
