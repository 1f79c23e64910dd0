"""Variables that each call makes and that go with it, as those of undecorated code do."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import FailedPreconditionError
from laminar.engine.tree import flatten

outside = eng.Variable(0.0)


def plain(x: Any) -> Any:
    v = eng.Variable(1.0)
    v.assign_add(ops.sum(x))
    return v


def with_initial_values(x: Any) -> Any:
    v = eng.Variable(x * 2)
    w = eng.Variable(np.zeros(2), dtype="float32", name="w")
    w.assign(v * 3)
    v.assign(w + 1)
    return {"v": v, "w": [w.value]}


def in_loops_and_branches(x: Any) -> Any:
    total, steps = eng.Variable(0.0), eng.Variable(0)
    rows: Any = x
    for row in rows:
        if row > 0:
            part = eng.Variable(10.0)
            part.assign_sub(row)
            total.assign_add(part)
        else:
            total.assign_add(row)
        steps.assign_add(1)
    return total, steps


def gradient(x: Any) -> Any:
    v = eng.Variable(3.0)
    with eng.GradientTape() as tape:
        y = ops.sum(v * v * x)
    return tape.gradient(y, v)


def with_outside(x: Any) -> Any:
    v = eng.Variable(1.0)
    outside.assign_add(v * x[0])
    return outside + v


def tolist(result: Any) -> Any:
    leaves = [float(v) for y in flatten(result) for v in np.ravel(np.asarray(y))]
    return leaves, float(outside)


@pytest.mark.parametrize(
    "fn", [plain, with_initial_values, in_loops_and_branches, gradient, with_outside]
)
def test_calls_are_those_of_the_undecorated_function(fn: Callable[[Any], Any]) -> None:
    traced = eng.function_with_local_variables(fn)
    arguments = [eng.constant(v) for v in ([2.0, -3.0], [2.0, -3.0], [0.5, 4.0])]
    found = []
    for run in (fn, traced):
        outside.assign(0.0)
        found.append([tolist(run(x)) for x in arguments])
    assert found[0] == found[1]
    assert traced.trace_count == 1


def test_methods_options_and_other_functions() -> None:
    class Owner:
        def __init__(self) -> None:
            self.scale = eng.Variable(2.0)

        @eng.function_with_local_variables(input_signature=[eng.TensorSpec([None], "float32")])
        def total(self, x: Any) -> Any:
            v = eng.Variable(1.0)
            v.assign_add(ops.sum(x) * self.scale)
            return v

    owner = Owner()
    assert [float(owner.total(x)) for x in ([1.0], [1.0, 2.0])] == [3.0, 7.0]
    assert owner.total.trace_count == 1
    assert owner.total.variables == [owner.scale]
    twice = eng.function(lambda x: owner.total(x) + owner.total(2 * x))
    assert [float(twice(eng.constant([1.0]))) for _ in range(2)] == [8.0, 8.0]
    with eng.GradientTape() as tape:
        y = owner.total(eng.constant([3.0]))
    assert float(tape.gradient(y, owner.scale) or 0.0) == 0.0  # updates have no gradient


def test_calls_at_once_have_variables_of_their_own() -> None:
    @eng.function_with_local_variables
    def sum_of(x: Any) -> Any:
        v = eng.Variable(0.0)
        for _ in range(20):
            v.assign_add(x)
        return v

    wrong: list[float] = []

    def work(k: float) -> None:
        wrong.extend(k for _ in range(20) if float(sum_of(eng.constant(k))) != 20 * k)

    threads = [threading.Thread(target=work, args=(float(k),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert wrong == []


def test_a_variable_that_is_kept_has_no_value_after() -> None:
    kept: list[Any] = []

    @eng.function_with_local_variables
    def f(x: Any) -> Any:
        kept.append(eng.Variable(x))
        return kept[-1]

    assert float(f(eng.constant(4.0))) == 4.0
    with pytest.raises(FailedPreconditionError, match="belongs to a function that has been traced"):
        _ = kept[0] + 1
