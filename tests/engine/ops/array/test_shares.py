"""Rows shared out, and put together again."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import laminar
from laminar.engine.errors import InvalidArgumentError, LaminarError, ShapeError
from laminar.engine.graph import TensorShape, TensorSpec
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.array.shares import join_shares, share
from laminar.engine.ops.core.basic import constant

from ..harness import check_op

rng = np.random.default_rng(6)
TYPES = ["float16", "int8", "bool"]


@pytest.mark.parametrize("shape", [(7,), (6, 3), (5, 2, 2), (3, 4)])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_share(shape: tuple[int, ...], count: int) -> None:
    """Numbers that are computed from a share are those of the rows, whatever n is."""
    x = rng.normal(size=shape)
    for index in range(count):
        begin, end = shape[0] * index // count, shape[0] * (index + 1) // count
        check_op(
            lambda x, i=index: share(x, i, count) * 2.0,
            lambda x, b=begin, e=end: 2.0 * x[b:e],
            [x],
            dtypes=TYPES[:1],
        )


@pytest.mark.parametrize("n", [6, 7, 3])
@pytest.mark.parametrize("count", [2, 3])
def test_join(n: int, count: int) -> None:
    whole = rng.normal(size=(n, 3))
    parts = [whole[n * i // count : n * (i + 1) // count] * (i + 1) for i in range(count)]

    def joined(x: Any, *parts: Any) -> Any:
        return join_shares([p * p for p in parts], dim_of(x, axis=0))

    def reference(x: Any, *parts: Any) -> Any:
        return np.concatenate([p * p for p in parts])

    check_op(joined, reference, [whole, *parts], dtypes=TYPES[:1])


def test_what_is_shared_and_joined_is_what_it_was() -> None:
    def around(x: Any) -> Any:
        return join_shares([share(x, i, 3) for i in range(3)], dim_of(x, axis=0))

    for n in (3, 10):
        check_op(around, lambda x: x, [rng.normal(size=(n, 2))], dtypes=TYPES)


def test_shares_may_be_empty() -> None:
    """In compiled code too, of which nothing is made for them."""

    def around(x: Any) -> Any:
        return join_shares([share(x, i, 3) * 2.0 for i in range(3)], dim_of(x, axis=0))

    compiled = laminar.function(around, input_signature=[TensorSpec((None, 2))])
    for n in (1, 2, 4, 0):
        x = rng.normal(size=(n, 2)).astype("float32")
        for found in (around(constant(x)), compiled(constant(x))):
            np.testing.assert_array_equal(found.numpy(), 2 * x)


def test_the_shapes_are_known_as_far_as_the_rows_are() -> None:
    assert [share(constant(np.ones((7, 2))), i, 3).shape[0] for i in range(3)] == [2, 2, 3]
    both = join_shares([constant(np.ones((2, 4))), constant(np.ones((3, 4)))], constant(5))
    assert both.shape == TensorShape((5, 4))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: share(x, 2, 2), InvalidArgumentError, "no share 2 of 2"),
        (lambda x: share(x, -1, 2), InvalidArgumentError, "no share -1 of 2"),
        (lambda x: share(constant(1.0), 0, 2), ShapeError, "has no axis"),
        (lambda x: join_shares([], constant(3)), InvalidArgumentError, "at least one share"),
        (lambda x: join_shares([x, x[:, :1]], constant(4)), ShapeError, "the rows differ"),
        (
            lambda x: join_shares([x, x], constant(5)),
            ShapeError,
            "share 1 of 5 rows in 2 has 3, got 2",
        ),
    ],
)
def test_mistakes(call: Any, error: type[LaminarError], message: str) -> None:
    with pytest.raises(error, match=message):
        call(constant(np.ones((2, 3))))
