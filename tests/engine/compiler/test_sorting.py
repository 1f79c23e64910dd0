"""Order as native code: exactly that of the reference kernels, ties and NaN included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar.engine.gradients import gradients
from laminar.engine.graph import EagerTensor, Graph
from laminar.engine.ops.array.along import put_along_axis, take_along_axis
from laminar.engine.ops.array.scatter import (
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
    scatter_update,
)
from laminar.engine.ops.array.search import find_sorted, searchsorted
from laminar.engine.ops.array.sort import argsort, sort, top_k
from laminar.engine.ops.core.basic import placeholder

from ..ops.native import Array, run_native

rng = np.random.default_rng(3)
DTYPES = ["float32", "float64", "float16", "int8", "uint8", "int32", "uint32", "int64"]


def numbers(shape: tuple[int, ...], dtype: str) -> Array:
    """Few different ones, so that many are equal, and what is special."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        info = np.iinfo(kind)
        few = [info.min, info.max, 0, 1, 2, info.max - 1]
        return rng.choice(np.array(few, kind), shape)
    special = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0, 1e-6, -1e-6]
    mixed = np.where(rng.random(shape) < 0.5, rng.choice(special, shape), rng.normal(size=shape))
    return mixed.astype(kind)


def native(build: Any, *arrays: Array, batch: bool = False) -> list[Array] | None:
    """Results of native code, with the first size unknown while it is made or not."""
    with Graph().as_default():
        shapes: list[Any] = [a.shape for a in arrays]
        if batch:
            shapes[0] = (None, *shapes[0][1:])
        given = [placeholder(a.dtype, s) for a, s in zip(arrays, shapes, strict=True)]
        found = build(*given)
        results = [*found] if isinstance(found, tuple | list) else [found]
        return run_native(results, given, arrays)


def same(build: Any, *arrays: Array, batch: bool = False) -> None:
    found = native(build, *arrays, batch=batch)
    assert found is not None, "there is native code"
    expected = build(*map(EagerTensor, arrays))
    several = [*expected] if isinstance(expected, tuple | list) else [expected]
    for y, e in zip(found, several, strict=True):
        assert y.dtype == e.numpy().dtype
        np.testing.assert_array_equal(y, e.numpy())


@pytest.mark.slow
@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_order(dtype: str, descending: bool) -> None:
    for shape, axis in (((5, 33), -1), ((7, 3), 0), ((2, 17, 3), 1), ((1, 1), 1), ((64,), 0)):
        x = numbers(shape, dtype)
        same(lambda x, a=axis: [sort(x, a, descending), argsort(x, a, descending)], x)
        if axis:
            same(lambda x, a=axis: argsort(x, a, descending), x, batch=True)
    same(lambda x: argsort(x, -1, descending), numbers((2, 256), dtype))


def test_long_lines_are_left_to_the_reference() -> None:
    assert native(sort, numbers((2, 65), "float32")) is None
    assert native(argsort, numbers((2, 257), "float32")) is None
    assert native(lambda x: top_k(x, 257), numbers((2, 301), "float32")) is None
    assert native(lambda x: sort(x, 0), numbers((4, 3), "float32"), batch=True) is None


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest(dtype: str) -> None:
    for size, count in ((1, 1), (2, 1), (5, 5), (40, 3), (301, 17), (1000, 5), (300, 256)):
        for x in (numbers((3, size), dtype), np.sort(numbers((2, size), dtype))):
            same(lambda x, k=count: top_k(x, k), x, batch=True)
    same(lambda x: top_k(x, 2), numbers((9,), dtype))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_greatest_in_the_order_of_their_places(dtype: str) -> None:
    for size, count in ((1, 1), (5, 5), (301, 17)):
        same(lambda x, k=count: top_k(x, k, False), numbers((3, size), dtype), batch=True)
    same(lambda x: top_k(x, 2, False), numbers((9,), dtype))


def test_the_greatest_of_a_rising_line() -> None:
    """Each is greater than all before it."""
    same(lambda x: top_k(x, 7), np.arange(260, dtype=np.float32).reshape(2, 130))


def test_values_put_along_an_axis() -> None:
    x, index = rng.normal(size=(6, 9)), rng.integers(-9, 9, (6, 20))
    values = rng.integers(-3, 4, (6, 20)).astype(float)
    for mode in ("update", "add"):
        for dtype in ("float32", "float64", "int32"):
            given = (x * 8).round().astype(dtype), index, values.astype(dtype)
            same(lambda x, i, v, m=mode: put_along_axis(x, i, v, 1, m), *given, batch=False)
            turned = tuple(np.ascontiguousarray(a.T) for a in given)
            same(lambda x, i, v, m=mode: put_along_axis(x, i, v, 0, m), *turned)
    one = np.float64(2.0)
    same(lambda x, i: put_along_axis(x, i, EagerTensor(one), 1, "add"), x.round(), index[:1])


@pytest.mark.parametrize(
    "scatter", [scatter_update, scatter_add, scatter_mul, scatter_max, scatter_min]
)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "float16"])
def test_a_tensor_written_to(scatter: Any, dtype: str) -> None:
    """Equal indices in their order, rows of any width, NaN where it comes from."""
    for shape, count in (((7,), 1), ((5, 1), 1), ((4, 40), 1), ((3, 4, 5), 2), ((3, 4), 2)):
        index = np.stack([rng.integers(-n, n, (2, 6)) for n in shape[:count]], -1)
        x = rng.integers(-2, 3, shape).astype(dtype)
        updates = rng.integers(-2, 3, (2, 6, *shape[count:])).astype(dtype)
        same(scatter, x, index, updates)
        if dtype != "int32":
            updates.reshape(-1)[0] = np.nan
            same(scatter, x, index, updates)


def test_an_index_out_of_range() -> None:
    x, index, updates = np.zeros((3, 2)), np.array([[5]]), np.ones((1, 2))
    with pytest.raises(Exception, match="index 5"):
        native(scatter_update, x, index, updates)


@pytest.mark.slow
@pytest.mark.parametrize("size", [1, 2, 7, 256, 257, 1000])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
def test_searches(dtype: str, size: int) -> None:
    sequence = np.sort(numbers((size,), dtype))
    values = np.concatenate([sequence, numbers((50,), dtype)])
    for side in ("left", "right"):
        same(lambda s, v, side=side: searchsorted(s, v, side), sequence, values)
    same(find_sorted, sequence, values)


def test_gradients_of_what_several_places_are_read_from() -> None:
    def build(x: Any, i: Any) -> Any:
        return gradients([take_along_axis(x, i, 1)], [x])[0]

    x, index = rng.normal(size=(4, 6)), rng.integers(-6, 6, (4, 9))
    found = native(build, x, index)
    assert found is not None
    expected = np.zeros_like(x)
    for row, places in zip(expected, index, strict=True):
        np.add.at(row, places, 1.0)
    np.testing.assert_array_equal(found[0], expected)
