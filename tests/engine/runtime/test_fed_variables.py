"""What a step is given for a variable reaches all that is built from it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import engine as eng
from laminar import ops
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.functions import graph_function


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with eng.Graph().as_default():
        yield


def ready(*variables: Any, **options: Any) -> eng.Session:
    session = eng.Session(config=eng.SessionConfig(**options))
    session.run([v.initializer for v in variables])
    return session


@pytest.mark.parametrize("compiled", [False, True])
def test_all_uses_have_it(compiled: bool) -> None:
    w = eng.Variable([1.0, 2.0], name="w")
    y, z, dz = w * 10.0, w.value + 1.0, eng.gradients([ops.square(w)], [w.handle])[0]
    with ready(w, jit_compile=compiled) as session:
        for _ in range(12):
            fed = session.run([w, y, z, dz], {w: [3.0, 5.0]})
            np.testing.assert_array_equal(fed, [[3, 5], [30, 50], [4, 6], [6, 10]])
        np.testing.assert_array_equal(session.run([w, y]), [[1, 2], [10, 20]])


def test_any_of_its_reads_stands_for_it() -> None:
    w = eng.Variable(1.0, name="w")
    value: Any = w.value
    y = w + 1.0
    with ready(w) as session:
        assert session.run([y, w, value], {value: 7.0}) == [8.0, 7.0, 7.0]
        with pytest.raises(InvalidArgumentError, match="'w' is fed twice"):
            session.run(y, {value: 7.0, w: 8.0})


def test_updates_go_on_from_what_is_stored() -> None:
    w = eng.Variable(1.0, name="w")
    step = w.assign_sub(w * 0.5)
    with eng.get_default_graph().control_dependencies([step]):
        after = w.read_value()
    with ready(w) as session:
        assert session.run([step, w], {w: 4.0}) == [-1.0, 4.0]
        assert session.run(w) == -1.0
        assert session.run(after, {w: 4.0}) == 4.0
        assert session.run(w) == -1.0  # nothing that is fetched needs the update


def test_what_is_read_before_a_loop_reaches_it() -> None:
    w = eng.Variable(2.0, name="w")
    value: Any = w.value
    y = ops.while_loop(lambda i, s: i < 3, lambda i, s: (i + 1, s + value), (0, 0.0))[1]
    with ready(w) as session:
        assert session.run(y) == 6.0
        assert session.run(y, {w: 5.0}) == 15.0


def test_a_read_inside_of_a_branch_is_refused() -> None:
    w, p = eng.Variable(2.0, name="w"), eng.placeholder("bool", [])
    y = ops.cond(p, lambda: w * 2.0, lambda: w * 3.0)
    with ready(w) as session:
        assert session.run(y, {p: True}) == 4.0
        with pytest.raises(InvalidArgumentError, match=r"'w' is fed, and .* reads it inside"):
            session.run(y, {p: True, w: 5.0})


def test_partial_runs() -> None:
    w, x = eng.Variable(2.0, name="w"), eng.placeholder("float32", [])
    y = w * 3.0
    z = y + x
    with ready(w) as session:
        step = session.partial_run_setup([y, z], [w, x])
        with pytest.raises(InvalidArgumentError, match="not fed so far"):
            session.partial_run(step, y)
        assert session.partial_run(step, y, {w: 5.0}) == 15.0
        assert session.partial_run(step, z, {x: 1.0}) == 16.0


def test_functions_that_are_carved_out() -> None:
    w = eng.Variable(2.0, name="w")
    f = graph_function(eng.get_default_graph(), [w], w * 3.0 + w)
    with eng.Graph().as_default():
        y = f(5.0)
        with eng.Session() as session:
            assert session.run(y) == 20.0


def test_over_several_devices() -> None:
    devices = eng.SessionConfig(device_count={"CPU": 2})
    with eng.device("/cpu:1"):
        w = eng.Variable(2.0, name="w")
    with eng.device("/cpu:0"):
        y = w * 3.0
    with eng.Session(config=devices) as session:
        session.run(w.initializer)
        assert session.run(y, {w: 5.0}) == 15.0


# Constants that were taken for numbers


@pytest.mark.parametrize(
    "build",
    [
        lambda x, shape: ops.reshape(x, shape),
        lambda x, shape: ops.reshape(x, ops.concatenate([shape[:1], [-1]])),
        lambda x, shape: ops.sum(ops.reshape(x, (2, 2)), axis=shape[0] - 1),
        lambda x, shape: ops.cond(x[0] > 0, lambda: ops.reshape(x, shape), lambda: shape * 1.0),
    ],
    ids=["a shape", "part of one", "an axis", "in a branch"],
)
def test_a_number_that_the_graph_was_built_with_cannot_be_another(build: Any) -> None:
    with eng.Graph().as_default():
        x = eng.placeholder("float32", [4])
        shape = eng.constant([2, 2], name="shape")
        y, twice = build(x, shape), shape * 2
        with eng.Session() as session:
            expected = session.run(y, {x: [1, 2, 3, 4]})
            found = session.run(y, {x: [1, 2, 3, 4], shape: [2, 2]})
            np.testing.assert_array_equal(found, expected)
            with pytest.raises(
                InvalidArgumentError, match=r"shape:0 was known to be \[2, 2\] when"
            ):
                session.run(y, {x: [1, 2, 3, 4], shape: [4, 1]})
            with pytest.raises(InvalidArgumentError, match="shape:0 was known to be"):
                session.make_callable(twice, [shape])([3, 7])


def test_other_constants_can_be_fed() -> None:
    with eng.Graph().as_default():
        a = eng.constant([2, 2])
        y = a * 3
        with eng.Session() as session:
            np.testing.assert_array_equal(session.run(y, {a: [5, 7]}), [15, 21])
