"""Model archives: both ways with Keras itself, and every hostile archive refused."""

from __future__ import annotations

import json
import os
import stat
import struct
import time
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    LaminarError,
    MissingFileError,
    NotFoundError,
)
from laminar.saving.archive import Limits, open_archive, write_archive

pytest.importorskip("h5py")

MAX_SECONDS = 2.0
MAX_BYTES = 16 << 20
CONFIG = {"class_name": "Sequential", "config": {"name": "ä", "layers": [None, 1, 0.5, True]}}
METADATA = {"keras_version": "3.15.1"}
WEIGHTS: dict[str, Any] = {
    "layers/dense": [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.arange(4).astype(ml_dtypes.bfloat16),
    ],
    "optimizer": [np.asarray(5, np.int32)],
}


@contextmanager
def refused(match: str) -> Iterator[None]:
    """The block raises DataLossError, with a remedy, soon and without taking much memory."""
    tracemalloc.start()
    start = time.perf_counter()
    try:
        with pytest.raises(DataLossError, match=match) as caught:
            yield
        assert caught.value.remedy
        assert time.perf_counter() - start < MAX_SECONDS
        assert tracemalloc.get_traced_memory()[1] < MAX_BYTES
    finally:
        tracemalloc.stop()


def read_all(path: Path, limits: Limits | None = None) -> dict[str, Any]:
    """Everything in an archive."""
    with open_archive(path, limits=limits) as archive:
        found: dict[str, Any] = {"config": archive.config, "metadata": archive.metadata}
        found["assets"] = {name: archive.asset(name) for name in archive.assets}
        with archive.weights() as weights:
            found["weights"] = {
                key: (weights[key].dtype, weights[key].tobytes()) for key in weights
            }
        archive.verify()
    return found


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "good.keras"
    assets = {"layers/string_lookup/vocabulary.txt": b"one\ntwo"}
    names = {"layers/dense": "dense", "optimizer": "adam"}
    write_archive(path, CONFIG, METADATA, WEIGHTS, names=names, assets=assets)
    return path


def entries(path: Path) -> list[tuple[zipfile.ZipInfo, bytes]]:
    with zipfile.ZipFile(path) as archive:
        return [(entry, archive.read(entry)) for entry in archive.infolist()]


def rewritten(path: Path, change: Callable[[zipfile.ZipFile], object]) -> Path:
    """The archive with what `change` adds to it."""
    with zipfile.ZipFile(path, "a") as archive:
        change(archive)
    return path


def test_round_trip(good: Path) -> None:
    with open_archive(good) as archive:
        assert archive.config == CONFIG
        assert archive.metadata == METADATA
        assert archive.assets == ["layers/string_lookup/vocabulary.txt"]
        assert archive.asset("layers/string_lookup/vocabulary.txt") == b"one\ntwo"
        with pytest.raises(NotFoundError):
            archive.asset("../config.json")
        with archive.weights() as weights:
            assert weights.attributes("layers/dense/vars") == {"name": "dense"}
            for path, arrays in WEIGHTS.items():
                for found, expected in zip(weights.variables(path).values(), arrays, strict=True):
                    assert found.dtype == expected.dtype
                    np.testing.assert_array_equal(found, expected)


