"""Element types: names, properties, and what is understood as one."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DTypeError
from laminar.engine.graph import (
    ANY,
    COMPLEX,
    DENSE,
    FLOATING,
    INTEGER,
    DType,
    as_dtype,
    resource,
    string,
)

ALIASES = [
    ("float32", "float32"),
    (np.float32, "float32"),
    (np.dtype("f4"), "float32"),
    (np.dtype(">f4"), "float32"),
    (">i8", "int64"),
    ("double", "float64"),
    ("half", "float16"),
    (float, "float32"),
    (int, "int32"),
    (bool, "bool"),
    (complex, "complex64"),
    ("complex", "complex64"),
    (str, "string"),
    (bytes, "string"),
    (object, "string"),
    (np.dtype("S3"), "string"),
    (np.dtype("U2"), "string"),
    (np.bool_, "bool"),
    (ml_dtypes.bfloat16, "bfloat16"),
    (np.dtype(ml_dtypes.bfloat16), "bfloat16"),
]


@pytest.mark.parametrize(("value", "name"), ALIASES, ids=repr)
def test_as_dtype(value: Any, name: str) -> None:
    found = as_dtype(value)
    assert type(found) is DType
    assert found == name


@pytest.mark.parametrize("dtype", sorted(ANY))
def test_a_dtype_is_its_name(dtype: DType) -> None:
    assert as_dtype(str(dtype)) == dtype
    assert as_dtype(dtype) is dtype
    for twin in (pickle.loads(pickle.dumps(dtype)), copy.deepcopy(dtype)):
        assert type(twin) is DType
        assert twin == dtype


def test_several_types_are_none() -> None:
    with pytest.raises(DTypeError, match="got \\('int32', 'float32'\\)"):
        as_dtype(("int32", "float32"))


@pytest.mark.parametrize("dtype", sorted(DENSE))
def test_numpys_dtype_and_back(dtype: DType) -> None:
    assert as_dtype(dtype.numpy) == dtype
    assert dtype.size == dtype.numpy.itemsize
    assert as_dtype(np.zeros(1, dtype.numpy)[0].dtype) == dtype


class Foreign:
    """How another library's dtype looks: only its text says what it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


def test_another_librarys_dtype_by_its_text() -> None:
    assert as_dtype(Foreign("torch.bfloat16")) == "bfloat16"


@pytest.mark.parametrize(
    "value", [None, "float33", "torch.float32", 3, [], {}, np.dtype("M8[s]"), Foreign("x")]
)
def test_what_is_no_dtype(value: Any) -> None:
    with pytest.raises(DTypeError, match="dtype: expected one of bfloat16, bool") as caught:
        as_dtype(value)
    assert caught.value.remedy == 'name the element type, such as "float32"'


def test_kinds() -> None:
    assert {d for d in ANY if d.is_floating} == FLOATING
    assert {d for d in ANY if d.is_complex} == COMPLEX
    assert {d for d in ANY if d.is_integer} == INTEGER
    assert {d for d in ANY if d.is_differentiable} == FLOATING | COMPLEX
    assert not resource.is_differentiable
    assert (string.size, resource.size) == (0, 0)
    assert "bool" not in INTEGER
    assert len(INTEGER) == 8


@pytest.mark.parametrize(
    ("name", "least", "greatest"),
    [
        ("int8", -128, 127),
        ("uint64", 0, 2**64 - 1),
        ("bool", False, True),
        ("float32", np.finfo(np.float32).min, np.finfo(np.float32).max),
        ("float64", np.finfo(np.float64).min, np.finfo(np.float64).max),
    ],
)
def test_range_of_numbers(name: str, least: Any, greatest: Any) -> None:
    dtype = engine.as_dtype(name)
    assert (dtype.min, dtype.max) == (least, greatest)
    assert dtype.limits == ((least, greatest) if dtype.is_integer else (0, 1))


def test_what_types_say_of_themselves() -> None:
    assert float(engine.bfloat16.max) == 3.3895313892515355e38
    for dtype in (engine.string, engine.complex64):
        with pytest.raises(DTypeError, match="least"):
            _ = dtype.max
    assert [engine.as_dtype(n).as_datatype_enum for n in ("float32", "string", "uint64")] == [
        *(1, 7, 23),
    ]
    assert engine.as_dtype("complex128").real_dtype == "float64"
    assert engine.uint8.is_unsigned
    assert not engine.int8.is_unsigned
    assert engine.int8.is_compatible_with("int8")
    assert not engine.int8.is_compatible_with(np.float32)
