"""Reshape, Shape, Dim, Rank, Size, BroadcastTo, SumTo."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.broadcast import broadcast_like, broadcast_to, sum_to
from laminar.engine.ops.array.shape import (
    dim_of,
    dims_of,
    rank_of,
    reshape,
    reshape_like,
    shape_of,
    size_of,
)
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(1)

RESHAPES = [
    pytest.param((2, 3), [6], id="flatten"),
    pytest.param((2, 3), [-1], id="minus-one"),
    pytest.param((2, 3, 4), [4, -1], id="minus-one-last"),
    pytest.param((6,), [1, 2, 3, 1], id="more-axes"),
    pytest.param((), [1, 1], id="from-scalar"),
    pytest.param((1,), [], id="to-scalar"),
    pytest.param((0, 3), [3, 0], id="empty"),
    pytest.param((0, 3), [0, 2, 2], id="empty-other-size"),
]


@pytest.mark.parametrize(("shape", "target"), RESHAPES)
def test_reshape(shape: tuple[int, ...], target: list[int]) -> None:
    check_op(
        lambda x: reshape(x, target),
        lambda x: x.reshape(target),
        [rng.normal(size=shape)],
        dtypes=["float16", "bfloat16", "float32", "complex64", "int8", "bool"],
    )


def test_the_same_shape_costs_nothing() -> None:
    x = constant(np.zeros((2, 3)))
    assert reshape(x, [2, 3]) is x
    assert reshape_like(x, x) is x
    assert broadcast_like(x, x) is x
    assert sum_to(x, x) is x


def test_reshape_to_a_shape_known_at_run_time() -> None:
    x = rng.normal(size=(4, 6))

    def fn(x: Tensor) -> Tensor:
        n = dim_of(x, axis=0)
        return reshape(x, [2, n, -1])

    check_op(fn, lambda x: x.reshape(2, 4, 3), [x])


def test_reshape_takes_a_shape_tensor() -> None:
    x = rng.normal(size=(4, 6))
    check_op(
        lambda x, y: reshape(x, shape_of(y)),
        lambda x, y: x.reshape(y.shape),
        [x, rng.normal(size=(3, 8))],
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ([5], r"Reshape: float64\[2, 3\] has 6 elements, which do not fit into \(5,\)"),
        ([4, -1], r"Reshape: float64\[2, 3\] has 6 elements, which do not fit into \(4, -1\)"),
        ([-1, -1], r"Reshape: at most one dimension can be -1, got \(-1, -1\)"),
        ([0, -1], r"has 6 elements"),
        ([-2, -3], r"Reshape: "),
    ],
)
def test_reshape_refuses(target: list[int], message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        reshape(constant(np.zeros((2, 3))), target)


@pytest.mark.parametrize("size", [2.5, "2", np.float32(1.5), constant(0.5)])
def test_a_size_is_never_rounded(size: Any) -> None:
    with pytest.raises(ShapeError, match="a shape consists of whole numbers, got "):
        reshape(constant(np.zeros((2, 3))), [size, 3])


def test_reshape_infers_what_it_can() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 4])
        assert reshape(x, [-1, 2]).shape == TensorShape([None, 2])
        assert reshape(x, [8]).shape == TensorShape([8])
        y = placeholder("float32", None)
        assert reshape(y, [3, -1]).shape == TensorShape([3, None])


def test_reshape_that_does_not_fit_at_run_time_is_an_error() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None])
        y = reshape(x, [2, -1])
    with Session(graph=graph) as session, pytest.raises(InvalidArgumentError, match="Reshape"):
        session.run(y, {x: np.zeros(3, np.float32)})


def test_reshape_like() -> None:
    xs = [rng.normal(size=(2, 6)), rng.normal(size=(3, 4))]
    check_op(reshape_like, lambda x, like: x.reshape(like.shape), xs)


SIZES = [
    pytest.param((), id="scalar"),
    pytest.param((3,), id="vector"),
    pytest.param((2, 0, 4), id="empty"),
]


@pytest.mark.parametrize("shape", SIZES)
def test_shape_rank_size(shape: tuple[int, ...]) -> None:
    x = rng.normal(size=shape)
    check_op(shape_of, lambda x: np.asarray(x.shape, np.int32), [x], grad=False)
    check_op(
        lambda x: shape_of(x, dtype="int64"),
        lambda x: np.asarray(x.shape, np.int64),
        [x],
        grad=False,
    )
    check_op(rank_of, lambda x: np.asarray(x.ndim), [x], grad=False)
    check_op(size_of, lambda x: np.asarray(x.size), [x], grad=False)


@pytest.mark.parametrize("axis", [0, 2, -1, -3])
def test_dim(axis: int) -> None:
    x = rng.normal(size=(2, 3, 4))
    check_op(lambda x: dim_of(x, axis=axis), lambda x: np.asarray(x.shape[axis]), [x], grad=False)


def test_dim_of_an_axis_that_does_not_exist() -> None:
    with pytest.raises(ShapeError, match=r"Dim: float64\[2\] has no axis 1"):
        dim_of(constant(np.zeros(2)), axis=1)


def test_dims_of_an_unknown_rank() -> None:
    with Graph().as_default():
        x = placeholder("float32", None)
        with pytest.raises(ShapeError, match="number of axes"):
            dims_of(x)


BROADCASTS = [
    pytest.param((3,), (2, 3), id="new-axis"),
    pytest.param((2, 1), (2, 3), id="repeat"),
    pytest.param((1, 3, 1), (4, 2, 3, 5), id="both"),
    pytest.param((), (2, 2), id="scalar"),
    pytest.param((1, 3), (0, 3), id="to-empty"),
    pytest.param((2, 0), (3, 2, 0), id="empty"),
]


@pytest.mark.parametrize(("shape", "target"), BROADCASTS)
def test_broadcast_to(shape: tuple[int, ...], target: tuple[int, ...]) -> None:
    check_op(
        lambda x: broadcast_to(x, target),
        lambda x: np.broadcast_to(x, target),
        [rng.normal(size=shape)],
        dtypes=["float16", "float32", "bool", "int32", "complex64"],
    )


@pytest.mark.parametrize(("target", "shape"), BROADCASTS)
def test_sum_to(target: tuple[int, ...], shape: tuple[int, ...]) -> None:
    def reference(x: Any, like: Any) -> Any:
        lead = x.ndim - like.ndim
        x = x.sum(axis=tuple(range(lead)))
        repeated = tuple(i for i, n in enumerate(like.shape) if n == 1)
        return x.sum(axis=repeated, keepdims=True)

    check_op(
        sum_to,
        reference,
        [rng.normal(size=shape), rng.normal(size=target)],
        dtypes=["float16", "bfloat16", "float32"],
    )


def test_sum_to_of_half_precision_rounds_once() -> None:
    x = np.ones((5000, 2), np.float16)
    y = sum_to(convert_to_tensor(x), convert_to_tensor(np.zeros(2, np.float16)))
    np.testing.assert_array_equal(y.numpy(), np.asarray([5000, 5000], np.float16))


def test_broadcast_like() -> None:
    xs = [rng.normal(size=(3, 1)), rng.normal(size=(2, 3, 4))]
    check_op(broadcast_like, lambda x, like: np.broadcast_to(x, like.shape), xs)


@pytest.mark.parametrize("target", [(2, 4), (3,), (1, 3)])
def test_broadcast_to_refuses(target: tuple[int, ...]) -> None:
    with pytest.raises(ShapeError, match=r"BroadcastTo"):
        broadcast_to(constant(np.zeros((2, 3))), target)


def test_broadcast_to_a_shape_known_at_run_time() -> None:
    def fn(x: Tensor, y: Tensor) -> Tensor:
        return broadcast_to(x, (None, 3), [dim_of(y, axis=0)])

    check_op(
        fn,
        lambda x, y: np.broadcast_to(x, (len(y), 3)),
        [rng.normal(size=(1, 3)), rng.normal(size=(5,))],
    )


@pytest.mark.parametrize("fn", [shape_of, size_of, rank_of])
def test_of_an_unknown_rank(fn: Callable[..., Tensor]) -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", None)
        y = fn(x)
    value = np.zeros((2, 3), np.float32)
    expected = {"Shape": [2, 3], "Size": 6, "Rank": 2}
    with Session(graph=graph) as session:
        np.testing.assert_array_equal(session.run(y, {x: value}), expected[y.op.type])  # type: ignore[attr-defined]  # a GraphTensor
