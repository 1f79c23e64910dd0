from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError, ShapeError
from laminar.engine.gradients import GradientTape
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.math import arithmetic as a

from ..harness import check_op

rng = np.random.default_rng(0)
X = rng.normal(size=(3, 4)) * 3
Y = rng.uniform(0.5, 2, size=(3, 4)) * np.where(rng.uniform(size=(3, 4)) < 0.5, -1, 1)
HALF = ["float32", "float16", "bfloat16"]
INF, NAN = math.inf, math.nan

BINARY = [
    pytest.param(a.add, np.add, id="add"),
    pytest.param(a.subtract, np.subtract, id="subtract"),
    pytest.param(a.multiply, np.multiply, id="multiply"),
    pytest.param(a.divide, np.divide, id="divide"),
    pytest.param(a.floor_divide, np.floor_divide, id="floor-divide"),
    pytest.param(a.mod, np.mod, id="mod"),
    pytest.param(a.fmod, np.fmod, id="fmod"),
    pytest.param(a.maximum, np.maximum, id="maximum"),
    pytest.param(a.minimum, np.minimum, id="minimum"),
]
UNARY = [
    pytest.param(a.negative, np.negative, id="negative"),
    pytest.param(a.absolute, np.abs, id="absolute"),
    pytest.param(a.sign, np.sign, id="sign"),
    pytest.param(a.floor, np.floor, id="floor"),
    pytest.param(a.ceil, np.ceil, id="ceil"),
    pytest.param(a.rint, np.rint, id="rint"),
    pytest.param(a.trunc, np.trunc, id="trunc"),
    pytest.param(a.square, np.square, id="square"),
    pytest.param(a.reciprocal, np.reciprocal, id="reciprocal"),
    pytest.param(a.conj, np.conj, id="conj"),
]
SHAPES = [
    pytest.param(X, Y, id="same"),
    pytest.param(X, Y[1], id="row"),
    pytest.param(X[:, :1], Y[1:2], id="column-and-row"),
    pytest.param(X[0, 0], Y, id="scalar"),
    pytest.param(X[0, 0], Y[0, 0], id="scalars"),
    pytest.param(X[:0], Y[1], id="empty"),
]


@pytest.mark.parametrize(("x", "y"), SHAPES)
@pytest.mark.parametrize(("fn", "reference"), BINARY)
def test_of_two_numbers(fn: Any, reference: Any, x: Any, y: Any) -> None:
    grad = fn is not a.floor_divide
    # where a remainder jumps, half precision may fall on the other side
    dtypes = HALF if fn not in (a.floor_divide, a.mod, a.fmod) else ["float32"]
    check_op(fn, reference, [x, y], dtypes=dtypes, grad=grad)


@pytest.mark.parametrize("x", [Y, Y[0, 0], Y[:0]], ids=["matrix", "scalar", "empty"])
@pytest.mark.parametrize(("fn", "reference"), UNARY)
def test_of_one_number(fn: Any, reference: Any, x: Any) -> None:
    check_op(fn, reference, [x], dtypes=HALF)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_integers(dtype: str) -> None:
    x, y = np.array([7, 100, 3, 0], dtype), np.array([3, 7, 100, 2], dtype)
    binary: list[Any] = [case.values for case in BINARY]
    for fn, reference in binary:
        if fn is not a.divide:
            check_op(fn, reference, [x, y], grad=False)
    unary: list[Any] = [case.values for case in UNARY]
    for fn, reference in unary:
        if fn is not a.reciprocal:
            expected = reference(x).astype(dtype)
            found = fn(convert_to_tensor(x)).numpy()
            assert found.dtype == dtype
            np.testing.assert_array_equal(found, expected)


def test_integers_divided_by_zero() -> None:
    x, zero = convert_to_tensor([5, -5]), convert_to_tensor([0, 0])
    assert a.floor_divide(x, zero).numpy().tolist() == [0, 0]
    assert a.mod(x, zero).numpy().tolist() == [0, 0]


