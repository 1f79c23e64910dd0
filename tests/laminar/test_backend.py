"""Keras's older helpers."""

from __future__ import annotations

import pytest

from laminar import backend


@pytest.mark.parametrize(
    ("dtype", "is_float", "is_int"),
    [
        ("float32", True, False),
        ("bfloat16", True, False),
        ("int8", False, True),
        ("uint16", False, True),
        ("bool", False, False),
        ("complex64", False, False),
        ("string", False, False),
    ],
)
def test_kinds_of_dtypes(dtype: str, is_float: bool, is_int: bool) -> None:
    assert backend.is_float_dtype(dtype) is is_float
    assert backend.is_int_dtype(dtype) is is_int


def test_result_type() -> None:
    assert backend.result_type("int8", "uint8") == "int16"
    assert backend.result_type("int32", "float16") == "float16"


def test_numbers_of_names() -> None:
    assert [backend.get_uid("test_backend") for _ in range(3)] == [1, 2, 3]
    assert backend.get_uid("test_backend_too") == 1
