"""Slice and SliceUpdate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.slicing import slice_at, slice_update
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(10)

CASES = [
    pytest.param((4, 5), [1, 2], [2, 3], id="block"),
    pytest.param((4, 5), [1, 0], [-1, 5], id="to-the-end"),
    pytest.param((4, 5), [4, 0], [0, 2], id="nothing"),
    pytest.param((4,), [0], [4], id="everything"),
    pytest.param((), [], [], id="scalar"),
    pytest.param((0, 3), [0, 1], [-1, 1], id="empty"),
]


def block(begin: list[int], size: list[int], shape: tuple[int, ...]) -> tuple[slice, ...]:
    return tuple(
        slice(b, n if s == -1 else b + s) for b, s, n in zip(begin, size, shape, strict=True)
    )


@pytest.mark.parametrize(("shape", "begin", "size"), CASES)
def test_slice(shape: tuple[int, ...], begin: list[int], size: list[int]) -> None:
    check_op(
        lambda x: slice_at(x, begin, size),
        lambda x: x[block(begin, size, shape)],
        [rng.normal(size=shape)],
        dtypes=["bfloat16", "int8", "bool", "complex64"],
    )


@pytest.mark.parametrize(("shape", "begin", "size"), CASES)
def test_slice_update(shape: tuple[int, ...], begin: list[int], size: list[int]) -> None:
    place = block(begin, size, shape)

    def reference(x: Any, updates: Any) -> Any:
        y = x.copy()
        y[place] = updates
        return y

    updates = rng.normal(size=np.zeros(shape)[place].shape)
    check_op(
        lambda x, u: slice_update(x, begin, u),
        reference,
        [rng.normal(size=shape), updates],
        dtypes=["bfloat16", "float32"],
    )


def test_places_known_at_run_time() -> None:
    def take(x: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return slice_at(x, [b, 1], [2, s])

    def put(x: Tensor, b: Tensor, s: Tensor) -> Tensor:
        return slice_update(x, [0, b], take(x, b, s))

    def reference_put(x: Any, b: Any, s: Any) -> Any:
        y = x.copy()
        y[:2, b : b + s] = x[b : b + 2, 1 : 1 + s]
        return y

    inputs = [rng.normal(size=(4, 5)), np.array(2, np.int32), np.array(3, np.int32)]
    check_op(take, lambda x, b, s: x[b : b + 2, 1 : 1 + s], inputs)
    check_op(put, reference_put, inputs)


def test_strings() -> None:
    x = convert_to_tensor(["a", "b", "c"])
    assert slice_at(x, [1], [2]).numpy().tolist() == [b"b", b"c"]
    assert slice_update(x, [2], convert_to_tensor(["z"])).numpy().tolist() == [b"a", b"b", b"z"]


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 5])
        assert slice_at(x, [0, 1], [2, -1]).shape == TensorShape([2, 4])
        assert slice_at(x, [1, 0], [-1, 5]).shape == TensorShape([None, 5])
        n = placeholder("int32", [])
        assert slice_at(x, [n, n], [3, -1]).shape == TensorShape([3, None])
        assert slice_at(x, [0, 0], [n, 1]).shape == TensorShape([None, 1])
        unknown = placeholder("float32", None)
        assert slice_at(unknown, [0, 0], [2, -1]).shape == TensorShape([2, None])


ERRORS = [
    pytest.param(
        lambda x: slice_at(x, [0, 1], [2, 3]),
        InvalidArgumentError,
        "Slice: 3 elements from 1 do not lie inside axis 1, which has 3",
        id="outside",
    ),
    pytest.param(
        lambda x: slice_at(x, [-1, 0], [1, 1]), InvalidArgumentError, "from -1", id="negative"
    ),
    pytest.param(
        lambda x: slice_at(x, [3, 0], [-1, 1]), InvalidArgumentError, "from 3", id="begin"
    ),
    pytest.param(
        lambda x: slice_at(x, [0], [1]), ShapeError, r"each of the 2 axes .* got \(0,\)", id="axes"
    ),
    pytest.param(
        lambda x: slice_update(x, [1, 1], constant(np.zeros((2, 1)))),
        InvalidArgumentError,
        "SliceUpdate: 2 elements from 1 do not lie inside axis 0, which has 2",
        id="update",
    ),
    pytest.param(
        lambda x: slice_update(x, [1, 1], constant(np.zeros(2))),
        ShapeError,
        "SliceUpdate: expected one number for each of the 2 axes",
        id="update-axes",
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((2, 3))))


def test_a_block_outside_at_run_time() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None])
        b = placeholder("int32", [])
        y = slice_at(x, [b], [2])
    with Session(graph=graph) as session:
        for begin in (2, -1):
            with pytest.raises(InvalidArgumentError, match="do not lie inside axis 0"):
                session.run(y, {x: np.zeros(3, np.float32), b: begin})
