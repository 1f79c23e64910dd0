"""Random draws and casts as native code: the bits of the reference kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from laminar.engine.graph import Graph, Tensor
from laminar.engine.ops.array.shape import dim_of
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math.cast import cast
from laminar.engine.ops.nn.dropout import dropout
from laminar.engine.ops.random.draws import (
    random_bernoulli,
    random_categorical,
    random_int,
    random_normal,
    random_uniform,
)
from laminar.engine.ops.random.random_state import next_state

from ..ops.native import run_native

Array = np.ndarray[Any, Any]

STATE = np.array([5, 7, 0xFFFF_FFFF, 3], np.uint32)


def both(fn: Callable[..., Tensor], arrays: Sequence[Array]) -> tuple[Array, Array]:
    """What native code and the reference kernels give."""
    with Graph().as_default():
        xs = [placeholder(convert_to_tensor(a).dtype, a.shape) for a in arrays]
        y = fn(*xs)
    found = run_native([y], xs, arrays)
    assert found is not None
    return found[0], fn(*(convert_to_tensor(a) for a in arrays)).numpy()


# Fewer than a vector holds, whole groups of blocks, one more and one less.
@pytest.mark.parametrize("count", [1, 3, 4, 31, 32, 33, 128, 129, 511, 100_003])
def test_words_in_any_number(count: int) -> None:
    found, expected = both(lambda s: random_uniform(s, (count,)), [STATE])
    np.testing.assert_array_equal(found, expected)
    x = np.ones(count, np.float32)
    found, expected = both(lambda s, x: dropout(x, s, 0.3), [STATE, x])
    np.testing.assert_array_equal(found, expected)


DRAWS: list[Any] = [
    pytest.param(lambda s: next_state(s, 3), id="the counter carries"),
    pytest.param(lambda s: random_uniform(s, (5, 7), dtype="float64"), id="float64"),
    pytest.param(lambda s: random_int(s, (51, 7), -5, 17), id="integers"),
    pytest.param(lambda s: random_int(s, (99,), 0, 256, dtype="uint8"), id="bytes"),
    pytest.param(lambda s: random_int(s, (99,), -(2**31), 2**31), id="all integers"),
    pytest.param(lambda s: random_bernoulli(s, (51, 7), 0.3), id="bools"),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_draws(draw: Callable[..., Tensor]) -> None:
    found, expected = both(draw, [STATE])
    np.testing.assert_array_equal(found, expected)


TOLERANCE = {"float16": 1e-3, "bfloat16": 1e-2, "float32": 1e-5, "float64": 1e-13}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("shape", [(50, 8), (1,), (3, 5), (129,), (2, 1001)])
def test_normal_numbers(shape: tuple[int, ...], dtype: str) -> None:
    found, expected = both(lambda s: random_normal(s, shape, dtype=dtype), [STATE])
    assert found.dtype == expected.dtype
    a, b = (x.astype(np.float64) for x in (found, expected))
    np.testing.assert_allclose(a, b, rtol=TOLERANCE[dtype], atol=TOLERANCE[dtype] / 10)


@pytest.mark.parametrize("count", [1, 2, 7, 8, 33])
@pytest.mark.parametrize("width", [3, 4])
def test_normal_numbers_of_a_batch(count: int, width: int) -> None:
    """As many as there are in a batch of unknown size, an odd number too."""

    def noise(state: Tensor, x: Tensor) -> Tensor:
        y: Tensor = random_normal(state, (dim_of(x, axis=0), width)) + x
        return y

    x = np.zeros((count, width), np.float32)
    with Graph().as_default():
        xs = [placeholder("uint32", (4,)), placeholder("float32", (None, width))]
        found = run_native([noise(*xs)], xs, [STATE, x])
    assert found is not None
    expected = noise(convert_to_tensor(STATE), convert_to_tensor(x)).numpy()
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_uniform_numbers_of_few_bits(dtype: str) -> None:
    found, expected = both(lambda s: random_uniform(s, (5, 7), dtype=dtype), [STATE])
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("batch", "classes", "number"), [(1, 1, 1), (5, 3, 40), (2, 1000, 9)])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_classes_by_their_logits(batch: int, classes: int, number: int, dtype: str) -> None:
    logits = np.random.default_rng(1).normal(0, 3, (batch, classes)).astype(dtype)
    if classes > 1:
        logits[:, 1] = -np.inf  # never drawn
    found, expected = both(
        lambda s, x: random_categorical(s, x, number, dtype="int64"), [STATE, logits]
    )
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def test_dropout_of_whole_channels() -> None:
    x = np.ones((3, 5, 4), np.float32)
    found, expected = both(lambda s, x: dropout(x, s, 0.5, (None, 1, 4)), [STATE, x])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32", "int64"])
def test_floats_as_integers(source: str, target: str) -> None:
    values = [0, 1.5, -1.5, 127.9, 128, -129, 255.9, 256, 3e4, 7e4, 2147483520.0]
    x = np.array(values, source)
    with np.errstate(invalid="ignore"):
        found, expected = both(lambda x: cast(x, target), [x])
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e20, -1e20, 2147483648.0])
def test_no_integer_is_the_least_one(value: float) -> None:
    x = np.array([value, 3], np.float32)
    with np.errstate(invalid="ignore"):
        found, _ = both(lambda x: cast(x, "int32"), [x])
    np.testing.assert_array_equal(found, np.array([-(2**31), 3], np.int32))
