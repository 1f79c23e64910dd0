"""Archives that are hostile or damaged: refused, soon, and without much memory."""

from __future__ import annotations

import json
import os
import stat
import struct
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

from laminar.engine.errors import (
    LaminarError,
    MissingFileError,
)
from laminar.saving.archive import Limits, open_archive

from .archives import entries, read_all, rewritten, write_good
from .refusing import MAX_SECONDS, refused

pytest.importorskip("h5py")


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return write_good(tmp_path / "good.keras")


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
        start = time.thread_time()
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
        assert time.thread_time() - start < MAX_SECONDS
    assert outcomes["same"] > 40
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
