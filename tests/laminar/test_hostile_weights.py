"""Weights files that are hostile, damaged or too large: refused, soon, and without much memory.

They are real ones: h5py makes them, and where it cannot, bytes of a good one are changed.
"""

from __future__ import annotations

import io
import os
import struct
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import (
    LaminarError,
    MissingFileError,
)
from laminar.saving.limits import Limits
from laminar.saving.weights import WeightsReader, write_weights

from .hdf5_images import CHUNKED, image, read_all
from .refusing import MAX_SECONDS, refused

h5py = pytest.importorskip("h5py")


def external_storage(file: Any) -> None:
    file.create_dataset("x", (4,), "f4", external=[("/etc/hostname", 0, 16)])


def virtual(file: Any) -> None:
    layout = h5py.VirtualLayout((4,), "f4")
    layout[:] = h5py.VirtualSource("/etc/other.h5", "x", (4,))
    file.create_virtual_dataset("x", layout)


def hard_link(file: Any) -> None:
    file["a"] = np.zeros(3)
    file["b"] = file["a"]


def loop(file: Any) -> None:
    file.create_group("a")["up"] = file["/"]


def links(kind: str) -> Callable[[Any], None]:
    def build(file: Any) -> None:
        link = h5py.SoftLink("/x") if kind == "soft" else h5py.ExternalLink("/etc/o.h5", "/x")
        file.create_group("layers")["dense"] = link

    return build


def committed(file: Any) -> None:
    file["t"] = np.dtype("f4")


def of_committed_type(file: Any) -> None:
    file["t"] = np.dtype("f4")
    file.create_dataset("x", (3,), dtype=file["t"])
    del file["t"]


def of_type(dtype: Any) -> Callable[[Any], None]:
    return lambda file: file.create_dataset("x", (3,), dtype)


def bit_field(file: Any) -> None:
    h5py.h5d.create(file.id, b"x", h5py.h5t.NATIVE_B8, h5py.h5s.create_simple((2,)))


def custom_float(file: Any) -> None:
    kind = h5py.h5t.IEEE_F32LE.copy()
    kind.set_ebias(100)
    h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,))).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.zeros(2, np.float32)
    )


def odd_integer(file: Any) -> None:
    kind = h5py.h5t.STD_I32LE.copy()
    kind.set_precision(20)
    h5py.h5d.create(file.id, b"x", kind, h5py.h5s.create_simple((2,))).write(
        h5py.h5s.ALL, h5py.h5s.ALL, np.zeros(2, np.int32)
    )


def unwritten_chunks(file: Any) -> None:
    array = file.create_dataset("x", (1 << 40,), "f4", chunks=(1 << 10,))
    array[:10] = 1


def deep(file: Any) -> None:
    file.create_group("/".join("a" * 300))


