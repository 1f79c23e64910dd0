"""Case, While, Scan, and what steers: values, rules and gradients like those of any op."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar.engine.errors import (
    DTypeError,
    FailedPreconditionError,
    InvalidArgumentError,
    ShapeError,
    UnimplementedError,
)
from laminar.engine.graph import building
from laminar.engine.ops.control import dataflow, structured
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.registry import define
from laminar.engine.ops.math.elementary import tanh
from laminar.engine.ops.math.reduce import reduce_sum
from laminar.engine.passes import StepGraph, lower_control_flow

from ..harness import check_op

rng = np.random.default_rng(0)


@define("TestEffect", stateful=True)
def effect(x: Any) -> Any:
    """x, with an effect."""
    return x


effect.reference(lambda xp, x: x)
effect.grad(lambda op, dy: (dy,))

plain_and_stateful = pytest.mark.parametrize("touch", [lambda x: x, effect], ids=["", "stateful"])


@plain_and_stateful
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_case(touch: Any, sign: float) -> None:
    def choose(x: Any, w: Any) -> Any:
        return eng.cond(
            reduce_sum(x) > 0, lambda: (touch(x) * x * w, w * w), lambda: (tanh(x), touch(w) * x[0])
        )

    def reference(x: Any, w: Any) -> Any:
        return (x * x * w, w * w) if x.sum() > 0 else (np.tanh(x), w * x[0])

    check_op(choose, reference, [sign * rng.uniform(0.5, 1, 3), rng.normal(size=3)])


@plain_and_stateful
def test_while(touch: Any) -> None:
    def run(x: Any, w: Any) -> Any:
        return eng.while_loop(
            lambda i, y: i < 3, lambda i, y: (i + 1, touch(tanh(y * w + x))), (0, x)
        )[1]

    def reference(x: Any, w: Any) -> Any:
        y = x
        for _ in range(3):
            y = np.tanh(y * w + x)
        return y

    check_op(run, reference, [rng.normal(size=3), rng.normal(size=3)])


@plain_and_stateful
@pytest.mark.parametrize("reverse", [False, True])
def test_scan(touch: Any, reverse: bool) -> None:
    def step(c: Any, v: Any, w: Any, tanh: Any) -> Any:
        c = tanh(c * w + v)
        return c, c * v

    def run(x: Any, w: Any) -> Any:
        return eng.scan(lambda c, v: step(touch(c), v, w, tanh), w, x, reverse=reverse)

    def reference(x: Any, w: Any) -> Any:
        c, ys = w, []
        for v in x[::-1] if reverse else x:
            c, y = step(c, v, w, np.tanh)
            ys.append(y)
        return c, np.stack(ys[::-1] if reverse else ys)

    check_op(run, reference, [rng.normal(size=(4, 2)), rng.normal(size=2)])


@pytest.mark.parametrize("pred", [True, False])
def test_switch_and_merge(pred: bool) -> None:
    def run(x: Any, p: Any) -> Any:
        if building() is None:
            return tanh(x) if pred else x * x
        f, t = dataflow.switch(x, p)
        return dataflow.merge([f * f, tanh(t)])[0]

    def reference(x: Any, p: Any) -> Any:
        return np.tanh(x) if pred else x * x

    check_op(run, reference, [rng.normal(size=3), np.asarray(pred)])


def test_one_side_of_a_switch_has_a_gradient() -> None:
    with eng.Graph().as_default():
        x, p = eng.placeholder("float64", []), eng.placeholder("bool", [])
        _, t = dataflow.switch(x, p)
        y, which = dataflow.merge([t * t, identity(eng.constant(5.0, "float64"))])
        (dx,) = eng.gradients(y, [x])
        with eng.Session() as session:
            del which
            assert session.run(dx, {x: 3.0, p: False}) == 0.0


def test_loops_of_primitives_are_lowered_after_differentiation() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [])
        y = dataflow.exit_loop(dataflow.next_iteration(dataflow.enter(x, "loop")))
        with pytest.raises(UnimplementedError, match="has no gradient") as caught:
            eng.gradients(y, [x])
        assert "while_loop" in str(caught.value.remedy)


@pytest.mark.parametrize(
    "apply",
    [
        lambda: dataflow.switch(1.0, True),
        lambda: dataflow.merge([1.0]),
        lambda: dataflow.enter(1.0, "f"),
        lambda: dataflow.exit_loop(1.0),
        lambda: dataflow.next_iteration(1.0),
    ],
)
def test_nothing_steers_outside_of_graphs(apply: Any) -> None:
    with pytest.raises(FailedPreconditionError, match="steers the execution of a graph"):
        apply()


def test_a_condition_of_a_loop_is_a_value_like_any_other() -> None:
    assert bool(dataflow.loop_cond(True))


BAD: list[Any] = [
    pytest.param(lambda x: dataflow.merge([]), InvalidArgumentError, "at least one", id="empty"),
    pytest.param(lambda x: dataflow.merge([x, 1]), DTypeError, "must have one dtype", id="dtypes"),
    pytest.param(
        lambda x: dataflow.switch(x, [True]), ShapeError, "must be a scalar", id="condition"
    ),
    pytest.param(
        lambda x: dataflow.enter(x, "f", parallel_iterations=0),
        InvalidArgumentError,
        "at least one iteration",
        id="parallel",
    ),
    pytest.param(
        lambda x: dataflow.close_loop(x, x), InvalidArgumentError, "takes the output of a", id="no"
    ),
    pytest.param(
        lambda x: dataflow.close_loop(
            dataflow.merge([x])[0], dataflow.next_iteration(eng.constant(1))
        ),
        DTypeError,
        "the next iteration gives int32",
        id="back-dtype",
    ),
    pytest.param(
        lambda x: dataflow.close_loop(dataflow.merge([x])[0], dataflow.next_iteration([1.0])),
        ShapeError,
        r"the next iteration gives float32\[1\]",
        id="back-shape",
    ),
]


@pytest.mark.parametrize(("build", "kind", "message"), BAD)
def test_what_is_refused(build: Any, kind: Any, message: str) -> None:
    with eng.Graph().as_default(), pytest.raises(kind, match=message):
        build(eng.placeholder("float32", []))


def test_graphs_take_what_they_were_traced_for() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [2])
        y = eng.while_loop(lambda s: reduce_sum(s) < 9, lambda s: s + 1, x)
        loop = y.op
        with pytest.raises(ShapeError, match=r"While: a graph takes \(float32\[2\]\)"):
            structured.WHILE[0](loop.inputs[0], x[:1], **loop.attrs)


def test_a_loop_written_out_stacks_with_operations() -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [3])
        _, ys = eng.scan(lambda c, v: (c, v * 2), (), x)
    low = lower_control_flow(StepGraph([ys], [x]))
    types = {op.type for op in low.graph.operations}
    assert {"StackNew", "StackPush", "StackValues", "StackItem"} <= types