def test_same_content_same_bytes(good: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.keras"
    for path in (good, other):
        write_archive(path, CONFIG, METADATA, WEIGHTS)
    assert good.read_bytes() == other.read_bytes()


def test_deflated_archive(good: Path) -> None:
    before = read_all(good)
    parts = entries(good)
    with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/", b"")
        archive.writestr("notes.txt", b"not ours, and not read")
        for entry, content in parts:
            archive.writestr(entry.filename, content)
    assert read_all(good) == before


def test_archive_behind_other_bytes(good: Path) -> None:
    before = read_all(good)
    good.write_bytes(b"#!/bin/sh\n" + good.read_bytes())
    assert read_all(good) == before


# Hostile archives


@pytest.mark.parametrize(
    "name",
    [
        "../evil",
        "assets/../../evil",
        "/tmp/evil",
        "assets//evil",
        "./config.json",
        "..\\evil",
        "assets\\..\\..\\evil",
        "C:\\evil",
        "C:evil",
        "assets/a\nb",
        "assets/\u202egpj.exe",
        "..",
        "/",
    ],
)
def test_names_that_lead_out(name: str, good: Path) -> None:
    before = sorted(good.parent.rglob("*"))
    rewritten(good, lambda archive: archive.writestr(name, b"x"))
    with refused("a name"):
        open_archive(good)
    assert sorted(good.parent.rglob("*")) == before
    assert not Path("/tmp/evil").exists()


def test_name_with_nul(good: Path) -> None:
    rewritten(good, lambda archive: archive.writestr("assets/aXb", b"x"))
    good.write_bytes(good.read_bytes().replace(b"assets/aXb", b"assets/a\0b"))
    with refused("a name"):
        open_archive(good)


@pytest.mark.parametrize("kind", [stat.S_IFLNK, stat.S_IFCHR, stat.S_IFIFO, stat.S_IFSOCK])
def test_links_and_devices(kind: int, good: Path) -> None:
    entry = zipfile.ZipInfo("assets/link")
    entry.external_attr = (kind | 0o777) << 16
    rewritten(good, lambda archive: archive.writestr(entry, b"/etc/passwd"))
    with refused("a link or a device"):
        open_archive(good)


def test_folder_with_content(good: Path) -> None:
    rewritten(good, lambda archive: archive.writestr("assets/a/", b"x"))
    with refused("a folder"):
        open_archive(good)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_names(good: Path) -> None:
    rewritten(good, lambda archive: archive.writestr("config.json", b"{}"))
    with refused("same name"):
        open_archive(good)


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_unknown_compression(method: int, good: Path) -> None:
    rewritten(good, lambda archive: archive.writestr("assets/a", b"x", method))
    with refused(f"method {method}"):
        open_archive(good)


def directory_field(path: Path, name: bytes, offset: int, form: str, value: int) -> None:
    """Change a field of an entry's record in the directory of the archive."""
    data = bytearray(path.read_bytes())
    at = data.rindex(name) - 46 + offset
    assert data[at - offset : at - offset + 4] == b"PK\1\2"
    struct.pack_into(form, data, at, value)
    path.write_bytes(bytes(data))


@pytest.mark.parametrize("flag", [1, 1 | 1 << 6, 1 << 5, 1 << 13])
def test_encrypted(flag: int, good: Path) -> None:
    directory_field(good, b"config.json", 8, "<H", flag)
    with refused("encrypted"):
        open_archive(good)


@pytest.mark.parametrize("method", [1, 9, 12, 93, 99])
def test_method_nobody_knows(method: int, good: Path) -> None:
    directory_field(good, b"config.json", 10, "<H", method)
    with refused(f"method {method}"):
        open_archive(good)


def test_stored_entry_that_claims_more_than_it_has(good: Path) -> None:
    directory_field(good, b"config.json", 24, "<I", 1 << 31)
    with refused("of its bytes"):
        open_archive(good)


def test_entries_that_overlap(good: Path) -> None:
    first = entries(good)[0][0].header_offset
    directory_field(good, b"model.weights.h5", 42, "<I", first)
    with refused("overlaps"):
        open_archive(good)


def test_bomb(good: Path) -> None:
    zeros = bytes(4 << 20)
    parts = entries(good)
    for bomb in ("assets/zeros", "model.weights.h5", "config.json"):
        with zipfile.ZipFile(good, "w", zipfile.ZIP_DEFLATED) as archive:
            for entry, content in parts:
                if entry.filename != bomb:
                    archive.writestr(entry.filename, content)
            archive.writestr(bomb, zeros)
        with refused("claim to be 4194304"):
            open_archive(good)
        with open_archive(good, limits=Limits(max_expansion=2000)) as archive:
            assert archive.name == os.fspath(good)


def test_stream_that_is_longer_than_it_says(good: Path) -> None:
    """64 MiB of zeros behind a directory that speaks of 100 bytes: never uncompressed."""
    with zipfile.ZipFile(good, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("assets/zeros", bytes(64 << 20))
    directory_field(good, b"assets/zeros", 24, "<I", 100)
    with open_archive(good) as reader, refused("damaged"):
        reader.asset("assets/zeros".removeprefix("assets/"))


def test_many_entries(good: Path) -> None:
    def change(archive: zipfile.ZipFile) -> None:
        for index in range(300):
            archive.writestr(f"assets/{index}", b"")

    rewritten(good, change)
    with refused("max_entries"):
        open_archive(good, limits=Limits(max_entries=200))


def test_long_directory(good: Path) -> None:
    """The directory is 6 MB of comments; it is refused before it is parsed."""

    def change(archive: zipfile.ZipFile) -> None:
        for index in range(100):
            entry = zipfile.ZipInfo(f"assets/{index}")
            entry.comment = b"x" * 60_000
            archive.writestr(entry, b"")

    rewritten(good, change)
    with refused("longer than"):
        open_archive(good)


@pytest.mark.parametrize("name", ["config.json", "metadata.json", "model.weights.h5"])
def test_missing_entry(name: str, good: Path) -> None:
    parts = entries(good)
    with zipfile.ZipFile(good, "w") as archive:
        for entry, content in parts:
            if entry.filename != name:
                archive.writestr(entry, content)
    with refused(f"no {name}"):
        open_archive(good)


def test_cut_short(good: Path) -> None:
    data = good.read_bytes()
    for length in range(0, len(data), 101):
        good.write_bytes(data[:length])
        with refused("damaged or cut short"):
            open_archive(good)


def test_not_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    for content in (b"", b"PK\5\6", b"\x89HDF\r\n\x1a\n" * 9, os.urandom(5000)):
        path.write_bytes(content)
        with refused("damaged or cut short"):
            open_archive(path)
    with pytest.raises(MissingFileError):
        open_archive(tmp_path / "none.keras")


@pytest.mark.parametrize("part", ["config.json", "model.weights.h5"])
def test_checksum(part: str, good: Path) -> None:
    (entry,) = (each for each, _ in entries(good) if each.filename == part)
    data = bytearray(good.read_bytes())
    data[entry.header_offset + 30 + len(part) + 40] ^= 1
    good.write_bytes(bytes(data))
    with open_archive(good) as archive, refused("damaged|checksum"):
        if part == "config.json":
            assert archive.config
        else:
            assert archive.weights()
            archive.verify()


def test_total_size(good: Path) -> None:
    with refused("max_bytes"):
        open_archive(good, limits=Limits(max_bytes=1000))


def test_fuzz(good: Path) -> None:
    """A damaged archive gives an error of ours or, where nothing is hurt, the same content."""
    expected = read_all(good)
    data = good.read_bytes()
    chance = np.random.default_rng(3)
    # Half the flips hit the directory and the headers, which are a small part of the bytes.
    places = np.arange(len(data) - 600, len(data))
    outcomes = {"same": 0, "renamed asset": 0, "refused": 0}
    for case in range(600):
        damaged = bytearray(data)
        at = int(chance.choice(places)) if case % 2 else int(chance.integers(len(data)))
        damaged[at] ^= 1 << int(chance.integers(8))
        good.write_bytes(bytes(damaged))
        start = time.perf_counter()
        try:
            found = read_all(good)
        except LaminarError:
            outcomes["refused"] += 1
        else:
            if found["assets"] != expected["assets"]:
                outcomes["renamed asset"] += 1
                found["assets"] = expected["assets"]
            assert found == expected
            outcomes["same"] += 1
        assert time.perf_counter() - start < MAX_SECONDS
    assert outcomes["same"] > 50
    assert outcomes["refused"] > 200


# JSON


def with_config(path: Path, content: bytes) -> Path:
    parts = entries(path)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for entry, old in parts:
            new = content if entry.filename == "config.json" else old
            archive.writestr(entry.filename, new)
    return path


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"[" * 100_000, "nested deeper"),
        (b'{"a":' * 100_000, "nested deeper"),
        (b"[]", "expected a JSON object"),
        (b'{"a": 1, "b": 2, "a": 3}', "twice"),
        (b'{"x": {"a": 1, "a": 1}}', "twice"),
        (b'{"a": NaN}', "not finite"),
        (b'{"a": -Infinity}', "not finite"),
        (b'{"a": 1e999}', "not finite"),
        (b'{"a": ' + b"9" * 5000 + b"}", "proper JSON"),
        (b'{"a": "\xff"}', "proper JSON"),
        (b'{"a": "\\ud800"}', "proper JSON"),
        (b'{"a": "open', "proper JSON"),
        (b'{"a": "' + b'\\"' * 500_000, "proper JSON"),
        (b"", "proper JSON"),
        (b"\xef\xbb\xbf{}", "proper JSON"),
        (b'{"a": 1} {"b": 2}', "proper JSON"),
    ],
    ids=range(16),
)
def test_json(content: bytes, match: str, good: Path) -> None:
    limits = Limits(max_expansion=2000)
    with open_archive(with_config(good, content), limits=limits) as archive, refused(match):
        assert archive.config


