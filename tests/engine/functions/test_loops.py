"""while_loop, scan, fori_loop, map: at once, in functions, in sessions; with gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import TensorSpec
from laminar.engine.ops.array.join import concat
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.random import SeedGenerator, normal

from .test_conditions import every_way, in_function

rng = np.random.default_rng(0)


@every_way
def test_while_loop(way: Any) -> None:
    def total(n: Any) -> Any:
        return eng.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s + i), (0, 0))

    assert way(total, 10) == [10, 45]
    assert way(total, 0) == [0, 0]


def test_the_check_of_the_paper() -> None:
    def loop() -> Any:
        return eng.while_loop(lambda i, s: i < 10, lambda i, s: (i + 1, s + i), (0, 0))

    assert [int(y) for y in loop()] == [10, 45]
    assert [int(y) for y in eng.function(loop)()] == [10, 45]
    with eng.Graph().as_default(), eng.Session() as session:
        assert session.run(loop()) == (10, 45)


@every_way
@pytest.mark.parametrize("most", [0, 3, 100])
def test_maximum_iterations(way: Any, most: int) -> None:
    def count(m: Any) -> Any:
        fixed = eng.while_loop(lambda i: i < 9, lambda i: i + 1, m * 0, maximum_iterations=most)
        given = eng.while_loop(lambda i: i < 9, lambda i: i + 1, m * 0, maximum_iterations=m)
        return [fixed, given]

    assert way(count, most) == [min(most, 9)] * 2


@every_way
def test_one_graph_differentiates_for_any_count(way: Any) -> None:
    def power(w: Any, n: Any) -> Any:
        with eng.GradientTape() as outer:
            outer.watch(w)
            with eng.GradientTape() as tape:
                tape.watch(w)
                _, s = eng.while_loop(
                    lambda i, s: i < n, lambda i, s: (i + 1, s * w), (0, w * 0 + 1)
                )
            dw = tape.gradient(s, w)
        return [s, dw, outer.gradient(dw, w)]

    for n in (3, 5):
        w = 1.5
        expected = [w**n, n * w ** (n - 1), n * (n - 1) * w ** (n - 2)]
        np.testing.assert_allclose(way(power, np.float64(w), n), expected)


def test_symbolic_gradients_of_higher_order() -> None:
    with eng.Graph().as_default():
        w, n = eng.placeholder("float64", []), eng.placeholder("int32", [])
        _, s = eng.while_loop(lambda i, s: i < n, lambda i, s: (i + 1, s * w), (0, w * 0 + 1))
        orders: list[Any] = [s]
        for _ in range(3):
            orders += eng.gradients(orders[-1], [w])
        with eng.Session() as session:
            np.testing.assert_allclose(session.run(orders, {w: 2.0, n: 5}), [32, 80, 160, 240])
            np.testing.assert_allclose(session.run(orders[:2], {w: 2.0, n: 3}), [8, 12])
            np.testing.assert_allclose(session.run(orders[:2], {w: 2.0, n: 0}), [1, 0])


@every_way
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(way: Any, reverse: bool) -> None:
    def run(x: Any) -> Any:
        carry, (y, none) = eng.scan(
            lambda c, v: (c * v, (c + v, None)), x[0] * 0 + 2, x, reverse=reverse
        )
        assert none is None
        return [carry, y]

    x = rng.uniform(0.5, 1.5, size=(4, 3))
    c, ys = np.full(3, 2.0), []
    for v in x[::-1] if reverse else x:
        ys.append(c + v)
        c = c * v
    found = way(run, x)
    np.testing.assert_allclose(found[0], c)
    np.testing.assert_allclose(found[1], ys[::-1] if reverse else ys)


@pytest.mark.parametrize("unroll", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_gradients_of_scan_are_those_of_the_written_out_loop(reverse: bool, unroll: bool) -> None:
    x, w = rng.normal(size=(5, 2)), rng.normal(size=(2, 2))

    def slopes(x: Any, w: Any) -> Any:
        def loss() -> Any:
            def step(c: Any, v: Any) -> Any:
                c = eng.lookup("Tanh")(c @ w + v)
                return c, (c * c, v * c)

            c, (a, b) = eng.scan(step, x[0] * 0, x, reverse=reverse, unroll=unroll)
            return reduce_sum(a * b * b) + reduce_sum(c)

        with eng.GradientTape(persistent=True) as outer:
            outer.watch([x, w])
            with eng.GradientTape() as tape:
                tape.watch([x, w])
                y = loss()
            dx, dw = tape.gradient(y, [x, w])
            size = reduce_sum(dx * dx) + reduce_sum(dw * dw)
        return [y, dx, dw, *outer.gradient(size, [x, w])]

    tensors = eng.convert_to_tensor(x), eng.convert_to_tensor(w[None])[0]
    expected = [np.asarray(t) for t in slopes(*tensors)]
    for found, wanted in zip(in_function(slopes, x, w), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-12)


def test_a_tape_outside_of_the_function() -> None:
    @eng.function
    def cube(x: Any) -> Any:
        _, y = eng.while_loop(lambda i, y: i < 2, lambda i, y: (i + 1, y * x), (0, x))
        return y

    x = eng.constant(2.0, "float64")
    with eng.GradientTape() as outer:
        outer.watch(x)
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = cube(x)
        dx = tape.gradient(y, x)
    assert float(y) == 8.0
    assert float(dx) == 12.0
    assert float(outer.gradient(dx, x)) == 12.0


def test_unknown_lengths_and_batches() -> None:
    spec = TensorSpec([None, None, 3], "float32")

    @eng.function(input_signature=[spec])
    def sums(x: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            c, ys = eng.scan(lambda c, v: (c + v, c), reduce_sum(x, axis=0) * 0, x)
            loss = reduce_sum(c * c)
        return c, ys, tape.gradient(loss, x)

    for shape in [(4, 2, 3), (1, 5, 3), (0, 2, 3)]:
        x = rng.normal(size=shape).astype("float32")
        c, ys, dx = sums(x)
        np.testing.assert_allclose(c, x.sum(0), rtol=1e-5)
        assert ys.shape == shape
        np.testing.assert_allclose(dx, np.broadcast_to(2 * x.sum(0), shape), rtol=1e-5)
    assert sums.trace_count == 1


@every_way
def test_fori_loop_with_bounds_that_are_computed(way: Any) -> None:
    def factorial(n: Any) -> Any:
        return [eng.fori_loop(1, n + 1, lambda i, v: v * eng.convert_to_tensor(i, "int32"), 1)]

    assert way(factorial, 5) == [120]
    assert way(factorial, 0) == [1]


@every_way
def test_map_of_structures(way: Any) -> None:
    def run(x: Any) -> Any:
        found = eng.map_slices(
            lambda v: {"s": reduce_sum(v["a"]), "d": v["b"] * 2}, {"a": x, "b": x}
        )
        return [found["s"], found["d"]]

    x = rng.normal(size=(3, 2))
    found = way(run, x)
    np.testing.assert_allclose(found[0], x.sum(1))
    np.testing.assert_allclose(found[1], 2 * x)


@every_way
def test_loops_in_loops_with_conditions(way: Any) -> None:
    def run(x: Any, n: Any) -> Any:
        def outer(i: Any, s: Any) -> Any:
            _, t = eng.while_loop(
                lambda j, t: j < i,
                lambda j, t: (j + 1, eng.cond(t > 2, lambda: t * x, lambda: t + x)),
                (0, s),
            )
            return i + 1, t * 0.5 + x

        with eng.GradientTape() as tape:
            tape.watch(x)
            _, y = eng.while_loop(lambda i, s: i < n, outer, (0, x * 2))
        return [y, tape.gradient(y, x)]

    def reference(x: float, n: int) -> float:
        s = 2 * x
        for i in range(n):
            for _ in range(i):
                s = s * x if s > 2 else s + x
            s = s * 0.5 + x
        return s

    x, h = 1.3, 1e-6
    for n in (0, 1, 4):
        slope = (reference(x + h, n) - reference(x - h, n)) / (2 * h)
        np.testing.assert_allclose(way(run, np.float64(x), n), [reference(x, n), slope], rtol=1e-6)


def test_bodies_update_variables_in_the_order_of_the_program() -> None:
    v, w = eng.Variable(1.0), eng.Variable(2.0)

    def run(n: Any) -> Any:
        v.assign(1.0)

        def body(i: Any, s: Any) -> Any:
            v.assign_add(0.5)
            return i + 1, s * v.value * w.value

        with eng.GradientTape() as tape:
            _, s = eng.while_loop(lambda i, s: i < n, body, (0, 1.0))
        return [s, v.value, *tape.gradient(s, [v, w])]

    traced = eng.function(run)
    for n in (1, 3):
        expected = [float(y) for y in run(eng.constant(n))]
        assert [float(y) for y in traced(eng.constant(n))] == pytest.approx(expected)


def test_a_variable_that_is_read_only_is_read_before_the_loop() -> None:
    w = eng.Variable(np.eye(2, dtype="float32"))

    @eng.function
    def run(x: Any) -> Any:
        return eng.scan(lambda c, v: (c @ w.value + v, None), x[0], x)[0]

    run(np.ones((3, 1, 2), "float32"))
    graph = run.concrete(np.ones((3, 1, 2), "float32")).graph
    (loop,) = [op for op in graph.operations if op.type == "Scan"]
    assert [x.dtype for x in loop.inputs if x.dtype == "resource"] == []
    w.assign(2 * np.eye(2, dtype="float32"))
    np.testing.assert_array_equal(run(np.ones((3, 1, 2), "float32")), [[15.0, 15.0]])


def test_random_draws_differ_between_iterations_and_are_those_of_the_python_loop() -> None:
    def draws(n: Any) -> Any:
        return eng.scan(lambda c, _: (c, normal((2,), seed=generator)), (), length=n)[1]

    generator = SeedGenerator(7)
    expected = draws(3).numpy()
    generator = SeedGenerator(7)
    found = eng.function(draws)(eng.constant(3)).numpy()
    np.testing.assert_array_equal(found, expected)
    assert len(np.unique(found)) == 6


def test_variables_that_grow() -> None:
    def grow(x: Any, n: Any) -> Any:
        return eng.while_loop(
            lambda i, s: i < n,
            lambda i, s: (i + 1, concat((s * x, s[:1]), 0)),
            (0, eng.constant([1.0], "float64") * x),
            shape_invariants=((), (None,)),
        )[1]

    def run(x: Any, n: Any) -> Any:
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = grow(x, n)
            loss = reduce_sum(y * y)
        return [y, tape.gradient(loss, x)]

    def plain(x: float, n: int) -> Any:
        s = np.array([x])
        for _ in range(n):
            s = np.concatenate([s * x, s[:1]])
        return s

    found = in_function(run, np.float64(1.3), 4)
    np.testing.assert_allclose(found[0], plain(1.3, 4))
    h = 1e-6
    slope = ((plain(1.3 + h, 4) ** 2).sum() - (plain(1.3 - h, 4) ** 2).sum()) / (2 * h)
    np.testing.assert_allclose(found[1], slope, rtol=1e-6)


def test_unknown_sizes_need_no_declaration() -> None:
    @eng.function(input_signature=[TensorSpec([None], "float32")])
    def run(x: Any) -> Any:
        return eng.while_loop(lambda i, s: i < 2, lambda i, s: (i + 1, x), (0, eng.constant([1.0])))

    np.testing.assert_array_equal(run(np.ones(1, "float32"))[1], [1.0])


def test_outputs_that_nobody_takes_are_not_kept() -> None:
    kept: list[int] = []

    @eng.define("TestKept")
    def keeps(x: Any) -> Any:
        """x; its array tells when it is freed."""
        return x

    class Array(np.ndarray[Any, Any]):
        def __del__(self) -> None:
            kept.append(-1)

    @keeps.reference
    def kernel(xp: Any, x: Any) -> Any:
        kept.append(1)
        return np.array(x).view(Array)

    with eng.Graph().as_default():
        x = eng.placeholder("float32", [3])
        y, ys = eng.scan(lambda c, v: (c + v, keeps(c * v)), x[0], x)
        with eng.Session() as session:
            session.run(y, {x: np.ones(3)})
            assert kept == []
            session.run(ys, {x: np.ones(3)})
            assert kept.count(1) == 3


def test_sums_of_gradients_that_nobody_asked_for_are_not_computed() -> None:
    runs: list[str] = []

    @eng.define("TestProduct")
    def product(a: Any, b: Any) -> Any:
        """a * b; its gradient notes for which factor it is computed."""
        return a

    @eng.define("TestFactor")
    def factor(x: Any, *, label: str) -> Any:
        """x."""
        return x

    @factor.reference
    def note(xp: Any, x: Any, *, label: str) -> Any:
        runs.append(label)
        return x

    product.reference(lambda xp, a, b: a * b)
    product.grad(
        lambda op, dy: (factor(dy * op.inputs[1], label="a"), factor(dy * op.inputs[0], label="b"))
    )
    with eng.Graph().as_default():
        x, w = eng.placeholder("float32", []), eng.placeholder("float32", [])
        y, _ = eng.scan(lambda c, _: (product(c, w), None), x, length=3)
        dx, dw = eng.gradients(y, [x, w])
        with eng.Session() as session:
            assert session.run(dx, {x: 2.0, w: 3.0}) == 27.0
            assert set(runs) == {"a"}
            assert session.run([dx, dw], {x: 2.0, w: 3.0}) == [27.0, 54.0]
            assert runs.count("b") == 3


BAD: list[Any] = [
    pytest.param(
        lambda x: eng.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s["a"]), (0, {"a": x})),
        InvalidArgumentError,
        "what the body returns does not match the loop variables: the structures differ",
        id="structure",
    ),
    pytest.param(
        lambda x: eng.while_loop(
            lambda i, s: i < 3,
            lambda i, s: (i + 1, {"a": eng.convert_to_tensor(s["a"], "int32")}),
            (0, {"a": x}),
        ),
        DTypeError,
        r"the loop variable loop_vars\[1\]\['a'\] is float32\[2\], and the body returns int32\[2\]",
        id="dtype",
    ),
    pytest.param(
        lambda x: eng.while_loop(
            lambda i, s: i < 3, lambda i, s: (i + 1, concat((s, s), 0)), (0, x)
        ),
        ShapeError,
        r"the loop variable loop_vars\[1\] is float32\[2\], and the body returns float32\[4\]",
        id="shape",
    ),
    pytest.param(
        lambda x: eng.while_loop(
            lambda s: True, lambda s: concat((s, s), 0), x, shape_invariants=(3,)
        ),
        ShapeError,
        r"starts as float32\[2\], which the shape invariant \[3\] does not cover",
        id="invariant",
    ),
    pytest.param(
        lambda x: eng.while_loop(lambda s: s > 0, lambda s: s, x),
        InvalidArgumentError,
        r"the condition must be one bool, got bool\[2\]",
        id="condition",
    ),
    pytest.param(
        lambda x: eng.scan(lambda c, v: (c, v), {"c": x}, x[:1], length=3),
        InvalidArgumentError,
        "length is 3, but xs has 1 slices",
        id="length",
    ),
    pytest.param(
        lambda x: eng.scan(lambda c, v: c, x, x), InvalidArgumentError, "a pair", id="no-pair"
    ),
    pytest.param(
        lambda x: eng.scan(lambda c, v: (c, v), x, x[0]), ShapeError, "no first axis", id="scalar"
    ),
    pytest.param(
        lambda x: eng.scan(lambda c, v: (c[None], v), x, x),
        ShapeError,
        r"the loop variable init is float32\[2\], and the body returns float32\[1, 2\]",
        id="carry",
    ),
    pytest.param(
        lambda x: eng.scan(lambda c, v: (c, v), x, length="3"), DTypeError, "an integer", id="text"
    ),
    pytest.param(
        lambda x: eng.while_loop(lambda s: True, lambda s: s, x, maximum_iterations=2.5),
        DTypeError,
        "maximum_iterations must be one integer",
        id="maximum",
    ),
    pytest.param(
        lambda x: eng.while_loop(lambda s: True, lambda s: s, x, shape_invariants=2),
        InvalidArgumentError,
        "a shape invariant is a shape, got 2",
        id="no-shape",
    ),
    pytest.param(
        lambda x: eng.while_loop(lambda a, b: True, lambda a, b: (a, None), (x, x)),
        InvalidArgumentError,
        r"loop_vars\[1\] is None in one of the two",
        id="none",
    ),
    pytest.param(
        lambda x: eng.fori_loop(0, 2, lambda i, v: v[None], x),
        ShapeError,
        r"fori_loop: the loop variable init\[1\]",
        id="fori",
    ),
    pytest.param(
        lambda x: eng.fori_loop(0, x[0], lambda i, v: v, x), DTypeError, "an integer", id="bound"
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), BAD)
def test_what_does_not_fit_names_the_users_line(build: Any, kind: Any, message: str) -> None:
    with pytest.raises(kind, match=message) as caught:
        eng.function(build)(np.ones(2, "float32"))
    assert caught.value.location.filename == __file__


def test_lengths_that_differ_at_run_time() -> None:
    spec = TensorSpec([None], "float32")

    @eng.function(input_signature=[spec, spec])
    def run(x: Any, y: Any) -> Any:
        return eng.scan(lambda c, v: (c + v[0] * v[1], None), eng.constant(0.0), (x, y))[0]

    assert float(run(np.ones(2, "float32"), np.ones(2, "float32"))) == 2.0
    with pytest.raises(ShapeError, match="there are 2 iterations, and 3 slices"):
        run(np.ones(2, "float32"), np.ones(3, "float32"))
    assert float(run(np.ones(2, "float32"), np.ones(2, "float32"))) == 2.0


@pytest.mark.parametrize("jit_compile", [False, True])
def test_what_one_branch_of_an_iteration_keeps_for_a_tape_outside(jit_compile: bool) -> None:
    """It is there in some of the iterations alone, so it has no one shape."""

    def loss(x: Any) -> Any:
        total = ops.sum(x) * 0.0
        numbers: Any = ops.arange(4)
        for i in numbers:
            if i % 2 == 0:
                total = total + ops.sum(ops.tanh(x * ops.cast(i, "float64")) ** 2)
            else:
                total = total + ops.sum(x)
        return total

    x = ops.convert_to_tensor(np.array([0.3, 0.1]))
    slopes = []
    for f in (loss, eng.function(loss, jit_compile=jit_compile)):
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        slopes.append(tape.gradient(y, x).numpy())
    np.testing.assert_allclose(slopes[1], slopes[0], rtol=1e-9)