REFUSED = [
    pytest.param(links("external"), "an external link", id="external-link"),
    pytest.param(links("soft"), "soft link", id="soft-link"),
    pytest.param(hard_link, "used twice", id="hard-link"),
    pytest.param(loop, "used twice", id="loop"),
    pytest.param(external_storage, "external storage", id="external-storage"),
    pytest.param(virtual, "virtual", id="virtual"),
    pytest.param(committed, "committed type", id="committed-type"),
    pytest.param(of_committed_type, "committed type", id="of-committed-type"),
    pytest.param(of_type(h5py.ref_dtype), "reference", id="reference"),
    pytest.param(of_type(h5py.regionref_dtype), "reference", id="region-reference"),
    pytest.param(
        lambda file: file.create_dataset("x", (3,), h5py.vlen_dtype(np.int32)),
        "variable-length",
        id="vlen-int",
    ),
    pytest.param(of_type([("a", "f4"), ("b", "i4")]), "compound", id="compound"),
    pytest.param(of_type(np.complex64), "compound|complex", id="complex"),
    pytest.param(of_type("(2,)f4"), "array", id="array-type"),
    pytest.param(
        lambda file: file.create_dataset("x", data=np.zeros(3, "V2")),
        "no attribute declares",
        id="opaque",
    ),
    pytest.param(of_type("V9"), "class 5", id="opaque-9"),
    pytest.param(
        lambda file: file.create_dataset("x", (3,), h5py.enum_dtype({"A": 0, "B": 1})),
        "enumeration",
        id="enum",
    ),
    pytest.param(of_type(np.longdouble), "not IEEE", id="long-double"),
    pytest.param(custom_float, "not IEEE", id="custom-float"),
    pytest.param(odd_integer, "20 bits", id="odd-integer"),
    pytest.param(bit_field, "bit field", id="bit-field"),
    pytest.param(
        lambda file: file.create_dataset("x", data=np.zeros(100), compression="lzf"),
        "lzf",
        id="lzf",
    ),
    pytest.param(
        lambda file: file.create_dataset("x", data=np.arange(99), scaleoffset=0),
        "filter 6",
        id="scale-offset",
    ),
    pytest.param(
        lambda file: file.create_dataset("x", (1 << 40,), "f4"), "never written", id="huge"
    ),
    pytest.param(
        lambda file: file.create_dataset("x", (0, 1 << 31, 1 << 31), "f4"),
        "any memory",
        id="absurd",
    ),
    pytest.param(unwritten_chunks, "1 of 1073741824 chunks", id="huge-chunked"),
    pytest.param(
        lambda file: file.create_dataset("x", data=np.zeros(1 << 20), compression=9),
        "max_expansion",
        id="bomb",
    ),
    pytest.param(
        lambda file: file.create_dataset("x", data=h5py.Empty("f4")), "null", id="null-space"
    ),
    pytest.param(
        lambda file: file.attrs.create("x", h5py.Empty("f4")), "null", id="null-attribute"
    ),
    pytest.param(
        lambda file: file.attrs.create("x", np.zeros(3, "V2")), "opaque", id="opaque-attribute"
    ),
    pytest.param(lambda file: file.create_group("a\nb"), "has the name", id="control-name"),
    pytest.param(deep, "max_depth", id="deep"),
]


@pytest.mark.parametrize(("build", "match"), REFUSED)
def test_hostile(build: Callable[[Any], object], match: str, tmp_path: Path) -> None:
    path = tmp_path / "m.weights.h5"
    path.write_bytes(image(build))
    with refused(match), WeightsReader(path):
        pass
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("libver", ["v108", "v110", "latest"])
def test_newer_layouts_are_refused_by_name(libver: str) -> None:
    data = image(lambda file: file.create_group("a"), libver=libver)
    with refused("earliest"):
        WeightsReader(data)


def test_group_with_tracked_order_is_refused() -> None:
    with refused("newer layout"):
        WeightsReader(image(lambda file: file.create_group("a", track_order=True)))


def test_not_hdf5() -> None:
    for data in (b"", b"PK\3\4", b"\x89HDF\r\n\x1a\n", b"x" * 5000):
        with refused("not an HDF5 file|bytes"):
            WeightsReader(data)
    with pytest.raises(MissingFileError):
        WeightsReader("no/such/file.weights.h5")


def test_file_in_front_of_hdf5_is_refused() -> None:
    data = image(lambda file: file.create_group("a"), userblock_size=512)
    with refused("not an HDF5 file"):
        WeightsReader(b"#!/bin/sh\n" + data[10:])


def good() -> bytes:
    def build(file: Any) -> None:
        for index in range(3):
            group = file.create_group(f"layers/dense_{index}/vars")
            group.attrs["name"] = f"dense_{index}"
            group["0"] = np.arange(12, dtype=np.float32).reshape(3, 4) + index
        options = {"compression": "gzip", "shuffle": True, "fletcher32": True}
        file.create_dataset("z", data=CHUNKED, chunks=(8, 3), **options)
        file["words"] = ["one", "two"]
        file.attrs["names"] = ["a", "b"]

    return image(build)


def test_cut_short() -> None:
    data = good()
    for length in range(0, len(data), 97):
        with refused("cut short|not an HDF5|bytes"):
            WeightsReader(data[:length])


def flips(data: bytes, count: int, seed: int) -> Iterator[bytes]:
    """Copies of `data` with bits flipped, bytes set, or stretches of it copied elsewhere."""
    chance = np.random.default_rng(seed)
    for case in range(count):
        copy = bytearray(data)
        for _ in range(int(chance.integers(1, 4))):
            at = int(chance.integers(len(copy)))
            if case % 3 == 0:
                copy[at] ^= 1 << int(chance.integers(8))
            elif case % 3 == 1:
                copy[at] = int(chance.choice([0, 1, 127, 128, 255]))
            else:
                source = int(chance.integers(len(copy)))
                stretch = copy[source : source + int(chance.integers(1, 40))]
                copy[at : at + len(stretch)] = stretch
        yield bytes(copy[: len(data)])


