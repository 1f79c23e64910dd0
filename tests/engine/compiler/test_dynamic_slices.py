"""Blocks that begin where data says, read and written, as native code."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.compiler.lower.size_inputs import sizes_among_inputs
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.gradients import gradients
from laminar.engine.graph import Graph
from laminar.engine.ops.array.slicing import slice_at, slice_update
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.passes import StepGraph
from laminar.engine.runtime import Plan, StepContext

from ..ops.native import Array, every_cluster, run_native

rng = np.random.default_rng(5)


def native(build: Any, *arrays: Array, batch: bool = False) -> Array | None:
    """The result of native code, with the first size unknown or not."""
    with Graph().as_default():
        shapes: list[Any] = [a.shape for a in arrays]
        if batch:
            shapes[:-1] = [(None, *s[1:]) for s in shapes[:-1]]
        given = [placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)]
        found = run_native([build(*given)], given, arrays)
    return None if found is None else found[0]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8", "bool"])
def test_a_block_is_read(dtype: str) -> None:
    x = (rng.normal(size=(3, 9, 33)) * 50).astype(dtype)
    for begin in (0, 4, 7):
        at = np.array(begin, np.int32)
        found = native(lambda x, i: slice_at(x, (0, i, 0), (-1, 2, 33)), x, at)
        np.testing.assert_array_equal(found, x[:, begin : begin + 2])
        last = native(lambda x, i: slice_at(x, (1, 0, i), (1, 9, 1)), x, at)
        np.testing.assert_array_equal(last, x[1:2, :, begin : begin + 1])
    found = native(lambda x, i: slice_at(x, (0, i, i), (3, 1, 5)), x, np.array(8))
    np.testing.assert_array_equal(found, x[:, 8:9, 8:13])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int32", "int8", "bool"])
def test_a_block_is_written(dtype: str) -> None:
    x, new = ((rng.normal(size=(3, n, 17)) * 50).astype(dtype) for n in (9, 2))
    for begin in (0, 4, 7):
        expected = x.copy()
        expected[:, begin : begin + 2] = new
        for batch in (False, True):
            found = native(
                lambda x, y, i: slice_update(x, (0, i, 0), y),
                *(x, new, np.array(begin, np.int32)),
                batch=batch,
            )
            np.testing.assert_array_equal(found, expected)


def test_a_block_is_written_along_two_axes() -> None:
    x, new = rng.normal(size=(4, 5)), rng.normal(size=(1, 2))
    found = native(lambda x, y, i: slice_update(x, (i, i), y), x, new, np.array(3))
    x[3:4, 3:5] = new
    np.testing.assert_array_equal(found, x)


@pytest.mark.parametrize("begin", [-1, 8, 2**31 - 1, -(2**31)])
def test_a_block_outside_is_an_error(begin: int) -> None:
    x, new, at = np.zeros((2, 9)), np.zeros((2, 2)), np.array(begin, np.int32)
    with pytest.raises(InvalidArgumentError):
        native(lambda x, i: slice_at(x, (0, i), (2, 2)), x, at)
    with pytest.raises(InvalidArgumentError):
        native(lambda x, y, i: slice_update(x, (0, i), y), x, new, at)


def test_a_place_is_no_size() -> None:
    """All places run the same plan: no other is made for each."""
    x = rng.normal(size=(2, 9)).astype(np.float32)
    with Graph().as_default():
        given = [placeholder("float32", (None, 9)), placeholder("int32", ())]
        y = slice_update(given[0], (0, given[1] + 1), slice_at(given[0], (0, given[1]), (-1, 2)))
        with every_cluster():
            ys: Any = [y]
            plan = Plan(StepGraph(ys, given), compiled=True)
            for begin in range(4):
                (found,) = plan.run([x, np.array(begin, np.int32)], StepContext())
                expected = x.copy()
                expected[:, begin + 1 : begin + 3] = x[:, begin : begin + 2]
                np.testing.assert_array_equal(found, expected)
    (cluster,) = plan.operations
    assert sizes_among_inputs(cluster.attrs["body"]) == []


def test_the_gradient_of_a_block() -> None:
    x, at = rng.normal(size=(2, 7)), np.array(3)

    def build(x: Any, i: Any) -> Any:
        y = slice_at(x, (0, i), (2, 3))
        return gradients([y * y], [x])[0]

    expected = np.zeros_like(x)
    expected[:, 3:6] = 2 * x[:, 3:6]
    np.testing.assert_array_equal(native(build, x, at), expected)
