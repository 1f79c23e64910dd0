"""Weights files: what is written is read back, and so is what h5py writes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine.errors import (
    NotFoundError,
)
from laminar.saving.weights import WeightsReader, write_weights

from .hdf5_images import CHUNKED, image, read_all

h5py = pytest.importorskip("h5py")

rng = np.random.default_rng(7)


def assert_same(actual: Any, expected: Any) -> None:
    assert actual.dtype == expected.dtype
    assert actual.shape == expected.shape
    assert actual.tobytes() == expected.tobytes()


ARRAYS: list[Any] = [
    rng.normal(size=(3, 4)).astype(np.float32),
    rng.normal(size=(2, 0, 3)),
    np.float16(1.5),
    np.asarray(-7),
    rng.integers(0, 255, (5,)).astype(np.uint8),
    np.array([True, False, True]),
    rng.normal(size=(4, 2)).astype(ml_dtypes.bfloat16),
    np.array([np.nan, -0.0, np.inf], np.float32),
    np.asfortranarray(rng.normal(size=(3, 5))),
]


def test_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "m.weights.h5"
    weights: dict[str, Any] = {
        "layers/dense": ARRAYS,
        "layers/custom": {"b": np.arange(3), "a": np.arange(4.0)},
        "optimizer": [np.asarray(i, np.int32) for i in range(600)],
        "": [np.zeros(2)],
        "layers/empty": [],
    }
    write_weights(path, weights, names={"layers/dense": "ä dense", "": "model"})

    with WeightsReader(path) as reader:
        assert set(reader.objects()) == set(weights)
        for found, expected in zip(reader.variables("layers/dense").values(), ARRAYS, strict=True):
            assert_same(found, np.asarray(expected))
        assert list(reader.variables("layers/custom")) == ["a", "b"]
        numbers = list(reader.variables("optimizer").values())
        assert numbers == list(range(600))
        assert reader.variables("layers/empty") == {}
        assert reader.attributes("layers/dense/vars") == {"name": "ä dense"}
        assert reader.attributes("vars") == {"name": "model"}
        assert reader.attributes("layers/custom/vars") == {}
        assert reader.attributes() == {}
        assert reader.attributes("layers/dense/vars/6") == {"dtype": "bfloat16"}
        assert len(reader) == len(ARRAYS) + 2 + 600 + 1
        assert "layers/dense/vars/0" in reader
        assert "layers/dense" not in reader
        assert reader.spec("layers/dense/vars/0").shape == (3, 4)
        for call in (reader.__getitem__, reader.spec, reader.attributes, reader.variables):
            with pytest.raises(NotFoundError):
                call("layers/nothing")


def test_h5py_reads_what_is_written() -> None:
    buffer = io.BytesIO()
    write_weights(buffer, {"layers/dense": ARRAYS}, names={"layers/dense": "dense"})
    with h5py.File(buffer, "r") as file:
        group = file["layers/dense/vars"]
        assert group.attrs["name"] == "dense"
        for index, expected in enumerate(ARRAYS):
            assert group[str(index)][()].tobytes() == np.asarray(expected).tobytes()


def test_same_arrays_same_bytes() -> None:
    first, second = io.BytesIO(), io.BytesIO()
    write_weights(first, {"layers/dense": ARRAYS})
    write_weights(second, {"layers/dense": ARRAYS})
    assert first.getvalue() == second.getvalue()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"chunks": (8, 3)},
        {"chunks": (50, 7), "compression": "gzip"},
        {"chunks": (8, 3), "compression": "gzip", "shuffle": True, "fletcher32": True},
        {"chunks": (8, 3), "shuffle": True},
        {"chunks": (9, 5), "fletcher32": True},
        {"chunks": (1, 1)},
        {"chunks": (8, 3), "maxshape": (None, 7)},
        {"dtype": ">i4"},
        {"dtype": ">f8"},
        {"dtype": np.uint16},
    ],
)
def test_storage(options: dict[str, Any]) -> None:
    data = image(lambda file: file.create_dataset("x", data=CHUNKED % 3, **options))
    found = read_all(data)["x"]
    np.testing.assert_array_equal(found, CHUNKED % 3)
    assert found.dtype == np.dtype(options.get("dtype", np.int64)).newbyteorder("=")


def test_filter_left_out_of_a_chunk() -> None:
    """A chunk that gzip does not make smaller is stored as it is."""
    noise = np.frombuffer(rng.bytes(64), np.uint8)
    data = image(lambda file: file.create_dataset("x", data=noise, chunks=(64,), compression=9))
    np.testing.assert_array_equal(read_all(data)["x"], noise)


def test_compact_array() -> None:
    def build(file: Any) -> None:
        plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        plist.set_layout(h5py.h5d.COMPACT)
        space = h5py.h5s.create_simple((3,))
        array = h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_INT16, space, plist)
        array.write(h5py.h5s.ALL, h5py.h5s.ALL, np.array([5, 6, 7], np.int16))

    np.testing.assert_array_equal(read_all(image(build))["x"], [5, 6, 7])


def test_text_and_attributes() -> None:
    def build(file: Any) -> None:
        file["words"] = ["one", "", "drei ä", "one"]
        file["fixed"] = np.array([b"ab", b"c"])
        file.attrs["config"] = "x" * 1000
        file.attrs["names"] = ["a", "bc"]
        file.attrs["fixed"] = np.array([b"ab", b"c"])
        file.attrs["count"] = np.int64(3)
        file.attrs["rate"] = 0.5
        file.attrs["on"] = np.bool_(True)
        file.attrs["row"] = np.arange(3)
        file.attrs["bytes"] = np.bytes_(b"torch")

    with WeightsReader(image(build)) as reader:
        assert reader["words"].tolist() == ["one", "", "drei ä", "one"]
        assert reader["fixed"].tolist() == [b"ab", b"c"]
        found = reader.attributes()
    np.testing.assert_array_equal(found.pop("row"), [0, 1, 2])
    assert found == {
        "config": "x" * 1000,
        "names": ["a", "bc"],
        "fixed": ["ab", "c"],
        "count": 3,
        "rate": 0.5,
        "on": True,
        "bytes": "torch",
    }