def test_signs_of_remainders() -> None:
    x, y = convert_to_tensor([5.0, -5.0, 5.0, -5.0]), convert_to_tensor([3.0, 3.0, -3.0, -3.0])
    assert a.mod(x, y).numpy().tolist() == [2, 1, -1, -2]
    assert a.fmod(x, y).numpy().tolist() == [2, -2, 2, -2]
    assert a.floor_divide(x, y).numpy().tolist() == [1, -2, -2, 1]


def gradients(fn: Any, *inputs: Any) -> Any:
    tensors = [convert_to_tensor(np.array(x, np.float64)) for x in inputs]
    with GradientTape() as tape:
        tape.watch(tensors)
        y = fn(*tensors)
    return [g.numpy().tolist() for g in tape.gradient(y, tensors)]


def test_gradient_of_equal_extremes_goes_to_the_first() -> None:
    assert gradients(a.maximum, [1.0, 2.0], [1.0, 3.0]) == [[1, 0], [0, 1]]
    assert gradients(a.minimum, [1.0, 2.0], [1.0, 1.0]) == [[1, 0], [0, 1]]
    assert gradients(a.absolute, [0.0]) == [[0]]


def test_nan_spreads() -> None:
    x, y = convert_to_tensor([NAN, 1.0]), convert_to_tensor([1.0, NAN])
    for fn in (a.maximum, a.minimum):
        assert np.isnan(fn(x, y).numpy()).all()


def test_division_is_ieee() -> None:
    x, zero = convert_to_tensor([1.0, -1.0, 0.0]), convert_to_tensor([0.0, 0.0, 0.0])
    np.testing.assert_array_equal(a.divide(x, zero).numpy(), [INF, -INF, NAN])
    np.testing.assert_array_equal(a.reciprocal(zero).numpy(), [INF] * 3)


def test_bools() -> None:
    x, y = convert_to_tensor([True, True, False]), convert_to_tensor([True, False, False])
    assert a.add(x, y).numpy().tolist() == [True, True, False]
    assert a.multiply(x, y).numpy().tolist() == [True, False, False]


@pytest.mark.parametrize(
    ("fn", "slopes"),
    [
        (a.multiply, lambda x, y: (y, x)),
        (a.divide, lambda x, y: (1 / y, -x / y**2)),
        (a.subtract, lambda x, y: (1, -1)),
        (lambda x, y: a.square(x), lambda x, y: (2 * x, None)),
        (lambda x, y: a.reciprocal(x), lambda x, y: (-1 / x**2, None)),
    ],
    ids=["multiply", "divide", "subtract", "square", "reciprocal"],
)
def test_complex_gradients_are_conjugated(fn: Any, slopes: Any) -> None:
    x, y, seed = 0.6 - 0.8j, 1.5 + 0.5j, 0.3 + 2.0j
    tensors = [convert_to_tensor(v, "complex128") for v in (x, y)]
    with GradientTape() as tape:
        tape.watch(tensors)
        z = fn(*tensors)
    found = tape.gradient(z, tensors, convert_to_tensor(seed, "complex128"))
    for dx, slope in zip(found, slopes(x, y), strict=True):
        if slope is not None:
            np.testing.assert_allclose(dx.numpy().item(), seed * np.conj(slope), rtol=1e-14)


def test_errors() -> None:
    with pytest.raises(ShapeError) as shapes:
        a.add(convert_to_tensor([1.0, 2.0]), convert_to_tensor([1.0, 2.0, 3.0]))
    assert shapes.value.message == (
        "Add: the shapes [2] and [3] do not broadcast (axis -1: 2 against 3)"
    )
    with pytest.raises(DTypeError) as dtypes:
        a.add(convert_to_tensor([1.0]), convert_to_tensor([1]))
    assert dtypes.value.message == (
        "Add: the inputs must have one dtype, got float32 (x) and int32 (y)"
    )
    with pytest.raises(InvalidArgumentError) as attributes:
        a.add(convert_to_tensor(1.0), convert_to_tensor(1.0), axis=1)
    assert attributes.value.message.startswith("Add: there is no attribute 'axis'")
