"""Elements as bytes: they come back, and damaged ones are told apart."""

from __future__ import annotations

import contextlib
import json
import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.datasets.codec import decode, encode
from laminar.engine.errors import DataLossError, InvalidArgumentError

texts = np.empty((2, 1), object)
texts[:, 0] = [b"a\0b", b""]
ELEMENTS: list[Any] = [
    np.arange(6, dtype="int16").reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.float32(2.5),
    np.bool_(True),
    b"text\0",
    texts,
    np.zeros((0, 3), "uint8"),
    np.arange(3).astype(ml_dtypes.bfloat16),
    (np.int64(1), {"b": np.ones(2), "a": None}, [b"x"]),
    {},
]


def same(a: Any, b: Any) -> None:
    assert type(a) is type(b)
    if isinstance(a, dict):
        assert list(a) == list(b)
        for key in a:
            same(a[key], b[key])
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for left, right in zip(a, b, strict=True):
            same(left, right)
    elif isinstance(a, np.ndarray):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        assert a.tolist() == b.tolist()
    else:
        assert a == b


@pytest.mark.parametrize("element", ELEMENTS)
def test_an_element_comes_back(element: Any) -> None:
    same(decode(encode(element, "test"), "test"), element)


@given(st.integers(0, 400), st.integers(0, 255), st.sampled_from(ELEMENTS))
def test_damage_is_told(place: int, byte: int, element: Any) -> None:
    data = bytearray(encode(element, "test"))
    for damaged in (data[: place % len(data)], bytes(data) + bytes([byte])):
        with pytest.raises(DataLossError):
            decode(bytes(damaged), "test")
    data[place % len(data)] = byte
    with contextlib.suppress(DataLossError):  # nothing else, and most bytes of data may be any
        decode(bytes(data), "test")


def forged(header: Any) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<I", len(text)) + text


@pytest.mark.parametrize(
    "header",
    [
        {"form": 0, "leaves": [{"shape": [1 << 62, 1 << 62], "dtype": "float32"}]},
        {"form": 0, "leaves": [{"shape": [0, 1 << 70], "dtype": "float32"}]},
        {"form": 0, "leaves": [{"shape": [-1], "dtype": "float32"}]},
        {"form": 0, "leaves": [{"shape": [2], "dtype": "string"}]},
        {"form": 0, "leaves": [{"shape": [2], "dtype": "object"}]},
        {"form": 0, "leaves": [{"shape": [2], "lengths": [1 << 60, 1]}]},
        {"form": 0, "leaves": [{"shape": [3], "lengths": [0, 0]}]},
        {"form": 3, "leaves": []},
        {"form": "x", "leaves": []},
        {"form": {"tuple": 1}, "leaves": []},
        {"form": {}, "leaves": []},
        {"form": {"tuple": [], "list": []}, "leaves": []},
        {"leaves": []},
        [],
        None,
    ],
)
def test_forged_headers(header: Any) -> None:
    with pytest.raises(DataLossError):
        decode(forged(header), "test")


def test_what_cannot_be_written() -> None:
    with pytest.raises(InvalidArgumentError, match="expected numbers or texts"):
        encode(np.array([object()]), "test")
    with pytest.raises(InvalidArgumentError, match="the keys must be texts"):
        encode({1: np.ones(1)}, "test")
