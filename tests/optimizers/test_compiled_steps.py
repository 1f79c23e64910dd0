"""Steps on values: compiled after some of them, with nothing else to be seen of it."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine.errors import ShapeError
from laminar.engine.functions import ConcreteFunction

SHAPE = (130, 130)  # large enough to be compiled soon


def is_compiled(optimizer: Any) -> bool:
    """Whether there is a function for some set of variables."""
    return any(isinstance(f, ConcreteFunction) for f in optimizer._laminar_steps._sets.values())


def gradient(step: int) -> Any:
    return np.random.default_rng(step).normal(size=SHAPE)


def run(optimizer: Any, variable: Any, steps: range) -> None:
    for step in steps:
        optimizer.apply([laminar.ops.convert_to_tensor(gradient(step), "float32")], [variable])


def adam(w: Any, steps: range, rates: Any) -> Any:
    """Kingma and Ba, algorithm 1, in float64, from the start."""
    m = v = np.zeros(SHAPE)
    for step in steps:
        g, t = gradient(step).astype("float32").astype("float64"), step + 1
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        w = w - rates(step) * m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-7)
    return w


def test_adam_by_its_paper_with_a_rate_that_is_set() -> None:
    optimizer = laminar.optimizers.Adam(1e-2)
    w = laminar.Variable(np.ones(SHAPE, "float32"))
    run(optimizer, w, range(6))
    assert is_compiled(optimizer)
    optimizer.learning_rate = 1e-1
    run(optimizer, w, range(6, 9))
    wanted = adam(np.ones(SHAPE), range(9), lambda step: 1e-2 if step < 6 else 1e-1)
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-3)
    assert int(optimizer.iterations) == 9


def test_a_schedule_goes_on() -> None:
    schedule = laminar.optimizers.schedules.ExponentialDecay(1e-2, 1, 0.5)
    optimizer = laminar.optimizers.Adam(schedule)
    w = laminar.Variable(np.ones(SHAPE, "float32"))
    run(optimizer, w, range(6))
    assert is_compiled(optimizer)
    wanted = adam(np.ones(SHAPE), range(6), lambda step: 1e-2 * 0.5**step)
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-3)


def test_attributes_that_are_set_count() -> None:
    optimizer = laminar.optimizers.SGD(1.0)
    w = laminar.Variable(np.zeros(SHAPE, "float32"))
    run(optimizer, w, range(4))
    assert is_compiled(optimizer)
    optimizer.clipvalue = 0.5
    before = w.numpy()
    run(optimizer, w, range(4, 8))
    assert is_compiled(optimizer)
    wanted = before - sum(np.clip(gradient(s), -0.5, 0.5) for s in range(4, 8))
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-4, atol=1e-5)


def test_rates_rules_and_constraints_of_the_user_run_in_each_step() -> None:
    asked: list[int] = []

    def rate() -> float:
        asked.append(1)
        return 1.0 / len(asked)

    class Mine(laminar.optimizers.SGD):
        steps = 0

        def update_step(self, gradient: Any, variable: Any, learning_rate: Any) -> None:
            self.steps += 1
            super().update_step(gradient, variable, learning_rate)

    mine = Mine(1.0)
    w = laminar.Variable(np.zeros(SHAPE, "float32"))
    run(laminar.optimizers.SGD(rate), w, range(5))
    assert len(asked) == 5
    wanted = -sum(gradient(s) / (s + 1) for s in range(5))
    np.testing.assert_allclose(w.numpy(), wanted, rtol=1e-4, atol=1e-5)
    run(mine, w, range(5))
    assert mine.steps == 5
    held = laminar.Variable(np.zeros(SHAPE, "float32"))
    held.constraint = lambda w: w * 0.0
    run(laminar.optimizers.SGD(1.0), held, range(5))
    assert not held.numpy().any()


def test_a_refused_gradient_changes_nothing_and_names_the_line() -> None:
    optimizer = laminar.optimizers.Adam(1e-2)
    w = laminar.Variable(np.ones(SHAPE, "float32"))
    run(optimizer, w, range(4))
    before = w.numpy()
    with pytest.raises(ShapeError, match="# of another shape"):
        optimizer.apply([laminar.ops.ones((3,))], [w])  # of another shape
    np.testing.assert_array_equal(w.numpy(), before)
    assert int(optimizer.iterations) == 4


def test_sets_of_variables_in_turns_and_copies() -> None:
    optimizer = laminar.optimizers.SGD(1.0)
    a, b = (laminar.Variable(np.zeros(SHAPE, "float32")) for _ in range(2))
    optimizer.build([a, b])
    for step in range(5):
        run(optimizer, a, range(step, step + 1))
        run(optimizer, b, range(step + 7, step + 8))
    np.testing.assert_allclose(a.numpy(), -sum(map(gradient, range(5))), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(b.numpy(), -sum(map(gradient, range(7, 12))), rtol=1e-4, atol=1e-5)
    (other, c) = copy.deepcopy((optimizer, a))
    run(other, c, range(3))
    assert int(other.iterations) == 13
    assert int(optimizer.iterations) == 10
    before = a.numpy()
    np.testing.assert_allclose(
        c.numpy(), before - sum(map(gradient, range(3))), rtol=1e-4, atol=1e-5
    )


def test_under_a_tape_and_in_a_stateless_call_it_is_as_before() -> None:
    optimizer = laminar.optimizers.SGD(1.0)
    w = laminar.Variable(np.zeros(SHAPE, "float32"))
    run(optimizer, w, range(4))
    before = w.numpy()
    after, _ = optimizer.stateless_apply(
        optimizer.variables, [laminar.ops.ones(SHAPE)], [np.ones(SHAPE, "float32")]
    )
    np.testing.assert_array_equal(after[0], np.zeros(SHAPE))
    np.testing.assert_array_equal(w.numpy(), before)
    with laminar.GradientTape():
        run(optimizer, w, range(4, 5))
    np.testing.assert_allclose(w.numpy(), before - gradient(4), rtol=1e-4, atol=1e-5)
