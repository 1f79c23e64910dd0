"""Rows sorted into tensors by a number, and put together again by their places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError, ShapeError

from ..harness import check_op

rng = np.random.default_rng(0)


def sorted_into(data: Any, partitions: Any) -> tuple[Any, ...]:
    found = np.asarray(data), np.asarray(partitions)
    rows = [found[0][i] for i in np.ndindex(found[1].shape)]
    numbers = found[1].ravel()
    row = found[0].shape[found[1].ndim :]
    return tuple(
        np.asarray([r for r, n in zip(rows, numbers, strict=True) if n == k]).reshape((-1, *row))
        for k in range(3)
    )


@pytest.mark.parametrize(
    ("shape", "partitions"),
    [
        ((4, 2), [0, 2, 2, 0]),
        ((2, 3, 2), [[0, 1, 2], [2, 1, 0]]),
        ((5,), [1, 1, 1, 1, 1]),
        ((0, 2), np.zeros(0, "int32")),
    ],
)
def test_partition(shape: tuple[int, ...], partitions: Any) -> None:
    check_op(
        lambda x, p: engine.dynamic_partition(x, p, 3),
        sorted_into,
        [rng.normal(size=shape), np.asarray(partitions, "int32")],
    )


def stitched(*arrays: Any) -> Any:
    indices, data = arrays[: len(arrays) // 2], arrays[len(arrays) // 2 :]
    y = np.zeros((1 + max(i.max() for i in indices), *data[0].shape[indices[0].ndim :]))
    for index, rows in zip(indices, data, strict=True):
        for place in np.ndindex(index.shape):
            y[index[place]] = rows[place]
    return y


@pytest.mark.parametrize(
    ("indices", "row"),
    [([[0, 2], [3, 1]], (2,)), ([[4, 0], [1, 4, 4]], ()), ([[[1, 0], [3, 3]], 2], (3,))],
)
def test_stitch(indices: Any, row: tuple[int, ...]) -> None:
    """Of equal indices the last counts, also for the gradient; what none names is zeros."""
    places = [np.asarray(i) for i in indices]
    data = [rng.normal(size=(*i.shape, *row)) for i in places]
    check_op(
        lambda *xs: engine.dynamic_stitch(xs[: len(places)], xs[len(places) :]),
        stitched,
        [*places, *data],
    )


def test_strings() -> None:
    words = engine.constant(["a", "b", "c"])
    odd, even = engine.dynamic_partition(words, [1, 0, 1], 2)
    assert odd.numpy().tolist() == [b"b"]
    assert even.numpy().tolist() == [b"a", b"c"]
    assert engine.dynamic_stitch([[3], [0, 1]], [odd, even]).numpy().tolist() == [
        b"a",
        b"c",
        b"",
        b"b",
    ]


def test_mistakes() -> None:
    with pytest.raises(InvalidArgumentError, match=r"partitions\[1\] = 2 is not in \[0, 2\)"):
        engine.dynamic_partition([1.0, 2.0], [0, 2], 2)
    with pytest.raises(ShapeError, match="must begin with"):
        engine.dynamic_partition([1.0, 2.0], [0, 1, 1], 2)
    with pytest.raises(InvalidArgumentError, match="-1 is negative"):
        engine.dynamic_stitch([[-1]], [[1.0]])
    with pytest.raises(ShapeError, match="that of a row"):
        engine.dynamic_stitch([[0], [1]], [[1.0], [[1.0, 2.0]]])
    with pytest.raises(InvalidArgumentError, match="as many tensors"):
        engine.dynamic_stitch([[0]], [])