@pytest.mark.parametrize(
    ("limits", "match"),
    [
        (Limits(max_text_bytes=40), "max_text_bytes"),
        (Limits(max_json_values=10), "more than 10 values"),
        (Limits(max_depth=2), "nested deeper than 2"),
    ],
)
def test_json_limits(limits: Limits, match: str, good: Path) -> None:
    content = b'{"a": [[1]], "b": [' + b"[]," * 20 + b"0]}"
    with open_archive(with_config(good, content), limits=limits) as archive, refused(match):
        assert archive.config


def test_brackets_in_text_are_no_depth(good: Path) -> None:
    config = {"a": "[" * 1000 + '\\"{{' + "\N{GRINNING FACE}", "b": ["\\", '"']}
    content = json.dumps(config).encode()
    with open_archive(with_config(good, content)) as archive:
        assert archive.config == config


@pytest.mark.parametrize("shift", range(7))
def test_long_text_with_escapes(shift: int, good: Path) -> None:
    """Escapes that stand across the border of what is looked at together (64 KiB)."""
    config = {"a": "x" * ((1 << 16) - 10 + shift) + '\\"[' * 300}
    with open_archive(with_config(good, json.dumps(config).encode())) as archive:
        assert archive.config == config


# Writing


@pytest.mark.parametrize(
    ("config", "weights", "assets"),
    [
        ({"a": float("nan")}, {}, {}),
        ({"a": object()}, {}, {}),
        ({"a": {1, 2}}, {}, {}),
        ({}, {"../x": [1.0]}, {}),
        ({}, {}, {"../x": b""}),
        ({}, {}, {"/x": b""}),
        ({}, {}, {"a\\b": b""}),
    ],
)
def test_refused_writing_leaves_the_earlier_file(
    config: dict[str, Any], weights: dict[str, Any], assets: dict[str, bytes], good: Path
) -> None:
    before = good.read_bytes()
    with pytest.raises(InvalidArgumentError):
        write_archive(good, config, {}, weights, assets=assets)
    assert good.read_bytes() == before
    assert list(good.parent.iterdir()) == [good]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_failing_disk_leaves_the_earlier_file(
    step: str, good: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    before = good.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, step, fail)
        with pytest.raises(OSError, match="Input/output"):
            write_archive(good, {}, {}, {"x": [np.ones(3)]})
    assert good.read_bytes() == before
    assert list(good.parent.iterdir()) == [good]


