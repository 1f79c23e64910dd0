"""`remat`: the values and gradients of the function, of which only the inputs are kept."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar.engine as eng
from laminar import ops, random
from laminar.engine.functions import remat
from laminar.engine.graph import EagerTensor
from laminar.engine.passes import register_pass, unregister_pass

rng = np.random.default_rng(7)
WEIGHTS = rng.normal(size=(3, 4, 4)) / 2


def tensor(*shape: int) -> Any:
    return eng.constant(rng.normal(size=shape))


def variables() -> list[Any]:
    return [eng.Variable(w) for w in WEIGHTS]


def chain(weights: list[Any]) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for w in weights:
            x = ops.tanh(ops.matmul(x, w))
        return x

    return f


def reference(x: np.ndarray, segments: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """The chain `segments` times, and the gradients of the sum of squares for x and the weights."""
    values = [x]
    for w in [*WEIGHTS] * segments:
        values.append(np.tanh(values[-1] @ w))
    dy = 2 * values[-1]
    dws = [np.zeros((4, 4)) for _ in WEIGHTS]
    for i in reversed(range(len(WEIGHTS) * segments)):
        dz = dy * (1 - values[i + 1] ** 2)
        dws[i % len(WEIGHTS)] += values[i].T @ dz
        dy = dz @ WEIGHTS[i % len(WEIGHTS)].T
    return values[-1], [dy, *dws]


def value_and_gradients(f: Callable[[Any], Any], x: Any, sources: list[Any]) -> list[Any]:
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
        loss = ops.sum(y * y)
    return [y, *tape.gradient(loss, [x, *sources])]


@pytest.mark.parametrize("form", ["eager", "function", "compiled"])
@pytest.mark.parametrize("nested", [False, True])
def test_gradients(form: str, nested: bool) -> None:
    weights = variables()
    inner = remat(chain(weights))
    f = remat(lambda x: inner(inner(x))) if nested else lambda x: inner(inner(x))
    x = tensor(5, 4)

    def run(x: Any) -> Any:
        return value_and_gradients(f, x, weights)

    if form != "eager":
        run = eng.function(run, jit_compile=form == "compiled")
    y, dxs = reference(x.numpy(), 2)
    for found, expected in zip(run(x), [y, *dxs], strict=True):
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@pytest.mark.parametrize("in_function", [False, True])
def test_gradient_of_a_gradient(in_function: bool) -> None:
    def second(x: Any) -> Any:
        f = remat(lambda x: ops.exp(ops.sin(x)))
        with eng.GradientTape() as outer:
            outer.watch(x)
            with eng.GradientTape() as inner:
                inner.watch(x)
                y = ops.sum(f(x))
            dx = inner.gradient(y, x)
        return outer.gradient(dx, x)

    x = tensor(6)
    v = x.numpy()
    found = eng.function(second)(x) if in_function else second(x)
    np.testing.assert_allclose(found.numpy(), np.exp(np.sin(v)) * (np.cos(v) ** 2 - np.sin(v)))


def test_what_is_between_is_not_kept() -> None:
    held: list[weakref.ref[Any]] = []

    def f(x: Any) -> Any:
        h = ops.exp(x)
        assert isinstance(h, EagerTensor)
        held.append(weakref.ref(h.value))
        return ops.sum(ops.sin(h))

    x = tensor(3)
    for function, is_kept in ((f, True), (remat(f), False)):
        held.clear()
        with eng.GradientTape() as tape:
            tape.watch(x)
            y = function(x)
        gc.collect()
        assert (held[0]() is not None) is is_kept
        dx = tape.gradient(y, x)
        np.testing.assert_allclose(dx.numpy(), np.cos(np.exp(x.numpy())) * np.exp(x.numpy()))
    assert len(held) == 1  # the function itself is not called again


def test_computed_anew_in_a_graph() -> None:
    """No rewrite merges the second computation with the first."""

    @eng.function
    def run(x: Any) -> Any:
        return value_and_gradients(remat(lambda x: ops.sin(ops.exp(x))), x, [])

    concrete = run.concrete(tensor(3))
    kinds = [op.type for op in concrete.operations]
    assert kinds.count("Exp") == 2
    assert kinds.count("Barrier") == 1
    merged: list[Any] = []
    register_pass("look", lambda program: merged.extend(program.operations))
    try:
        graph = eng.Graph()
        with graph.as_default():
            x = eng.placeholder("float64", (3,))
            y = remat(lambda x: ops.sin(ops.exp(x)))(x)
            (dx,) = eng.gradients(y, x)
        with eng.Session(graph=graph, config=eng.SessionConfig(optimize=True)) as session:
            v = rng.normal(size=3)
            found_y, found_dx = session.run([y, dx], {x: v})
    finally:
        unregister_pass("look")
    assert [op.type for op in merged].count("Exp") == 2
    np.testing.assert_allclose(found_y, np.sin(np.exp(v)))
    np.testing.assert_allclose(found_dx, np.cos(np.exp(v)) * np.exp(v))


@pytest.mark.parametrize("in_function", [False, True])
def test_effects_happen_once(in_function: bool) -> None:
    seeds = random.SeedGenerator(5)
    same = random.SeedGenerator(5)
    count = eng.Variable(0.0, trainable=False)

    def f(x: Any, seed: Any) -> Any:
        count.assign_add(1.0)
        return random.dropout(ops.exp(x), 0.5, seed=seed)

    def run(x: Any) -> Any:
        return value_and_gradients(remat(lambda x: f(x, seeds)), x, [])

    x = eng.constant(rng.normal(size=50).astype(np.float32))
    y, dx = (eng.function(run) if in_function else run)(x)
    assert float(count.numpy()) == 1.0
    kept = y.numpy() != 0
    assert 10 < kept.sum() < 40
    np.testing.assert_allclose(dx.numpy(), 2 * y.numpy() ** 2, rtol=1e-5)
    expected = f(x, same)
    # The seed was drawn once.
    np.testing.assert_allclose(y.numpy(), expected.numpy(), rtol=1e-6)
    np.testing.assert_array_equal(seeds.state.numpy(), same.state.numpy())


def test_a_variable_is_taken_as_it_was() -> None:
    w = eng.Variable(2.0)
    x = eng.constant(3.0)
    with eng.GradientTape() as tape:
        y = remat(lambda x: ops.square(ops.multiply(w, x)))(x)
    w.assign(100.0)
    assert float(tape.gradient(y, w).numpy()) == 2 * (2.0 * 3.0) * 3.0


def test_with_a_function_that_reads_variables() -> None:
    """A compiled function counts as an effect: it is not called again, its gradient is right."""
    w = eng.Variable(2.0)
    inner = eng.function(lambda h: ops.square(w * h))
    x = eng.constant(0.5)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = remat(lambda x: ops.sin(inner(ops.exp(x))))(x)
    dx, dw = tape.gradient(y, [x, w])
    e = np.exp(0.5)
    np.testing.assert_allclose(dx.numpy(), np.cos(4 * e * e) * 8 * e * e, rtol=1e-5)
    np.testing.assert_allclose(dw.numpy(), np.cos(4 * e * e) * 4 * e * e, rtol=1e-5)


@pytest.mark.parametrize("in_function", [False, True])
def test_control_flow(in_function: bool) -> None:
    w = eng.Variable(rng.normal(size=(3, 3)) / 2)

    def f(x: Any) -> Any:
        steps = eng.while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, ops.tanh(h @ w)), (0, x))
        h = steps[1]
        return eng.cond(ops.sum(h) > 100.0, lambda: h, lambda: ops.exp(h))

    def run(f: Any) -> Any:
        return lambda x: value_and_gradients(f, x, [w])

    x = tensor(2, 3)
    plain, again = run(f)(x), run(remat(f))
    for a, b in zip(plain, (eng.function(again) if in_function else again)(x), strict=True):
        np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-12)


def test_results_of_all_kinds() -> None:
    """The input itself, the same tensor twice, whole numbers, and what is no tensor."""
    x = tensor(3)

    def f(x: Any, scale: float) -> Any:
        y = ops.exp(x) * scale
        return {"x": x, "ys": (y, y), "place": ops.argmax(y), "none": None, "scale": scale}

    for run in (remat(f), eng.function(remat(f))):
        with eng.GradientTape() as tape:
            tape.watch(x)
            found = run(x, scale=2.0)
            loss = ops.sum(found["x"]) + ops.sum(found["ys"][0]) + ops.sum(found["ys"][1])
        assert found["none"] is None
        assert found["scale"] == 2.0
        assert int(found["place"].numpy()) == int(np.argmax(x.numpy()))
        dx = tape.gradient(loss, x)
        np.testing.assert_allclose(dx.numpy(), 1 + 4 * np.exp(x.numpy()))


def test_a_call_that_is_not_wanted_is_a_plain_one() -> None:
    x = tensor(3)
    seen: list[Any] = []

    def wanted(result: Any) -> bool:
        seen.append(result.shape)
        return False

    f = remat(lambda x: ops.sin(ops.exp(x)), wanted=wanted)
    with eng.GradientTape() as tape:
        tape.watch(x)
        y = f(x)
    assert [tuple(s) for s in seen] == [(3,)]
    v = x.numpy()
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.cos(np.exp(v)) * np.exp(v))


def test_an_error_inside_leaves_tapes_as_they_are() -> None:
    x = tensor(3)

    def fails(x: Any) -> Any:
        raise RuntimeError("in the middle")

    with eng.GradientTape() as tape:
        tape.watch(x)
        with pytest.raises(RuntimeError, match="in the middle"):
            remat(fails)(x)
        y = ops.exp(x)
    np.testing.assert_allclose(tape.gradient(y, x).numpy(), np.exp(x.numpy()))
