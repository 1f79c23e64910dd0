"""The cache of compiled code: hits, damage, folders that others can write to, its size."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from laminar.engine.compiler.kernels.gemm import gemm_kernel
from laminar.engine.compiler.target import code_cache, disk_cache, llvm
from laminar.engine.compiler.target.code import Code
from laminar.engine.compiler.target.disk_cache import folder, read, write
from laminar.engine.graph import float32, float64

NAME = "0123abcd.o"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "objects"))
    return tmp_path / "objects"


def files(place: Path) -> list[Path]:
    return [p for p in place.rglob("*") if p.is_file()]


def test_what_was_written_is_read(place: Path) -> None:
    assert read(NAME) is None
    write(NAME, b"code")
    assert read(NAME) == b"code"
    write(NAME, b"other code")
    assert read(NAME) == b"other code"
    assert read("0123abce.o") is None
    assert [p.name for p in files(place)] == [NAME]


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_damaged_code_is_not_read(place: Path, damage: bytes) -> None:
    write(NAME, b"code")
    files(place)[0].write_bytes(damage)
    assert read(NAME) is None
    write(NAME, b"code")
    assert read(NAME) == b"code"


def test_a_file_under_another_name_is_not_read(place: Path) -> None:
    write(NAME, b"code")
    other = "0123abce.plan"
    files(place)[0].rename(place / "01" / other)
    assert read(other) is None


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_only_a_file_is_read(place: Path, kind: str) -> None:
    write(NAME, b"code")
    (file,) = files(place)
    if kind == "link":
        file.rename(place / "other")
        file.symlink_to(place / "other")
    else:
        file.unlink()
        os.mkfifo(file) if kind == "fifo" else file.mkdir()
    found: list[bytes | None] = []
    reader = threading.Thread(target=lambda: found.append(read(NAME)), daemon=True)
    reader.start()
    reader.join(10)  # a FIFO would wait for a writer
    assert found == [None]


def test_a_link_to_another_folder_is_not_followed(place: Path) -> None:
    write(NAME, b"code")
    elsewhere = (place / "01").rename(place / "elsewhere")
    (place / "01").symlink_to(elsewhere)
    assert read(NAME) is None


def test_folders_are_made_for_this_user_alone(place: Path) -> None:
    before = os.umask(0)
    try:
        write(NAME, b"code")
    finally:
        os.umask(before)
    assert [p.stat().st_mode & 0o777 for p in (place, place / "01")] == [0o700, 0o700]


def test_without_a_home_nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container, for a user without an entry in the table of users."""

    def unknown() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("LAMINAR_CACHE", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", unknown)
    write(NAME, b"code")
    assert read(NAME) is None


def test_what_could_not_be_written_leaves_nothing(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(source: str, target: Path) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "replace", fail)
    write(NAME, b"code")
    assert not files(place)


def test_a_folder_that_others_write_to_is_not_trusted(place: Path) -> None:
    write(NAME, b"code")
    files(place)[0].parent.chmod(0o777)
    assert read(NAME) is None


def test_a_folder_that_cannot_be_written_costs_only_time(place: Path) -> None:
    place.write_text("a file where the folder should be")
    write(NAME, b"code")
    assert read(NAME) is None


def test_what_was_not_read_for_long_goes_first(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disk_cache, "_MOST_FILES", 4)
    names = [f"00{i}.o" for i in range(5)]
    for age, name in enumerate(names[:4]):
        write(name, name.encode())
        os.utime(place / "00" / name, ns=(age, age))
    assert read(names[0]) is not None
    write(names[4], b"one too many")
    kept = {p.name for p in files(place)}
    assert kept == {names[0], names[4]}


def test_a_folder_is_not_looked_through_for_each_file(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = []
    scandir = os.scandir

    def noted(folder: Path) -> Any:
        looked.append(folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", noted)
    for i in range(50):
        write(f"00{i}.o", b"code")
    assert looked == [place / "00"]  # another process may have written there before
    for i in range(50, 65):
        write(f"00{i}.o", b"code")
    assert len(looked) == 2
    assert len(files(place)) == 32


def test_large_files_make_room_too(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_cache, "_MOST_BYTES", 4000)
    for age in range(5):
        write(f"00{age}.o", bytes(1000))
        os.utime(place / "00" / f"00{age}.o", ns=(age, age))
    assert sorted(p.name for p in files(place)) == ["003.o", "004.o"]
    write("005.o", bytes(9000))  # what has just been made stays, whatever its size
    assert [p.name for p in files(place)] == ["005.o"]


def test_the_users_home_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LAMINAR_CACHE", "~/kept")
    assert disk_cache.folder() == tmp_path / "kept"


def _nothing(name: str) -> str:
    return f"define void @{name}() {{\n  ret void\n}}\n"


def _nothing_else(name: str) -> str:
    return f"; a comment\n{_nothing(name)}"


def test_a_key_tells_the_code_and_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    width = llvm.vector_bytes()
    made = [
        Code("f", width, _nothing, ("f",)),
        Code("g", width, _nothing, ("g",)),
        Code("f", width, _nothing_else, ("f",)),
        Code("f", 16, _nothing, ("f",)),
    ]
    keys = {code_cache.native(code).key for code in made}
    assert len(keys) == (4 if width > 16 else 3)
    monkeypatch.setattr(code_cache, "_keys", {})
    assert {code_cache.native(code).key for code in made} == keys
    monkeypatch.setattr(code_cache, "_keys", {})
    monkeypatch.setattr(llvm, "identity", lambda vector: f"another processor {vector}")
    assert not {code_cache.native(code).key for code in made} & keys


def test_a_writer_of_ours_is_told_by_its_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its text, which takes time, is only written where the object code is missing."""
    monkeypatch.setattr(Code, "text", lambda code: pytest.fail("written"))
    monkeypatch.setattr(code_cache, "_keys", {})
    kinds = [gemm_kernel.code(dtype, 16) for dtype in (float32, float64)]
    assert len({code_cache.native(code).key for code in kinds}) == 2


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAMINAR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "laminar" / "objects"
