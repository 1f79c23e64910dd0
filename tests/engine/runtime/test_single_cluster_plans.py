"""Plans that are one cluster: their runs go straight to the native code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine import function
from laminar.engine.compiler.native.cluster_kernel import NativeCluster
from laminar.engine.errors import LaminarError
from laminar.engine.functions import Function
from laminar.engine.graph import EagerTensor
from laminar.engine.runtime.plan import Plan
from laminar.engine.state import Variable

ROWS = np.arange(4096, dtype=np.float32).reshape(64, 64)


def only_cluster(f: Function) -> Any:
    """What the plan of a function says of its only cluster; None where it has more to run."""
    (concrete,) = f._concrete.values()
    (plan,) = concrete._plans.values()
    assert isinstance(plan, Plan)
    return plan._alone


def tensors(*arrays: np.ndarray[Any, Any]) -> list[EagerTensor]:
    return [EagerTensor(a) for a in arrays]


def test_each_result_is_where_it_belongs() -> None:
    """Whatever the order of the arguments, and whether all are used."""
    state = Variable(np.ones((64, 64), np.float32))

    def subtract(a: Any, unused: Any, b: Any) -> Any:
        state.assign(a)
        return b - a + state * 0

    @function
    def two(a: Any, b: Any) -> Any:
        return a + 2 * b, {"difference": b - a}

    f = Function(subtract)
    for scale in (1, 2, 3):
        a, b = ROWS * scale, ROWS[::-1] + scale
        y = f(*tensors(a, np.zeros(3, np.float32), b))
        np.testing.assert_array_equal(y, b - a)
        np.testing.assert_array_equal(state, a)
        first, second = two(*tensors(a, b))
        np.testing.assert_allclose(first, a + 2 * b, rtol=1e-6)
        np.testing.assert_array_equal(second["difference"], b - a)
    assert only_cluster(f) is not None
    assert only_cluster(two) is not None


def test_a_result_that_is_given_twice() -> None:
    f = Function(lambda a, b: (a, (b * a) + 1, a))
    for scale in (1, 2):
        a, b = ROWS * scale, ROWS + scale
        first, product, last = f(*tensors(a, b))
        np.testing.assert_array_equal(first, a)
        np.testing.assert_array_equal(product, b * a + 1)
        np.testing.assert_array_equal(last, a)
    assert only_cluster(f) is None


def test_without_native_code_nothing_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    """IEEE values are the result of the reference kernels too, from the second run on as well."""
    monkeypatch.setattr(NativeCluster, "_prepare", lambda self, key, place: None)
    f = Function(lambda x: laminar.ops.log(x) / x)
    for _ in range(3):
        assert np.isnan(f(*tensors(np.full((64, 64), -1, np.float32)))).all()
    assert only_cluster(f) is not None


def test_a_later_run_fails_as_the_first() -> None:
    """The error names the operation, though the step went no other way than to native code."""
    f = Function(lambda x, i: laminar.ops.take(x * 2, i, axis=0))
    good, bad = np.array([0, 5]), np.array([0, 64])
    messages = []
    with pytest.raises(LaminarError) as caught:
        f(*tensors(ROWS, bad))
    messages.append(str(caught.value))
    for _ in range(2):
        np.testing.assert_array_equal(f(*tensors(ROWS, good)), ROWS[good] * 2)
        with pytest.raises(LaminarError) as caught:
            f(*tensors(ROWS, bad))
        messages.append(str(caught.value))
    assert only_cluster(f) is not None
    assert len(set(messages)) == 1


def test_results_that_are_one_are_given_twice() -> None:
    f = Function(lambda a, b: {"first": a * b + a, "second": b - a, "third": b * a + a})
    for scale in (1, 2):
        a, b = ROWS * scale, ROWS + scale
        found = f(*tensors(a, b))
        np.testing.assert_array_equal(found["first"], a * b + a)
        np.testing.assert_array_equal(found["second"], b - a)
        np.testing.assert_array_equal(found["third"], a * b + a)
    assert only_cluster(f) is not None


def python_calls(run: Callable[[], object]) -> int:
    """How many Python functions are called."""
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return count


def test_a_metric_takes_no_more_of_a_step() -> None:
    """The results of a step are in another order than they are computed in."""
    x, y = np.ones((64, 8), np.float32), np.ones(64, np.int32)

    def calls(metrics: list[str]) -> float:
        model = laminar.Sequential([laminar.layers.Input((8,)), laminar.layers.Dense(3)])
        loss = laminar.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile(laminar.optimizers.Adam(), loss, metrics=metrics)

        def fit(steps: int) -> int:
            size = 8 * steps
            return python_calls(
                lambda: model.fit(x[:size], y[:size], batch_size=8, shuffle=False, verbose=0)
            )

        fit(8), fit(4)
        return min((fit(8) - fit(4)) / 4 for _ in range(3))

    assert calls(["accuracy"]) == calls([])
