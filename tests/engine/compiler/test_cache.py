"""The cache of object code: hits, damage, other processors, folders that others can write to."""

from __future__ import annotations

from pathlib import Path

import pytest

from laminar.engine.compiler.cache import cached, folder


class Maker:
    """Makes code, and counts how often."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, text: str) -> bytes:
        self.calls += 1
        return text.encode() * 3


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LAMINAR_CACHE", str(tmp_path / "objects"))
    return tmp_path / "objects"


def files(place: Path) -> list[Path]:
    return [p for p in place.rglob("*") if p.is_file()]


def test_made_once(place: Path) -> None:
    make = Maker()
    assert cached("cpu", "text", make) == cached("cpu", "text", make) == b"texttexttext"
    assert make.calls == 1
    assert [p.suffix for p in files(place)] == [".o"]


def test_another_text_or_processor_is_another_entry(place: Path) -> None:
    make = Maker()
    for identity, text in (("cpu", "a"), ("cpu", "b"), ("other cpu", "a")):
        cached(identity, text, make)
    assert make.calls == len(files(place)) == 3


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 100])
def test_damaged_code_is_made_anew(place: Path, damage: bytes) -> None:
    make = Maker()
    cached("cpu", "text", make)
    files(place)[0].write_bytes(damage)
    assert cached("cpu", "text", make) == b"texttexttext"
    assert make.calls == 2
    cached("cpu", "text", make)
    assert make.calls == 2


def test_a_folder_that_others_write_to_is_not_trusted(place: Path) -> None:
    make = Maker()
    cached("cpu", "text", make)
    files(place)[0].parent.chmod(0o777)
    cached("cpu", "text", make)
    assert make.calls == 2


def test_a_folder_that_cannot_be_written_costs_only_time(place: Path) -> None:
    place.write_text("a file where the folder should be")
    make = Maker()
    assert cached("cpu", "text", make) == b"texttexttext"
    assert make.calls == 1


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("LAMINAR_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert folder() == tmp_path / "laminar" / "objects"
