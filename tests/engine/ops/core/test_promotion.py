from __future__ import annotations

import itertools
import operator
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DTypeError, InvalidArgumentError
from laminar.engine.graph import COMPLEX, DENSE, Graph, Tensor
from laminar.engine.ops.core.arrays import Defaults
from laminar.engine.ops.core.basic import placeholder
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.lattice import result_type, to_floating
from laminar.engine.ops.core.promotion import promote

# The lattice of JEP 9407, without the types that only JAX has.
PAIRS = [
    ("bool", "int8", "int8"),
    ("bool", "float16", "float16"),
    ("int8", "int16", "int16"),
    ("int8", "uint8", "int16"),
    ("uint8", "int32", "int32"),
    ("uint16", "int8", "int32"),
    ("uint32", "int8", "int64"),
    ("uint64", "int8", "float32"),
    ("int64", "float16", "float16"),
    ("int64", "bfloat16", "bfloat16"),
    ("uint64", "float32", "float32"),
    ("float16", "bfloat16", "float32"),
    ("float16", "float32", "float32"),
    ("float32", "float64", "float64"),
    ("int32", "complex64", "complex64"),
    ("float32", "complex64", "complex64"),
    ("float64", "complex64", "complex128"),
]
WEAK = [
    (int, "uint8", "uint8"),
    (int, "bool", "int32"),
    (int, "float16", "float16"),
    (float, "int64", "float32"),
    (float, "bfloat16", "bfloat16"),
    (float, "float64", "float64"),
    (bool, "int8", "int8"),
    (complex, "float32", "complex64"),
    (complex, "float64", "complex128"),
    (float, "complex64", "complex64"),
    (int, float, "float32"),
    (bool, int, "int32"),
]


@pytest.mark.parametrize(("x", "y", "expected"), [*PAIRS, *WEAK])
def test_pairs(x: Any, y: Any, expected: str) -> None:
    assert result_type(x, y) == expected
    assert result_type(y, x) == expected


def test_laws() -> None:
    for x, y, z in itertools.product(sorted(DENSE), repeat=3):
        assert result_type(x, x) == x
        joined = result_type(x, y)
        assert result_type(y, x) == joined
        assert result_type(joined, y) == joined
        if "uint64" not in (x, y, z):  # with signed integers it leaves the lattice for a float
            assert result_type(joined, z) == result_type(x, result_type(y, z)) or "float32" in (
                joined,
                result_type(y, z),
            )


def test_agrees_with_keras() -> None:
    keras = pytest.importorskip("keras")
    names = sorted(DENSE - COMPLEX)  # Keras does not promote complex types
    narrow = {"int64": "int32", "uint64": "uint32", "float64": "float32"}  # and keeps no 64 bits
    for x, y in itertools.combinations_with_replacement([*names, int, float], 2):
        found = result_type(x, y)
        assert narrow.get(found, found) == keras.backend.result_type(x, y), (x, y)


def test_values_count_by_their_kind() -> None:
    half = convert_to_tensor(1.0, "float16")
    assert result_type(half, 1e30) == "float16"
    assert result_type(half, np.float64(1)) == "float64"
    assert result_type(True) == "bool"
    assert result_type(1) == "int32"
    assert result_type(2.5) == "float32"


def test_promote() -> None:
    x, y = promote(convert_to_tensor([1, 2], "int16"), 2.5)
    assert (x.dtype, y.dtype) == ("float32", "float32")
    assert y.numpy().item() == 2.5
    (x,) = promote(convert_to_tensor([1, 2]), floating=True)
    assert x.dtype == "float32"
    x, y = promote(convert_to_tensor(0.1, "float64"), 0.1)
    assert (
        x.numpy().item() == y.numpy().item()
    )  # a Python number is not rounded to float32 on the way


def test_default_float(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Defaults, "floating", convert_to_tensor(1.0, "bfloat16").dtype)
    assert to_floating(result_type("int32")) == "bfloat16"
    assert result_type(1.5, "int8") == "bfloat16"
    assert to_floating(result_type("float64")) == "float64"


def test_strings_do_not_mix() -> None:
    with pytest.raises(DTypeError) as caught:
        result_type("string", "float32")
    assert caught.value.message == "string does not mix with float32"


BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    operator.truediv,
    operator.floordiv,
    operator.mod,
    operator.pow,
    operator.eq,
    operator.ne,
    operator.lt,
    operator.le,
    operator.gt,
    operator.ge,
]


@pytest.mark.parametrize("op", BINARY, ids=lambda op: op.__name__)
@pytest.mark.parametrize(
    "other", [3, 2.5, np.array([3.0, 1.0, 2.0])], ids=["int", "float", "array"]
)
def test_operators(op: Any, other: Any) -> None:
    x = np.array([1.0, 2.0, 4.0])
    tensor = convert_to_tensor(x)
    for found, expected in ((op(tensor, other), op(x, other)), (op(other, tensor), op(other, x))):
        assert isinstance(found, Tensor)
        assert found.dtype == ("bool" if expected.dtype == bool else "float64")
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-15)


@pytest.mark.parametrize("op", [operator.and_, operator.or_, operator.xor])
def test_bitwise_operators(op: Any) -> None:
    x, y = np.array([12, 10]), np.array([10, 6])
    np.testing.assert_array_equal(op(convert_to_tensor(x), y).numpy(), op(x, y))
    np.testing.assert_array_equal(op(12, convert_to_tensor(y)).numpy(), op(12, y))


def test_unary_operators() -> None:
    x = convert_to_tensor([-1.5, 2.0])
    assert (-x).numpy().tolist() == [1.5, -2]
    assert (+x) is x
    assert abs(x).numpy().tolist() == [1.5, 2]
    assert (~convert_to_tensor([True, False])).numpy().tolist() == [False, True]
    size = abs(convert_to_tensor([3 + 4j]))
    assert size.numpy().tolist() == [5]
    assert size.dtype == "float32"


def test_division_of_integers_has_fractions() -> None:
    x = convert_to_tensor([1, 2])
    assert (x / 2).dtype == "float32"
    assert (x / 2).numpy().tolist() == [0.5, 1]
    assert (x // 2).dtype == "int32"


def test_powers() -> None:
    x = convert_to_tensor([1, -2, 3])
    assert (x**2).numpy().tolist() == [1, 4, 9]
    assert (x**2).dtype == "int32"
    assert (x**3).numpy().tolist() == [1, -8, 27]
    assert (x**2.0).dtype == (x**0.5).dtype == "float32"
    assert (2 ** x[::2]).numpy().tolist() == [2, 8]
    assert (convert_to_tensor([True, False]) ** 2).numpy().tolist() == [1, 0]
    with pytest.raises(InvalidArgumentError) as caught:
        x**-1
    assert caught.value.message.startswith("Pow(int32[3], int32[]): Integers to negative")


def test_a_square_is_one_operation() -> None:
    with Graph().as_default() as graph:
        x = placeholder("float32", [3])
        y = x**2
        z = x**2.5
    assert [op.type for op in graph.operations] == ["Placeholder", "Square", "Const", "Pow"]
    assert y.dtype == z.dtype == "float32"