# Keras itself


@pytest.fixture
def keras() -> Any:
    for backend in ("torch", "jax"):
        if os.environ.get("KERAS_BACKEND", backend) == backend:
            try:
                __import__(backend)
            except ImportError:
                continue
            os.environ["KERAS_BACKEND"] = backend
            return pytest.importorskip("keras")
    pytest.skip("neither torch nor jax is there for Keras")


def tiny(keras: Any) -> Any:
    dense = keras.layers.Dense(3, name="first", activation="relu")
    model = keras.Sequential([keras.Input((4,)), dense, keras.layers.Dense(2, dtype="bfloat16")])
    model.compile("adam", "mse")
    model.fit(np.ones((8, 4), np.float32), np.ones((8, 2), np.float32), verbose=0)
    return model


@pytest.mark.filterwarnings("ignore")  # Keras's own
def test_read_what_keras_wrote(keras: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    model = tiny(keras)
    model.save(path)
    with open_archive(path) as archive, archive.weights() as weights:
        assert archive.config["class_name"] == "Sequential"
        assert archive.metadata["keras_version"] == keras.__version__
        assert weights.attributes("layers/dense/vars") == {"name": "first"}
        expected = {
            "layers/dense": model.layers[0].weights,
            "layers/dense_1": model.layers[1].weights,
            "optimizer": model.optimizer.variables,
        }
        for name, variables in expected.items():
            found = weights.variables(name).values()
            for mine, theirs in zip(found, variables, strict=True):
                array = keras.ops.convert_to_numpy(theirs)
                assert mine.dtype == array.dtype
                assert mine.tobytes() == array.tobytes()


@pytest.mark.filterwarnings("ignore")  # Keras's own
def test_keras_reads_what_is_written(keras: Any, tmp_path: Path) -> None:
    path = tmp_path / "model.keras"
    model = tiny(keras)
    model.save(path)
    with open_archive(path) as archive, archive.weights() as weights:
        config, metadata = archive.config, archive.metadata
        arrays = {name: weights.variables(name) for name in weights.objects()}
    arrays["layers/dense"] = {name: array + 1 for name, array in arrays["layers/dense"].items()}
    write_archive(path, config, metadata, arrays, names={"layers/dense": "first"})

    loaded = keras.models.load_model(path)
    for mine, theirs in zip(arrays["layers/dense"].values(), loaded.layers[0].weights, strict=True):
        np.testing.assert_array_equal(keras.ops.convert_to_numpy(theirs), mine)
    for mine, theirs in zip(model.layers[1].weights, loaded.layers[1].weights, strict=True):
        assert keras.backend.standardize_dtype(theirs.dtype) == "bfloat16"
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(theirs), keras.ops.convert_to_numpy(mine)
        )
    slots = zip(model.optimizer.variables, loaded.optimizer.variables, strict=True)
    for mine, theirs in slots:
        np.testing.assert_array_equal(
            keras.ops.convert_to_numpy(theirs), keras.ops.convert_to_numpy(mine)
        )
