"""Gradients of looked-up rows, against the same gradients as whole tensors, for every optimizer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import layers, ops, optimizers
from laminar.engine import Graph, IndexedSlices, Session, SessionConfig, TensorSpec, placeholder
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import Function, function
from laminar.engine.state import Variable, global_variables_initializer

Array = np.ndarray[Any, Any]
ROWS, WIDTH = 11, 3
rng = np.random.default_rng(0)
START = rng.normal(size=(ROWS, WIDTH)).astype("float32")
# Some rows come often, one is named from the end, and most of them in one step only.
STEPS = [
    (np.array([3, 1, 3, -1], "int32"), rng.normal(size=(4, WIDTH)).astype("float32")),
    (np.array([10, 1, 10, 5], "int32"), rng.normal(size=(4, WIDTH)).astype("float32")),
]
BY_ELEMENTS = [
    *("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "Ftrl", "Lion", "Nadam", "RMSprop", "SGD")
]
WHOLE = ["Adafactor", "Lamb"]
OPTIONS: list[dict[str, Any]] = [
    {},
    {"clipnorm": 0.5},
    {"clipvalue": 0.3},
    {"global_clipnorm": 1.0},
    {"weight_decay": 0.1},
    {"use_ema": True},
    {"gradient_accumulation_steps": 2},
    {"loss_scale_factor": 8.0},
]
MORE = [
    ("SGD", {"momentum": 0.9, "nesterov": True}),
    ("Adam", {"amsgrad": True}),
    ("RMSprop", {"momentum": 0.5, "centered": True}),
]


def dense(indices: Array, values: Array) -> Array:
    whole = np.zeros((ROWS, WIDTH), "float32")
    np.add.at(whole, indices, values)
    return whole


def made(kind: str, options: dict[str, Any]) -> tuple[Any, Variable]:
    optimizer = getattr(optimizers, kind)(learning_rate=0.1, **options)
    variable = Variable(START)
    optimizer.build([variable])
    return optimizer, variable


def state(optimizer: Any, variable: Variable) -> list[Array]:
    return [np.array(x) for x in [variable, *optimizer.variables]]


def expected(kind: str, options: dict[str, Any], lazy: bool) -> list[Array]:
    """With whole gradients; if `lazy`, rows without a gradient are put back after each step."""
    optimizer, variable = made(kind, options)
    for indices, values in STEPS:
        before = state(optimizer, variable)
        optimizer.apply([dense(indices, values)], [variable])
        other = np.setdiff1d(np.arange(ROWS), indices % ROWS)
        for x, old in zip([variable, *optimizer.variables], before, strict=True):
            if lazy and old.shape == START.shape:
                new = np.array(x)
                new[other] = old[other]
                x.assign(new)
    return state(optimizer, variable)


def found(kind: str, options: dict[str, Any], run: Callable[[Any], Any]) -> list[Array]:
    optimizer, variable = made(kind, options)

    def step(indices: Any, values: Any) -> None:
        optimizer.apply([IndexedSlices(values, indices, START.shape)], [variable])

    apply = run(step)
    for indices, values in STEPS:
        apply(ops.convert_to_tensor(indices), ops.convert_to_tensor(values))
    return state(optimizer, variable)


def check(kind: str, options: dict[str, Any], lazy: bool, run: Callable[[Any], Any]) -> None:
    moves_all = {"use_ema", "gradient_accumulation_steps"} & options.keys()
    given = {**options, "lazy": True} if lazy else options
    pairs = zip(
        found(kind, given, run), expected(kind, options, lazy and not moves_all), strict=True
    )
    for a, b in pairs:
        np.testing.assert_allclose(a, b, rtol=3e-5, atol=1e-6)


def at_once(step: Any) -> Any:
    return step


def native(step: Any) -> Any:
    return function(jit_compile=True)(step)


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: next(iter(o), "plain"))
@pytest.mark.parametrize("kind", [*BY_ELEMENTS, *WHOLE])
def test_rows_are_the_whole_gradient(kind: str, options: dict[str, Any]) -> None:
    check(kind, options, False, at_once)
    if kind not in WHOLE:
        check(kind, options, True, at_once)


@pytest.mark.parametrize(("kind", "options"), MORE, ids=[kind for kind, _ in MORE])
@pytest.mark.parametrize("lazy", [False, True])
def test_rules_with_more_slots(kind: str, options: dict[str, Any], lazy: bool) -> None:
    check(kind, options, lazy, at_once)


@pytest.mark.slow
@pytest.mark.parametrize("kind", BY_ELEMENTS)
def test_native_code(kind: str) -> None:
    check(kind, {"clipnorm": 0.5}, kind not in ("SGD", "Adagrad"), native)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_other_types_have_the_same_bits_natively(dtype: str) -> None:
    after = []
    for run in (at_once, native):
        variable = Variable(START, dtype=dtype)
        optimizer = optimizers.Adam(0.1, lazy=True)
        optimizer.build([variable])

        def step(indices: Any, values: Any, to: Any = (optimizer, variable)) -> None:
            to[0].apply([IndexedSlices(values, indices, START.shape)], [to[1]])

        indices, values = STEPS[0]
        for _ in range(2):
            run(step)(ops.convert_to_tensor(indices), ops.cast(values, dtype))
        after.append(np.array(variable).astype("float64"))
    np.testing.assert_array_equal(after[0], after[1])


@pytest.mark.parametrize(("kind", "lazy"), [("SGD", False), ("Adam", True)])
def test_in_a_session(kind: str, lazy: bool) -> None:
    """The gradients of what is looked up, in a plain graph."""
    with Graph().as_default():
        table = Variable(START, name="table")
        indices, weights = placeholder("int32", [None]), placeholder("float32", [None, WIDTH])
        loss = ops.sum(ops.take(table, indices, axis=0) * weights)
        options = {"lazy": True} if lazy else {}
        optimizer = getattr(optimizers, kind)(learning_rate=0.1, **options)
        ((gradient, _),) = optimizer.compute_gradients(loss, [table])
        assert isinstance(gradient, IndexedSlices)
        step = optimizer.apply_gradients([(gradient, table)])
        with Session() as session:
            session.run(global_variables_initializer())
            for i, w in STEPS:
                np.testing.assert_allclose(
                    session.run(gradient, {indices: i, weights: w}), dense(i, w), rtol=1e-6
                )
                session.run(step, {indices: i, weights: w})
            after = session.run(table)
    np.testing.assert_allclose(after, expected(kind, {}, lazy)[0], rtol=3e-5, atol=1e-6)


def test_a_session_that_compiles() -> None:
    with Graph().as_default():
        table = Variable(START)
        indices = placeholder("int32", [None])
        loss = ops.sum(ops.square(ops.take(table, indices, axis=0)))
        step = optimizers.SGD(0.1).minimize(loss, [table])
        with Session(config=SessionConfig(jit_compile=True)) as session:
            session.run(global_variables_initializer())
            session.run(step, {indices: [2, 2, -2]})
            after = session.run(table)
    rows = np.array([2, ROWS - 2])
    whole = START.copy()
    whole[rows] -= 0.1 * 2 * START[rows] * [[2.0], [1.0]]
    np.testing.assert_allclose(after, whole, rtol=1e-6)


def test_loss_scaling_skips_rows_too() -> None:
    inner = optimizers.Adam(0.1, lazy=True)
    optimizer, variable = optimizers.LossScaleOptimizer(inner, initial_scale=4.0), Variable(START)
    indices, values = STEPS[0]
    bad = np.array(values)
    bad[1, 1] = np.inf
    optimizer.apply([IndexedSlices(bad, indices, START.shape)], [variable])
    np.testing.assert_array_equal(variable.numpy(), START)
    optimizer.apply([IndexedSlices(values * 2, indices, START.shape)], [variable])
    other = np.setdiff1d(np.arange(ROWS), indices % ROWS)
    np.testing.assert_array_equal(variable.numpy()[other], START[other])
    # Adam's first step is of one size, whatever the gradient's is.
    moved = np.abs(variable.numpy() - START)[indices]
    np.testing.assert_allclose(moved, np.full_like(moved, 0.1), rtol=1e-4)


def test_a_constraint_sees_all_rows() -> None:
    optimizer, variable = made("SGD", {})
    variable.constraint = lambda w: w / ops.sqrt(ops.sum(ops.square(w), axis=0))
    indices, values = STEPS[0]
    optimizer.apply([IndexedSlices(values, indices, START.shape)], [variable])
    np.testing.assert_allclose(np.sum(variable.numpy() ** 2, axis=0), np.ones(WIDTH), rtol=1e-5)


def test_groups_have_rates_of_their_own() -> None:
    optimizer, variable = made("SGD", {})
    optimizer.groups({variable: 0.5})
    indices, values = STEPS[0]
    optimizer.apply([IndexedSlices(values, indices, START.shape)], [variable])
    np.testing.assert_allclose(
        variable.numpy(), START - 0.05 * dense(indices, values), rtol=1e-5, atol=1e-6
    )


def test_what_needs_all_rows_is_not_lazy() -> None:
    with pytest.raises(InvalidArgumentError, match="Lamb: its rule needs all rows"):
        optimizers.Lamb(lazy=True)


def test_lazy_is_kept_in_configs() -> None:
    again = optimizers.get(optimizers.serialize(optimizers.Adam(lazy=True)))
    assert again.lazy
    assert "lazy" not in optimizers.Adam().get_config()


def test_eager_steps_touch_the_rows_alone() -> None:
    """The array stays, unless somebody else has it in hand: what was read never changes."""
    optimizer, variable = made("Adam", {"lazy": True})
    indices, values = STEPS[0]
    given = [IndexedSlices(values, indices, START.shape)]
    optimizer.apply(given, [variable])
    place = np.asarray(variable.store.value).ctypes.data
    optimizer.apply(given, [variable])
    assert np.asarray(variable.store.value).ctypes.data == place
    read = variable.value
    before = np.array(read)
    optimizer.apply(given, [variable])
    np.testing.assert_array_equal(read, before)
    assert np.any(variable.numpy() != before)


def model(rows: int, optimizer: Any) -> Any:
    laminar.set_random_seed(3)
    made = laminar.Sequential(
        [
            layers.Embedding(rows, 24, embeddings_initializer="normal"),
            layers.GlobalAveragePooling1D(),
            layers.Dense(1),
        ]
    )
    made.compile(optimizer, loss="mse")
    return made


IDS = rng.integers(0, 50, (24, 6))
TARGETS = rng.normal(size=(24, 1)).astype("float32")


def trained(rows: int, optimizer: Any, **options: Any) -> Any:
    fitted = model(rows, optimizer)
    fitted.compile(optimizer, loss="mse", **options)
    fitted.fit(IDS, TARGETS, batch_size=8, epochs=2, shuffle=False, verbose=0)
    return fitted


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [lambda: optimizers.SGD(0.5), lambda: optimizers.Adam(0.01, lazy=True)]
)
def test_the_bytes_of_a_step_do_not_grow_with_the_vocabulary(make: Any) -> None:
    small, large = (trained(rows, make()) for rows in (1_000, 100_000))
    few, many = (sum(table.num_bytes for _, table in m.explain()) for m in (small, large))
    assert few == many < 1_000_000


@pytest.mark.slow
def test_fit_native_and_op_by_op_agree_and_threads_change_no_bit() -> None:
    def weights(**options: Any) -> list[Array]:
        fitted = trained(60, optimizers.Adam(0.05, lazy=True), **options)
        return [np.array(w) for w in fitted.weights]

    try:
        laminar.set_threads(1)
        alone = weights()
        laminar.set_threads(2)
        together = weights()
    finally:
        laminar.set_threads(None)
    eager = weights(run_eagerly=True)
    for a, b, c in zip(alone, together, eager, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_allclose(a, c, rtol=1e-4, atol=1e-6)


def test_dense_uses_of_a_table_make_its_gradient_dense() -> None:
    table = Variable(START)
    with laminar.GradientTape() as tape:
        loss = ops.sum(ops.take(table, [1, 1], axis=0)) + ops.sum(ops.square(table))
    gradient = tape.gradient(loss, table)
    assert not isinstance(gradient, IndexedSlices)
    whole = 2 * START
    whole[1] += 2
    np.testing.assert_allclose(gradient, whole, rtol=1e-6)


def test_a_function_takes_rows_of_unknown_number() -> None:
    optimizer, variable = made("Adagrad", {})

    def step(indices: Any) -> None:
        with laminar.GradientTape() as tape:
            loss = ops.sum(ops.square(ops.take(variable, indices, axis=0)))
        gradient = tape.gradient(loss, variable)
        assert isinstance(gradient, IndexedSlices)
        optimizer.apply([gradient], [variable])

    traced = Function(step)
    concrete = traced.concrete(TensorSpec((None, None), "int32"))
    concrete(ops.convert_to_tensor([[1, 2], [-1, 1]], "int32"))
    other, like = made("Adagrad", {})
    other.apply([dense(np.array([1, 2, 10, 1]), 2 * START[[1, 2, 10, 1]])], [like])
    np.testing.assert_allclose(variable.numpy(), like.numpy(), rtol=1e-5)