def test_fuzz() -> None:
    """Whatever is done to the bytes, an error of ours comes out, or arrays do."""
    outcomes = {True: 0, False: 0}
    for data in flips(good(), 900, seed=1):
        start = time.thread_time()
        try:
            read_all(data)
            outcomes[True] += 1
        except LaminarError:
            outcomes[False] += 1
        assert time.thread_time() - start < MAX_SECONDS
    assert min(outcomes.values()) > 50


def test_file_that_shrinks_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "m.weights.h5"
    write_weights(path, {"x": [np.zeros(1 << 18)]})
    with WeightsReader(path) as reader:
        os.truncate(path, 1 << 18)
        with refused("the file ends"):
            assert reader["x/vars/0"]


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    assert data.count(old) == 1
    return data.replace(old, new)


def test_overlapping_arrays_are_refused() -> None:
    size = 4 << 14

    def build(file: Any) -> None:
        for index in range(40):
            file.create_dataset(f"x{index}", (1 << 14,), np.float32)
        file["x0"][:] = 1

    data = image(build)
    with h5py.File(io.BytesIO(data), "r") as file:
        place = file["x0"].id.get_offset()
    nowhere, there = struct.pack("<QQ", 2**64 - 1, size), struct.pack("<QQ", place, size)
    assert data.count(nowhere) == 39
    with refused("overlap"):
        WeightsReader(data.replace(nowhere, there))
    with refused("outside"):
        WeightsReader(data.replace(nowhere, struct.pack("<QQ", len(data) - 8, size)))


def chunk_of(data: bytes, size: int) -> bytes:
    """A file with one gzip chunk of `size` float64 zeros, whose compressed bytes are `data`."""

    def build(file: Any) -> None:
        array = file.create_dataset("x", (size,), "f8", chunks=(size,), compression="gzip")
        array.id.write_direct_chunk((0,), data)

    return image(build)


def test_chunk_that_uncompresses_to_more_than_it_says() -> None:
    bomb = zlib.compress(bytes(64 << 20), 9)
    with refused("larger than it says"):
        read_all(chunk_of(bomb, 1 << 14))


@pytest.mark.parametrize(
    ("data", "match"),
    [
        (zlib.compress(bytes(8 * 1024 - 1)), "8191 bytes, 8192 were expected"),
        (zlib.compress(bytes(8 * 1024))[:-3], "cut short"),
        (b"not zlib" * 4, "damaged"),
        (bytes(20_000), "does not belong"),
    ],
)
def test_damaged_chunk(data: bytes, match: str) -> None:
    with refused(match):
        read_all(chunk_of(data, 1024))


def test_checksum_of_a_chunk() -> None:
    def build(file: Any) -> None:
        file.create_dataset("x", data=np.arange(100), chunks=(100,), fletcher32=True)

    data = image(build)
    read_all(data)
    with refused("checksum"):
        read_all(patched(data, struct.pack("<3q", 41, 42, 43), struct.pack("<3q", 41, 40, 43)))


def test_one_text_used_many_times_is_refused() -> None:
    """4000 references to one text of 100 kB are 400 MB of text in a file of 170 kB."""
    long = "x" * 100_000

    def build(file: Any) -> None:
        file["long"] = [long]
        file["x"] = [""] * 4000

    data = image(build)
    with h5py.File(io.BytesIO(data), "r") as file:
        source, target = file["long"].id.get_offset(), file["x"].id.get_offset()
    data = data[:target] + data[source : source + 16] * 4000 + data[target + 64_000 :]
    with refused("max_text_bytes"):
        read_all(data, Limits(max_text_bytes=4 << 20))


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        (Limits(max_bytes=100), "more than 100 bytes"),
        (Limits(max_objects=4), "more records than 4 objects"),
        (Limits(max_text_bytes=10), "more than 10 bytes"),
        (Limits(max_depth=1), "nested too deep"),
    ],
)
def test_limits(limits: Limits, match: str) -> None:
    with refused(match), WeightsReader(good(), limits=limits):
        pass


def test_larger_limits_open_a_file_that_expands() -> None:
    zeros = np.zeros(1 << 20)
    data = image(lambda file: file.create_dataset("x", data=zeros, compression=9))
    np.testing.assert_array_equal(read_all(data, Limits(max_expansion=2000))["x"], zeros)
