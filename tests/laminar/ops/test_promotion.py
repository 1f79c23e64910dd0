"""Which element type a result has: Keras's rules, and float64 where the user brings it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from laminar import config, engine, ops


def test_operands_are_converted_once() -> None:
    """So a variable is read once, and an array copied once."""
    w = engine.Variable(np.eye(3, dtype="float32"))
    for op in (ops.matmul, ops.dot, ops.add, ops.maximum, ops.outer):
        f = engine.function(lambda x, op=op: op(x, w))
        operations = f.concrete(engine.TensorSpec([3, 3], "float32")).graph.operations
        assert [o.type for o in operations].count("ReadVariable") == 1


def of(dtype: str) -> Any:
    return ops.ones((2,), dtype)


@pytest.mark.parametrize(
    ("x1", "x2", "expected"),
    [
        ("bool", "int8", "int8"),
        ("int8", "uint8", "int16"),
        ("uint8", "int32", "int32"),
        ("int64", "float16", "float16"),
        ("int32", "float32", "float32"),
        ("float16", "bfloat16", "float32"),
        ("float32", "float64", "float64"),
        ("uint64", "int8", "float32"),
    ],
)
def test_two_tensors(x1: str, x2: str, expected: str) -> None:
    for op in (ops.add, ops.multiply, ops.maximum):
        assert op(of(x1), of(x2)).dtype == op(of(x2), of(x1)).dtype == expected


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [
        ("float16", 2.5, "float16"),
        ("bfloat16", 2, "bfloat16"),
        ("float64", 2.5, "float64"),
        ("int8", 2, "int8"),
        ("int8", 2.5, "float32"),
        ("int64", 2.5, "float32"),
        ("bool", 2, "int32"),
        ("bool", True, "bool"),
        ("uint8", True, "uint8"),
        ("complex64", 2.5, "complex64"),
    ],
)
def test_python_numbers_are_weak(dtype: str, number: Any, expected: str) -> None:
    assert ops.add(of(dtype), number).dtype == expected
    assert ops.multiply(number, of(dtype)).dtype == expected


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("true_divide", "int32", "float32"),
        ("true_divide", "float16", "float16"),
        ("true_divide", "int64", "float32"),
        ("floor_divide", "bool", "int32"),
        ("mod", "bool", "int32"),
        ("power", "int8", "int8"),
        ("arctan2", "int64", "float32"),
        ("matmul", "int8", "int32"),
        ("dot", "int8", "int8"),
        ("inner", "int8", "int8"),
        ("outer", "int8", "int8"),
        ("equal", "float64", "bool"),
    ],
)
def test_equal_types(name: str, dtype: str, expected: str) -> None:
    assert getattr(ops, name)(of(dtype), of(dtype)).dtype == expected


@pytest.mark.parametrize(
    ("name", "dtype", "expected"),
    [
        ("mean", "int64", "float32"),
        ("mean", "float16", "float16"),
        ("mean", "float64", "float64"),
        ("var", "uint8", "float32"),
        ("sum", "int8", "int32"),
        ("sum", "uint16", "uint32"),
        ("sum", "int64", "int64"),
        ("sum", "bool", "int32"),
        ("prod", "bool", "int32"),
        ("cumsum", "bool", "int32"),
        ("cumsum", "int8", "int8"),
        ("max", "bool", "bool"),
        ("argmax", "int64", "int32"),
        ("sqrt", "int64", "float32"),
        ("exp", "float64", "float64"),
        ("abs", "complex64", "float32"),
        ("abs", "int8", "int8"),
        ("floor", "int32", "float32"),
        ("round", "int32", "int32"),
        ("trunc", "int8", "int8"),
        ("square", "bool", "int32"),
        ("relu", "int8", "int8"),
        ("sigmoid", "int32", "float32"),
        ("softmax", "bfloat16", "bfloat16"),
        ("median", "int32", "float32"),
        ("isnan", "int32", "bool"),
        ("logical_not", "float32", "bool"),
    ],
)
def test_one_tensor(name: str, dtype: str, expected: str) -> None:
    assert getattr(ops, name)(of(dtype)).dtype == expected


def test_numpy_float64_stays() -> None:
    x = np.ones((2, 2))
    for y in (
        ops.add(x, 1.0),
        ops.matmul(x, x),
        ops.mean(x),
        ops.softmax(x),
        ops.linspace(x, 2, 3),
    ):
        assert y.dtype == "float64"


def test_python_lists_are_of_the_default_types() -> None:
    assert ops.array([1.0, 2.0]).dtype == "float32"
    assert ops.array([1, 2]).dtype == "int32"
    assert ops.add(of("float16"), [1.0, 2.0]).dtype == "float32"


@pytest.fixture
def half() -> Iterator[None]:
    config.set_floatx("float16")
    yield
    config.set_floatx("float32")


@pytest.mark.usefixtures("half")
def test_the_default_float_is_what_integers_become() -> None:
    assert ops.zeros((2,)).dtype == "float16"
    assert ops.sqrt(of("int32")).dtype == "float16"
    assert ops.true_divide(3, 2).dtype == "float16"
    assert ops.one_hot([1], 3).dtype == "float16"
    assert ops.convert_to_tensor(1.5).dtype == "float16"
