"""Modules that other people's ops import."""

from __future__ import annotations

from laminar.engine.ops import convert, shape
from laminar.engine.ops.array.shape import reshape
from laminar.engine.ops.core.arrays import to_array
from laminar.engine.ops.core.convert import convert_to_tensor


def test_modules_are_found_without_their_rooms() -> None:
    assert shape.reshape is reshape
    assert convert.to_array is to_array
    assert convert.convert_to_tensor is convert_to_tensor
