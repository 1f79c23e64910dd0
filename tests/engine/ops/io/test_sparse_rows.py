"""Sparse arrays as strings and back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import DataLossError, ShapeError
from laminar.engine.graph import as_dtype
from laminar.engine.ops.io.sparse_rows import deserialize_many_sparse, serialize_sparse


def sparse(indices: Any, values: Any, shape: Any) -> list[Any]:
    places = np.asarray(indices, "int64").reshape(-1, len(shape))
    return [engine.constant(places), engine.constant(values), engine.constant(shape, "int64")]


@pytest.mark.parametrize(
    "values", [[1.5, 2.5, 3.5], [1, 2, 3], ["a", "", "ccc"], [True, False, True]]
)
def test_there_and_back(values: list[Any]) -> None:
    whole = sparse([[0, 1], [0, 4], [2, 0]], values, [3, 5])
    texts = serialize_sparse(*whole, many=True)
    dtype = whole[1].dtype
    again = deserialize_many_sparse.many(texts, dtype=dtype, rank=1)
    for found, expected in zip(again, whole, strict=True):
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.numpy(), expected.numpy())


def test_arrays_of_other_sizes_are_joined() -> None:
    first = serialize_sparse(*sparse([[0, 1]], [7], [1, 2]), many=False)
    second = serialize_sparse(*sparse([], np.zeros(0, "int32"), [4, 1]), many=False)
    third = serialize_sparse(*sparse([[3, 0], [3, 1]], [8, 9], [4, 2]), many=False)
    texts = engine.convert_to_tensor([first, second, third])
    indices, values, shape = deserialize_many_sparse.many(texts, dtype=as_dtype("int32"), rank=2)
    assert indices.numpy().tolist() == [[0, 0, 1], [2, 3, 0], [2, 3, 1]]
    assert values.numpy().tolist() == [7, 8, 9]
    assert shape.numpy().tolist() == [3, 4, 2]


def test_none_at_all() -> None:
    texts = engine.constant(np.zeros(0, object), "string")
    indices, values, shape = deserialize_many_sparse.many(texts, dtype=as_dtype("string"), rank=1)
    assert (indices.shape, values.shape, shape.numpy().tolist()) == ((0, 2), (0,), [0, 0])


@pytest.mark.parametrize("dtype", ["float32", "string"])
@pytest.mark.parametrize(
    "text",
    [b"", b"12", b"\xff" * 64, np.asarray([3, 1, 2], "<i8").tobytes(), b"\x01" + b"\0" * 15],
)
def test_damaged_strings(text: bytes, dtype: str) -> None:
    with pytest.raises(DataLossError, match="no sparse array"):
        deserialize_many_sparse.many(engine.constant([text]), dtype=as_dtype(dtype), rank=None)


def test_what_does_not_fit() -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        serialize_sparse(*sparse([[0]], [1, 2], [3]), many=False)
    with pytest.raises(ShapeError, match="expected indices"):
        serialize_sparse(
            engine.constant([0], "int64"), [1], engine.constant([1], "int64"), many=False
        )
    one = serialize_sparse(*sparse([[0]], [1], [3]), many=False)
    with pytest.raises(ShapeError, match="expected arrays of 2 axes"):
        deserialize_many_sparse.many(
            engine.convert_to_tensor([one]), dtype=as_dtype("int32"), rank=2
        )
