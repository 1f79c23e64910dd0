"""Loops as native code: against NumPy and the reference kernels, for all numbers of threads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import layers, ops
from laminar.engine.compiler.native import threads
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.compiler.target.thread_count import num_threads
from laminar.engine.errors import DeadlineExceededError, InvalidArgumentError
from laminar.engine.graph import TensorSpec

Array = np.ndarray[Any, Any]
Fn = Callable[..., Any]

rng = np.random.default_rng(0)


def normal(*shape: int) -> Array:
    return rng.normal(size=shape).astype(np.float32)


def arrays(found: Any) -> list[Array]:
    return [np.asarray(leaf) for leaf in laminar.tree.flatten(found)]


def natives(f: Any, *args: Any) -> list[NativeCluster]:
    """What has run a function's loops natively, and nothing else has run."""
    found = []
    for body in f.concrete(*args).clusters:
        if any(step.definition.type in ("Scan", "While") for step in body.steps):
            assert isinstance(body.native, NativeCluster)
            assert not body.native._refused
            assert body.native._plans
            found.append(body.native)
    return found


def both(fn: Fn, *inputs: Any, is_native: bool = True) -> list[Array]:
    """The results of native code, which are checked against those of the reference kernels."""
    args = [ops.convert_to_tensor(x) for x in inputs]
    compiled, plain = eng.function(fn), eng.function(fn, jit_compile=False)
    found = arrays(compiled(*args))
    assert bool(natives(compiled, *args)) == is_native
    for a, b in zip(found, arrays(plain(*args)), strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
        assert a.dtype == b.dtype
        assert a.shape == b.shape
    return found


def recurrent(x: Any, h: Any, w: Any, **options: Any) -> Any:
    def step(h: Any, x: Any) -> Any:
        new = ops.tanh(ops.matmul(h, w) + x)
        return new, 2 * new

    return ops.scan(step, h, x, **options)


@pytest.mark.parametrize("reverse", [False, True])
def test_a_recurrence_is_what_numpy_makes_of_it(reverse: bool) -> None:
    x, h, w = normal(5, 3, 4), normal(3, 4), normal(4, 4)
    last, ys = both(lambda *a: recurrent(*a, reverse=reverse), x, h, w)
    expected = np.zeros((5, 3, 4))
    state = h.astype(np.float64)
    for t in reversed(range(5)) if reverse else range(5):
        state = np.tanh(state @ w + x[t])
        expected[t] = 2 * state
    np.testing.assert_allclose(last, state, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(ys, expected, rtol=1e-5, atol=1e-6)


def swapped(x: Any, a: Any, b: Any) -> Any:
    """Carries change places, and one is stacked before it changes."""

    def step(carry: Any, x: Any) -> Any:
        a, b = carry
        return (b, a + x), (a, b)

    return ops.scan(step, (a, b), x)


def kept(x: Any, a: Any) -> Any:
    """What is stacked is the carry before and after, a slice, and what does not change."""

    def step(a: Any, x: Any) -> Any:
        new = a * 2 + x
        return new, (a, new, x, new, ops.ones_like(x) * 3)

    return ops.scan(step, a, x)


def counted(x: Any, a: Any) -> Any:
    """No sequence, and a counter."""
    return ops.fori_loop(0, 7, lambda i, v: v * 0.5 + ops.cast(i, "float32") + x[0], a)


def turned(x: Any, a: Any) -> Any:
    """Slices are of a view: every other column, from the end."""
    return ops.scan(lambda c, s: (c + s, c * s), a[::-1], ops.transpose(x, (1, 0))[::-1])


def summed(x: Any, a: Any) -> Any:
    """Rows are normalised, so that there are reductions inside."""

    def step(c: Any, s: Any) -> Any:
        c = ops.softmax(c + s)
        return c, ops.max(c)

    return ops.scan(step, a, x)


CASES = [
    pytest.param(swapped, [(6, 4), (4,), (4,)], id="swap"),
    pytest.param(kept, [(6, 4), (4,)], id="kept"),
    pytest.param(counted, [(6, 4), (4,)], id="counted"),
    pytest.param(turned, [(4, 6), (4,)], id="views"),
    pytest.param(summed, [(6, 4), (4,)], id="reductions"),
    pytest.param(recurrent, [(5, 3, 4), (3, 4), (4, 4)], id="recurrent"),
    pytest.param(recurrent, [(1, 3, 4), (3, 4), (4, 4)], id="one-step"),
]


@pytest.mark.parametrize(("fn", "shapes"), CASES)
def test_loops_give_what_the_reference_gives(fn: Fn, shapes: Sequence[tuple[int, ...]]) -> None:
    both(fn, *(normal(*shape) for shape in shapes))


def gradients(fn: Fn) -> Fn:
    """The gradients of a sum of squares of all results, for all arguments."""

    def found(*args: Any) -> Any:
        with laminar.GradientTape() as tape:
            for x in args:
                tape.watch(x)
            total = 0.0
            for y in laminar.tree.flatten(fn(*args)):
                total = total + ops.sum(y * y)
        return tape.gradient(total, list(args))

    return found


@pytest.mark.parametrize(("fn", "shapes"), CASES)
def test_gradients_are_native_too(fn: Fn, shapes: Sequence[tuple[int, ...]]) -> None:
    both(gradients(fn), *(normal(*shape) for shape in shapes))


def test_second_order_gradients() -> None:
    def fn(x: Any, h: Any, w: Any) -> Any:
        return gradients(recurrent)(x, h, w)

    both(gradients(fn), normal(4, 2, 3) * 0.1, normal(2, 3) * 0.1, normal(3, 3) * 0.1)


def test_weights_gradients_are_one_product() -> None:
    """They are those of the written-out steps, in float64, of rows of all iterations."""
    x, h, w, v = normal(9, 5, 4), normal(5, 4), normal(4, 4), normal(2, 4)

    def with_bias(x: Any, h: Any, w: Any, v: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            return ops.tanh(ops.matmul(h, w) + v[1] + x), None

        return ops.scan(step, h, x)[0]

    def unrolled(x: Any, h: Any, w: Any, v: Any) -> Any:
        for t in range(9):
            h = ops.tanh(ops.matmul(h, w) + v[1] + x[t])
        return h

    found = both(gradients(with_bias), x, h, w, v)
    wide = [ops.convert_to_tensor(a.astype(np.float64)) for a in (x, h, w, v)]
    for a, b in zip(found, arrays(eng.function(gradients(unrolled))(*wide)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_masks_choose_the_state_of_before() -> None:
    x, h, mask = normal(6, 4, 3), normal(4, 3), rng.random((6, 4)) < 0.5

    def fn(x: Any, h: Any, mask: Any) -> Any:
        def step(h: Any, item: Any) -> Any:
            x, on = item
            new = ops.where(ops.expand_dims(on, -1), ops.sin(h + x), h)
            return new, new

        return ops.scan(step, h, (x, mask), reverse=True)

    both(fn, x, h, mask)


def test_other_sizes_run_the_same_loop() -> None:
    specs = [TensorSpec([None, None, 8]), TensorSpec([None, 8]), TensorSpec([8, 8])]
    f = eng.function(lambda x, h, w: recurrent(x, h, w), input_signature=specs)
    w = normal(8, 8)
    for count, (steps, batch) in enumerate([(5, 3), (4, 7), (11, 2), (1, 6)]):
        x, h = normal(steps, batch, 8), normal(batch, 8)
        args = [ops.convert_to_tensor(a) for a in (x, h, w)]
        last, ys = arrays(f(*args))
        state, expected = h, []
        for t in range(steps):
            state = np.tanh(state @ w + x[t])
            expected.append(2 * state)
        np.testing.assert_allclose(last, state, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(ys, np.stack(expected), rtol=1e-4, atol=1e-5)
        (native,) = natives(f, *args)
        assert len(native._specializations) <= 1
        assert len(native._plans) == count + 1
        assert len(native.events) == 1  # nothing else is compiled


def test_no_iterations() -> None:
    specs = [TensorSpec([None, 3, 4]), TensorSpec([3, 4]), TensorSpec([4, 4])]
    f = eng.function(lambda x, h, w: recurrent(x, h, w), input_signature=specs)
    h, w = normal(3, 4), normal(4, 4)
    for steps in (2, 0, 3):
        args = [ops.convert_to_tensor(a) for a in (normal(steps, 3, 4), h, w)]
        last, ys = arrays(f(*args))
        assert ys.shape == (steps, 3, 4)
        if not steps:
            np.testing.assert_array_equal(last, h)
    assert natives(f, *args)


# Loops whose end depends on data


def halved(x: Any, limit: Any) -> Any:
    """How often the largest number has to be halved."""
    return ops.while_loop(lambda x, n: ops.max(x) > limit, lambda x, n: (x / 2, n + 1), (x, 0))


@pytest.mark.parametrize(("largest", "count"), [(100.0, 7), (1.5, 1), (0.5, 0)])
def test_the_condition_ends_a_loop(largest: float, count: int) -> None:
    x = np.array([1.0, largest, 0.25], np.float32)
    found, n = both(halved, x, np.float32(1))
    assert n == count
    np.testing.assert_array_equal(found, x / 2**count)


@pytest.mark.parametrize("most", [0, 3, 20])
def test_there_is_a_largest_number_of_iterations(most: int) -> None:
    def fn(x: Any) -> Any:
        return ops.while_loop(
            lambda x: ops.max(x) > 1, lambda x: (x / 2,), (x,), maximum_iterations=most
        )

    (found,) = both(fn, np.array([100.0, 3.0], np.float32))
    np.testing.assert_array_equal(found, np.array([100, 3], np.float32) / 2 ** min(most, 7))


def test_a_number_of_iterations_from_data() -> None:
    def fn(n: Any, x: Any) -> Any:
        return ops.fori_loop(0, n + 1, lambda i, v: v * 2 + ops.cast(i, "float32"), x)

    f = eng.function(fn)
    for n in (0, 4, 9, -5):
        args = ops.convert_to_tensor(np.int32(n)), ops.convert_to_tensor(np.float32(1))
        expected = 1.0
        for i in range(n + 1):
            expected = expected * 2 + i
        assert float(f(*args)) == expected
        (native,) = natives(f, *args)
    assert len(native._plans) == 1  # the number is data, not a size


def test_a_carry_that_is_not_used_stays() -> None:
    def fn(x: Any, y: Any) -> Any:
        return ops.while_loop(lambda x, y: ops.sum(x) < 50, lambda x, y: (x + 1, y), (x, y))

    both(fn, normal(4), normal(2, 3))


# Loops in loops


def test_loops_in_loops() -> None:
    def fn(x: Any, a: Any) -> Any:
        def outer(a: Any, rows: Any) -> Any:
            a, ys = ops.scan(lambda c, row: (ops.tanh(c * 0.5 + row), c), a, rows)
            return a, ops.sum(ys, axis=0)

        return ops.scan(outer, a, x)

    x, a = normal(3, 4, 5), normal(5)
    both(fn, x, a)
    both(gradients(fn), x, a)


def test_an_inner_loop_fills_its_part_of_a_stack() -> None:
    """What does not change in the inner loop is stacked there: only the gradient reads it."""

    def fn(x: Any) -> Any:
        def outer(h: Any, row: Any) -> Any:
            inner = ops.fori_loop(0, 2, lambda i, c: ops.tanh(c + ops.mean(ops.exp(row))), h)
            h = ops.tanh(0.8 * h + row + 0.1 * ops.mean(inner))
            return h, 2 * h

        return ops.scan(outer, x[0], x)

    both(gradients(fn), normal(4, 3))


def test_a_loop_to_an_end_inside_of_one() -> None:
    def fn(x: Any) -> Any:
        def outer(n: Any, row: Any) -> Any:
            row, more = ops.while_loop(
                lambda r, k: ops.max(r) > 1, lambda r, k: (r / 2, k + 1), (row, 0)
            )
            return n + more, row

        return ops.scan(outer, 0, x)

    x = np.abs(normal(4, 3)) * np.array([[1], [8], [0.01], [100]], np.float32)
    total, rows = both(fn, x)
    counts = np.maximum(np.ceil(np.log2(x.max(1))), 0)
    assert total == counts.sum()
    np.testing.assert_array_equal(rows, (x / 2 ** counts[:, None]).astype(np.float32))


# What ends a run, and what cannot be native


def test_a_failed_check_changes_nothing() -> None:
    state = eng.Variable(np.zeros(3, np.float32))
    table = normal(5, 3)

    def fn(places: Any) -> Any:
        def step(total: Any, place: Any) -> Any:
            total = total + ops.take(ops.convert_to_tensor(table), place, axis=0)
            return total, total

        total, ys = ops.scan(step, ops.zeros((3,)), places)
        state.assign_add(total)
        return ys

    f = eng.function(fn)
    good = ops.convert_to_tensor(np.array([1, 4, 0], np.int32))
    expected = np.cumsum(table[[1, 4, 0]], axis=0)
    np.testing.assert_allclose(np.asarray(f(good)), expected, rtol=1e-6)
    before = np.asarray(state.value).copy()
    np.testing.assert_allclose(before, expected[-1], rtol=1e-6)
    with pytest.raises(InvalidArgumentError):
        f(ops.convert_to_tensor(np.array([1, 7, 0], np.int32)))
    np.testing.assert_array_equal(np.asarray(state.value), before)
    np.testing.assert_allclose(np.asarray(f(good)), expected, rtol=1e-6)


def test_a_body_that_changes_a_variable_is_not_native() -> None:
    count = eng.Variable(np.float32(0))

    def fn(x: Any) -> Any:
        def step(c: Any, s: Any) -> Any:
            count.assign_add(1.0)
            return c + s, None

        return ops.scan(step, ops.zeros((3,)), x)[0]

    both(fn, normal(4, 3), is_native=False)
    assert float(np.asarray(count.value)) == 8  # of two functions


@pytest.mark.parametrize("size", [3, 200_000])
def test_a_loop_without_an_end_can_be_cancelled(size: int) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [size])
        y = eng.while_loop(lambda x: ops.max(x) > -1, lambda x: (x * 0.5,), (x,))[0] + 1.0
        with eng.Session(config=eng.SessionConfig(jit_compile=True)) as session:
            limit = eng.RunOptions(timeout_in_ms=200)
            with pytest.raises(DeadlineExceededError):
                session.run(y, {x: np.ones(size, np.float32)}, options=limit)
            found = session.run(y, {x: np.full(size, -4, np.float32)})
    np.testing.assert_array_equal(found, np.full(size, -3))


# Threads


@pytest.fixture
def several_threads() -> Any:
    before = num_threads()
    yield
    threads.set_threads(before)


def network(cell: type[Any]) -> tuple[Any, Array, Array]:
    laminar.utils.set_random_seed(3)
    model = laminar.Sequential([layers.Input((12, 48)), cell(96), layers.Dense(4)])
    loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss)
    draw = np.random.default_rng(1)
    x = draw.normal(size=(32, 12, 48)).astype(np.float32)
    return model, x, draw.integers(0, 4, 32).astype(np.int32)


@pytest.mark.parametrize("cell", [layers.LSTM, layers.GRU, layers.SimpleRNN])
def test_training_is_native_and_the_same_for_all_numbers_of_threads(
    cell: type[Any], several_threads: None
) -> None:
    found = []
    for count in (1, 2, 3):
        threads.set_threads(count)
        model, x, y = network(cell)
        losses = [float(model.train_on_batch(x, y)) for _ in range(4)]
        assert losses[-1] < losses[0]
        ((_, event),) = model.explain_compiles()
        assert event.reason == "first run"
        found.append([np.array(losses), *model.get_weights()])
    for others in found[1:]:
        for a, b in zip(found[0], others, strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_model_serves_other_batches() -> None:
    model, x, y = network(layers.LSTM)
    model.fit(x, y, batch_size=10, verbose=0)  # the last batch has two rows
    assert len({event.reason for _, event in model.explain_compiles()}) == 1
    whole = model.predict(x, verbose=0)
    np.testing.assert_allclose(model.predict(x[:5], verbose=0), whole[:5], rtol=1e-5, atol=1e-6)


def _made_into(state: Any, x: Any) -> tuple[Any, Any]:
    return ops.slice_update(state * 2, (1, 0), state[:2]), state * x


def _product(state: Any, x: Any) -> tuple[Any, Any]:
    product = ops.matmul(ops.transpose(x), x)
    return product, product + state


def _sums(state: Any, x: Any) -> tuple[Any, Any]:
    sums = ops.sum(x, axis=0)
    return sums, sums + state


@pytest.mark.parametrize(
    ("step", "state"), [(_made_into, normal(4, 4)), (_product, normal(4, 4)), (_sums, normal(4))]
)
def test_a_carried_value_is_read_before_it_is_written_over(step: Fn, state: Array) -> None:
    both(lambda state, xs: ops.scan(step, state, xs), state, normal(6, 4, 4))
