"""Concat, split, stack, unstack."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.graph import Graph, Tensor, TensorShape
from laminar.engine.ops.array.join import concat, split, stack, unstack
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import constant, placeholder
from laminar.engine.runtime import Session

from ..harness import check_op

rng = np.random.default_rng(4)

TYPES = ["float16", "bfloat16", "complex64", "int8", "bool"]

JOINS = [
    pytest.param(concat, np.concatenate, [(2, 3), (4, 3)], 0, id="concat"),
    pytest.param(concat, np.concatenate, [(2, 3), (2, 1), (2, 2)], -1, id="concat-last"),
    pytest.param(concat, np.concatenate, [(2, 3), (0, 3)], 0, id="concat-empty"),
    pytest.param(stack, np.stack, [(2, 3), (2, 3)], 0, id="stack"),
    pytest.param(stack, np.stack, [(2, 3), (2, 3), (2, 3)], -1, id="stack-last"),
    pytest.param(stack, np.stack, [(2, 3), (2, 3)], 1, id="stack-inside"),
    pytest.param(stack, np.stack, [(), ()], 0, id="stack-scalars"),
    pytest.param(stack, np.stack, [(0, 2)], -2, id="stack-empty"),
]


@pytest.mark.parametrize(("fn", "reference", "shapes", "axis"), JOINS)
def test_join(
    fn: Callable[..., Tensor],
    reference: Callable[..., Any],
    shapes: list[tuple[int, ...]],
    axis: int,
) -> None:
    check_op(
        lambda *xs: fn(xs, axis),
        lambda *xs: reference(xs, axis),
        [rng.normal(size=s) for s in shapes],
        dtypes=TYPES,
    )


def test_concat_of_one() -> None:
    check_op(lambda x: concat([x * 2.0], 1), lambda x: 2 * x, [rng.normal(size=(2, 3, 2))])


SPLITS = [
    pytest.param((6, 2), 3, 0, id="equal"),
    pytest.param((2, 6), 1, -1, id="one-piece"),
    pytest.param((2, 6), [1, 2, 3], 1, id="sizes"),
    pytest.param((6,), [2, -1], 0, id="the-rest"),
    pytest.param((6,), [0, 6], -1, id="empty-piece"),
    pytest.param((7,), [-1, 1, -1], 0, id="equal-rests"),
    pytest.param((0, 2), 2, 0, id="empty"),
]


@pytest.mark.parametrize(("shape", "sizes", "axis"), SPLITS)
def test_split(shape: tuple[int, ...], sizes: Any, axis: int) -> None:
    def reference(x: Any) -> Any:
        if isinstance(sizes, int):
            return np.split(x, sizes, axis)
        known = sum(n for n in sizes if n > 0)
        share = (x.shape[axis] - known) // max(sizes.count(-1), 1)
        full = [share if n == -1 else n for n in sizes]
        return np.split(x, np.cumsum(full)[:-1], axis)

    check_op(lambda x: split(x, sizes, axis), reference, [rng.normal(size=shape)], dtypes=TYPES)


def test_split_by_a_size_known_at_run_time() -> None:
    def fn(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return split(x, [dim_of(y, axis=0), -1], 0)

    check_op(
        fn,
        lambda x, y: np.split(x, [len(y)]),
        [rng.normal(size=(5, 2)), rng.normal(size=(2,))],
    )


UNSTACKS = [
    pytest.param((3, 2), 0, id="first"),
    pytest.param((3, 2), -1, id="last"),
    pytest.param((3,), 0, id="to-scalars"),
    pytest.param((1, 2), 0, id="one"),
    pytest.param((2, 0), 0, id="empty"),
]


@pytest.mark.parametrize(("shape", "axis"), UNSTACKS)
def test_unstack(shape: tuple[int, ...], axis: int) -> None:
    check_op(
        lambda x: unstack(x, shape[axis], axis),
        lambda x: tuple(np.moveaxis(x, axis, 0)),
        [rng.normal(size=shape)],
        dtypes=TYPES,
    )


def test_one_output_of_several_has_a_gradient() -> None:
    check_op(lambda x: split(x, 3)[1], lambda x: x[2:4], [rng.normal(size=(6, 2))])
    check_op(lambda x: unstack(x, 3)[2], lambda x: x[2], [rng.normal(size=(3, 2))])


def test_static_shapes() -> None:
    with Graph().as_default():
        x = placeholder("float32", [None, 4])
        y = placeholder("float32", [2, None])
        assert concat([x, y], 0).shape == TensorShape([None, 4])
        assert concat([x, y], 1).shape == TensorShape([2, None])
        assert concat([x, placeholder("float32", None)], 1).shape == TensorShape([None, None])
        assert stack([x, y]).shape == TensorShape([2, 2, 4])
        assert [p.shape for p in split(x, 2, 1)] == [TensorShape([None, 2])] * 2
        assert [p.shape for p in split(x, [3, -1])] == [
            TensorShape([3, 4]),
            TensorShape([None, 4]),
        ]
        assert len(unstack(x, axis=1)) == 4
        with pytest.raises(ShapeError, match="size of axis 0 .* is unknown"):
            unstack(x)


ERRORS = [
    pytest.param(lambda x: concat([]), InvalidArgumentError, "at least one", id="concat-none"),
    pytest.param(
        lambda x: concat([x, x], 2), ShapeError, "Concat: axis 2 does not exist", id="concat-axis"
    ),
    pytest.param(
        lambda x: concat([x, constant(np.zeros((2, 4)))]),
        ShapeError,
        r"Concat: the shapes \[2, 3\], \[2, 4\] differ in more than axis 0",
        id="concat-shape",
    ),
    pytest.param(
        lambda x: concat([x, constant(np.zeros(2))]), ShapeError, "Concat: the shapes", id="rank"
    ),
    pytest.param(
        lambda x: concat([x, constant(np.zeros((2, 3), np.int32))]),
        DTypeError,
        "one dtype",
        id="concat-dtype",
    ),
    pytest.param(
        lambda x: stack([x, constant(np.zeros((2, 4)))]),
        ShapeError,
        r"Stack: the shapes differ: \[2, 3\], \[2, 4\]",
        id="stack-shape",
    ),
    pytest.param(
        lambda x: split(x, 2, 1), ShapeError, "size 3 cannot be cut into 2 equal", id="split"
    ),
    pytest.param(
        lambda x: split(x, [1, 1], 1), ShapeError, r"into the sizes \(1, 1\)", id="split-sizes"
    ),
    pytest.param(
        lambda x: split(x, 0), InvalidArgumentError, "at least one piece, got 0", id="no-pieces"
    ),
    pytest.param(
        lambda x: unstack(x, 3), ShapeError, r"axis 0 .* has size 2, expected 3", id="unstack"
    ),
]


@pytest.mark.parametrize(("call", "error", "message"), ERRORS)
def test_errors(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.zeros((2, 3))))


def test_what_does_not_fit_at_run_time() -> None:
    graph = Graph()
    with graph.as_default():
        x = placeholder("float32", [None])
        halves = split(x, 2)
        three = unstack(x, 3)
    with Session(graph=graph) as session:
        with pytest.raises(ShapeError, match="size 3 cannot be cut into 2 equal pieces"):
            session.run(halves[0], {x: np.zeros(3, np.float32)})
        with pytest.raises(ShapeError, match="axis 0 has size 2, expected 3"):
            session.run(three[0], {x: np.zeros(2, np.float32)})
