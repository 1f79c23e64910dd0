"""Calls that come again apply what they applied before, and nothing that they must not."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np
import pytest

import laminar
from laminar import engine as eng
from laminar import ops
from laminar.engine import GradientTape
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.core.registry import lookup
from laminar.engine.ops.core.remembered_calls import forget_calls
from laminar.ops.recording import public

OFTEN = 30  # more calls than it takes until one is noted
rng = np.random.default_rng(0)


def tensor(*shape: int) -> Any:
    return ops.convert_to_tensor(rng.uniform(0.1, 1.0, shape).astype("float32"))


x, y, row, square = tensor(4, 6), tensor(4, 6), tensor(6), tensor(3, 3)
places = ops.convert_to_tensor(np.array([2, 0, 1, 1], "int32"))

CALLS: dict[str, Callable[[], Any]] = {
    "one op": lambda: ops.exp(x),
    "an attribute": lambda: ops.sum(x, axis=-1, keepdims=True),
    "a list of tensors": lambda: ops.stack([x, y], axis=1),
    "an operator": lambda: x @ ops.transpose(y),
    "one tensor twice": lambda: ops.multiply(x, x),
    "several ops": lambda: ops.layer_normalization(x, gamma=row, axis=-1),
    "a constant": lambda: ops.power(x, 3.0),
    "several results": lambda: ops.moments(x, axes=[0]),
    "a named tuple": lambda: ops.slogdet(square),
    "a list of results": lambda: ops.split(x, 2),
    "an argument as the result": lambda: ops.cast(x, "float32"),
    "no tensor": lambda: ops.zeros((2, 3)),
    "whole numbers": lambda: ops.take(x, places, axis=0),
}


@pytest.fixture(autouse=True)
def forgotten() -> Iterator[None]:
    forget_calls()
    yield
    forget_calls()


def num_python_calls(fn: Callable[[], Any]) -> int:
    count = 0

    def note(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        fn()
    finally:
        sys.setprofile(None)
    return count


def bits(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return type(result), [bits(item) for item in result]
    return type(result), result.dtype, result.shape, result.numpy().tobytes()


@pytest.mark.parametrize("name", CALLS)
def test_a_remembered_call_gives_the_same_bits_in_fewer_python_calls(name: str) -> None:
    call = CALLS[name]
    first, calls = bits(call()), num_python_calls(call)
    for _ in range(OFTEN):
        assert bits(call()) == first
    assert num_python_calls(call) < calls


def test_results_are_tensors_of_their_own() -> None:
    results = [ops.zeros((2,)) for _ in range(OFTEN)]
    assert len({id(z) for z in results}) == OFTEN
    assert all(type(z) is EagerTensor for z in results)


@pytest.mark.parametrize("name", ["several ops", "one op", "a list of tensors", "one tensor twice"])
def test_gradients_flow_through_remembered_calls(name: str) -> None:
    call = CALLS[name]

    def gradients() -> list[Any]:
        with GradientTape() as tape:
            tape.watch([x, y])
            result = ops.sum(call() ** 3)
        return [None if g is None else bits(g) for g in tape.gradient(result, [x, y])]

    first = gradients()
    for _ in range(OFTEN):
        call()
    assert gradients() == first
    assert first[0] is not None


def test_indexing_under_a_tape_is_recorded() -> None:
    with GradientTape() as tape:
        tape.watch(x)
        part = x[1, None, ..., 1:5:2]
    expected = np.zeros((4, 6))
    expected[1, 1:5:2] = 1.0
    np.testing.assert_array_equal(tape.gradient(part, x), expected)


def test_numbers_that_are_equal_are_other_arguments() -> None:
    zero = ops.convert_to_tensor(np.array([1.0], "float32"))
    for _ in range(OFTEN):
        assert not np.signbit(ops.multiply(zero, 0.0).numpy()).any()
        assert np.signbit(ops.multiply(zero, -0.0).numpy()).all()
    for _ in range(OFTEN):
        assert ops.multiply(places, 1).dtype == "int32"
        assert ops.multiply(places, 1.0).dtype == "float32"


def test_values_that_a_function_reads_are_read_each_time() -> None:
    bins = [ops.convert_to_tensor(np.array(b, "float32")) for b in ([0, 1, 2], [0, 2, 1])]
    for _ in range(OFTEN):
        ops.digitize(x, bins[0])
    with pytest.raises(InvalidArgumentError, match="digitize"):
        ops.digitize(x, bins[1])
    for axis in (0, 1) * OFTEN:
        number: Any = ops.convert_to_tensor(axis)
        np.testing.assert_array_equal(ops.sum(x, axis=number), ops.sum(x, axis=axis))


def test_draws_differ() -> None:
    draws = {laminar.random.normal((2,)).numpy().tobytes() for _ in range(OFTEN)}
    assert len(draws) == OFTEN


def test_state_is_made_where_it_belongs() -> None:
    made: list[laminar.Variable] = []

    def counted(x: Any) -> Any:
        if len(made) < 2 * OFTEN:
            made.append(laminar.Variable(2.0))
        return ops.multiply(x, made[-1])

    call = public(counted)
    for _ in range(OFTEN):
        np.testing.assert_array_equal(call(x), 2.0 * x.numpy())
    assert len(made) == OFTEN
    assert all(v.numpy() == 2.0 for v in made)


def test_a_setting_that_changes_is_seen() -> None:
    whole = ops.convert_to_tensor(np.array([1, 4], "int32"))
    before = laminar.config.floatx()
    for _ in range(OFTEN):
        ops.sqrt(whole)
    try:
        laminar.config.set_floatx("float64")
        assert ops.sqrt(whole).dtype == "float64"
    finally:
        laminar.config.set_floatx(before)


def test_another_kernel_is_seen() -> None:
    op = eng.define("TestRemembered")(lambda x: x)
    op.reference(lambda xp, x: x + 1)
    plus = public(lambda x: op(x))
    for _ in range(OFTEN):
        np.testing.assert_array_equal(plus(places), places.numpy() + 1)
    op.reference(lambda xp, x: x + 2, replace=True)
    np.testing.assert_array_equal(plus(places), places.numpy() + 2)


def test_what_a_kernel_refuses_is_said_as_ever() -> None:
    for _ in range(OFTEN):
        ops.take(x, places, axis=0)
    with pytest.raises(InvalidArgumentError, match=r"index 7 at position \[1\]"):
        ops.take(x, ops.convert_to_tensor(np.array([0, 7, 0, 0], "int32")), axis=0)


def test_in_a_graph_and_under_a_name_nothing_is_remembered() -> None:
    for _ in range(OFTEN):
        ops.exp(x)
    with eng.Graph().as_default() as graph:
        z: Any = ops.exp(x, name="z")
    assert z.op is graph.get_operation_by_name("z")
    assert z.op.definition is lookup("Exp")
    np.testing.assert_array_equal(ops.exp(x, name="z"), np.exp(x.numpy()))
