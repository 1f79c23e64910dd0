from __future__ import annotations

import io
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from laminar.datasets.archive import extract, is_archive, members
from laminar.engine.errors import AlreadyExistsError, DataLossError, ResourceExhaustedError

FILES = {"a.txt": b"alpha", "sub/b.bin": bytes(range(256)) * 40, "sub/empty": b""}


def tar(path: Path, mode: str = "w:gz", files: dict[str, bytes] = FILES) -> Path:
    with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]  # mode is a variable
        folder = tarfile.TarInfo("sub")
        folder.type = tarfile.DIRTYPE
        archive.addfile(folder)
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return path


def zipped(path: Path, files: dict[str, bytes] = FILES) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


MAKERS: list[Callable[[Path], Path]] = [
    lambda folder: tar(folder / "a.tar", "w"),
    lambda folder: tar(folder / "a.tar.gz", "w:gz"),
    lambda folder: tar(folder / "a.tar.xz", "w:xz"),
    lambda folder: tar(folder / "a.tar.bz2", "w:bz2"),
    lambda folder: zipped(folder / "a.zip"),
]


@pytest.mark.parametrize("make", MAKERS)
def test_extract(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    assert is_archive(path)
    extract(path, tmp_path / "new" / "out")
    found = {
        p.relative_to(tmp_path / "new/out").as_posix(): p.read_bytes()
        for p in (tmp_path / "new").rglob("*")
        if p.is_file()
    }
    assert found == FILES
    assert [p.name for p in (tmp_path / "new").iterdir()] == ["out"], "no scratch is left"


def test_a_folder_with_contents_is_kept(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip")
    out = tmp_path / "out"
    out.mkdir()
    extract(path, out)
    (out / "a.txt").write_bytes(b"mine")
    with pytest.raises(AlreadyExistsError):
        extract(path, out)
    assert (out / "a.txt").read_bytes() == b"mine"


def special(kind: bytes) -> Callable[[Path], Path]:
    def make(folder: Path) -> Path:
        path = folder / "a.tar"
        with tarfile.open(path, "w") as archive:
            info = tarfile.TarInfo("link")
            info.type = kind
            info.linkname = "/etc/passwd"
            archive.addfile(info)
        return path

    return make


def zip_link(folder: Path) -> Path:
    path = folder / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    return path


def altered(make: Callable[[Path], Path], change: Callable[[bytes], bytes]) -> Callable[..., Path]:
    def make_altered(folder: Path) -> Path:
        path = make(folder)
        path.write_bytes(change(path.read_bytes()))
        return path

    return make_altered


def named(name: str) -> list[Callable[[Path], Path]]:
    return [
        lambda folder: tar(folder / "a.tar", "w", {name: b"x"}),
        lambda folder: zipped(folder / "a.zip", {name: b"x"}),
    ]


def encrypted(data: bytes) -> bytes:
    place = data.index(b"PK\x01\x02") + 8
    (flags,) = struct.unpack_from("<H", data, place)
    return data[:place] + struct.pack("<H", flags | 1) + data[place + 2 :]


REFUSED = {
    "symbolic link": special(tarfile.SYMTYPE),
    "hard link": special(tarfile.LNKTYPE),
    "device": special(tarfile.CHRTYPE),
    "pipe": special(tarfile.FIFOTYPE),
    "zip link": zip_link,
    **{
        f"{name} {i}": make
        for name in ("../out", "/abs", "a/../../b", "a//b", "..\\b", "..", ".")
        for i, make in enumerate(named(name))
    },
    "a name twice": lambda folder: tar(folder / "a.tar", "w", {"x": b"1", "./x": b"2"}),
    "a file as a folder": lambda folder: tar(folder / "a.tar", "w", {"x": b"1", "x/y": b"2"}),
    "a folder as a file": lambda folder: tar(folder / "a.tar", "w", {"x/y": b"1", "x": b"2"}),
    "not an archive": altered(MAKERS[0], lambda data: b"hello" * 999),
    "empty": altered(MAKERS[0], lambda data: b""),
    "tar cut off": altered(MAKERS[0], lambda data: data[:3000]),
    "gzip cut off": altered(MAKERS[1], lambda data: data[:-60]),
    "gzip altered": altered(MAKERS[1], lambda data: data[:80] + b"\xff\xff" + data[82:]),
    "xz altered": altered(MAKERS[2], lambda data: data[:80] + b"\xff\xff" + data[82:]),
    "zip altered": altered(MAKERS[4], lambda data: data[:90] + b"\xff\xff\xff" + data[93:]),
    "zip encrypted": altered(MAKERS[4], encrypted),
}


@pytest.mark.parametrize("make", REFUSED.values(), ids=REFUSED.keys())
def test_refused(make: Callable[[Path], Path], tmp_path: Path) -> None:
    path = make(tmp_path)
    with pytest.raises(DataLossError):
        extract(path, tmp_path / "deep" / "out")
    assert list((tmp_path / "deep").iterdir()) == []
    assert {p.name for p in tmp_path.iterdir()} == {"deep", path.name}


@pytest.mark.parametrize(("limit", "value"), [("MAX_BYTES", 10_000), ("MAX_MEMBERS", 2)])
@pytest.mark.parametrize("make", MAKERS)
def test_size_is_bounded(
    make: Callable[[Path], Path],
    limit: str,
    value: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(f"laminar.datasets.archive.{limit}", value)
    with pytest.raises(ResourceExhaustedError):
        extract(make(tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_members_in_order(tmp_path: Path) -> None:
    found = [(str(m.name), m.num_bytes) for m in members(zipped(tmp_path / "a.zip"))]
    assert found == [(name, len(data)) for name, data in FILES.items()]
