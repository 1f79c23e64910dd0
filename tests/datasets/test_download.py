from __future__ import annotations

import hashlib
import threading
from pathlib import Path

import pytest

from laminar.datasets import download
from laminar.datasets.download import cache_folder, fetch
from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnavailableError,
)

BODY = bytes(range(256)) * 4000  # several chunks
SHA256 = hashlib.sha256(BODY).hexdigest()
MD5 = hashlib.md5(BODY).hexdigest()
Served = dict[str, bytes]
Script = list[str]
Asked = list[str | None]


@pytest.fixture(autouse=True)
def _body(served: Served) -> None:
    served["f.bin"] = BODY


def part() -> Path:
    return cache_folder() / "f.bin.part"


@pytest.mark.parametrize("digest", [SHA256, SHA256.upper(), MD5, None])
def test_downloads_once(base_url: str, asked: Asked, digest: str | None) -> None:
    path = fetch("f.bin", base_url + "f.bin", digest)
    assert path == cache_folder() / "f.bin"
    assert path.read_bytes() == BODY
    assert fetch("f.bin", base_url + "f.bin", digest) == path
    assert asked == [None]
    assert [p.name for p in path.parent.iterdir()] == ["f.bin"]


def test_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINAR_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "datasets"
    monkeypatch.delenv("LAMINAR_HOME")
    assert cache_folder() == Path.home() / ".laminar" / "datasets"


def test_other_folder_and_force(base_url: str, served: Served, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "er"
    fetch("f.bin", base_url + "f.bin", folder=folder)
    served["f.bin"] = b"newer"
    assert fetch("f.bin", base_url + "f.bin", folder=folder).read_bytes() == BODY
    assert fetch("f.bin", base_url + "f.bin", folder=folder, force=True).read_bytes() == b"newer"


def test_broken_connections_are_taken_up_where_they_stopped(
    base_url: str, script: Script, asked: Asked
) -> None:
    # More breaks than attempts: each brought something new.
    script += ["drop"] * 6
    assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY
    n = len(BODY)
    assert asked[:3] == [None, f"bytes={n // 2}-", f"bytes={(n // 2 + n) // 2}-"]
    assert len(asked) == 7


def test_a_later_process_takes_up(base_url: str, script: Script, asked: Asked) -> None:
    script += ["drop", "status 404"]
    with pytest.raises(UnavailableError, match="404"):
        fetch("f.bin", base_url + "f.bin", SHA256)
    assert part().stat().st_size == len(BODY) // 2
    assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY
    assert asked[-1] == f"bytes={len(BODY) // 2}-"


def test_without_a_digest_an_older_part_is_not_trusted(
    base_url: str, script: Script, asked: Asked
) -> None:
    part().parent.mkdir(parents=True)
    part().write_bytes(b"older")
    assert fetch("f.bin", base_url + "f.bin").read_bytes() == BODY
    assert asked == [None]


def test_a_file_that_changes_meanwhile_is_not_spliced(
    base_url: str, served: Served, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = BODY[::-1]

    def change(seconds: float) -> None:
        served["f.bin"] = newer

    monkeypatch.setattr("laminar.datasets.download.time.sleep", change)
    script += ["drop"]
    assert fetch("f.bin", base_url + "f.bin").read_bytes() == newer


@pytest.mark.parametrize("action", ["ignore-range", "shift-range"])
def test_servers_without_ranges(base_url: str, script: Script, action: str) -> None:
    script += ["drop", action]
    assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY


@pytest.mark.parametrize(
    ("older", "requests"),
    [
        (BODY, 1),  # complete: 416
        (BODY + b"more", 2),
        (b"x" * 100, 2),  # completed, found wrong, taken anew
        (b"x" * len(BODY), 2),
    ],
)
def test_older_parts(base_url: str, asked: Asked, older: bytes, requests: int) -> None:
    part().parent.mkdir(parents=True)
    part().write_bytes(older)
    assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY
    assert len(asked) == requests


def test_a_wrong_file_is_refused_and_removed(base_url: str, served: Served) -> None:
    served["f.bin"] = BODY[:-1] + b"?"
    with pytest.raises(DataLossError, match=SHA256) as caught:
        fetch("f.bin", base_url + "f.bin", SHA256)
    assert str(cache_folder() / "f.bin") in str(caught.value.remedy)
    assert list(cache_folder().iterdir()) == []


@pytest.mark.parametrize("wrong", [BODY[:-1], BODY + b"x", b""])
def test_a_wrong_copy_is_replaced(base_url: str, wrong: bytes) -> None:
    cache_folder().mkdir(parents=True)
    (cache_folder() / "f.bin").write_bytes(wrong)
    assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY


@pytest.mark.parametrize(
    ("actions", "requests"),
    [
        (["status 503", "status 429"], 3),
        (["status 500"] * 4, 4),
        (["status 403"], 1),
        (["status 410"], 1),
    ],
)
def test_status_codes(
    base_url: str, script: Script, asked: Asked, actions: list[str], requests: int
) -> None:
    script += actions
    if requests > len(actions):
        assert fetch("f.bin", base_url + "f.bin", SHA256).read_bytes() == BODY
    else:
        with pytest.raises(UnavailableError, match=actions[0].split()[1]):
            fetch("f.bin", base_url + "f.bin", SHA256)
    assert len(asked) == requests


def test_no_network(site: object, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr("laminar.datasets.download.time.sleep", waits.append)
    monkeypatch.setattr(download, "BACKOFF_SECONDS", 0.5)
    with pytest.raises(UnavailableError) as caught:
        fetch("f.bin", "http://127.0.0.1:9/f.bin", SHA256)  # nothing listens on "discard"
    assert waits == [0.5, 1.0, 2.0]
    target = cache_folder() / "f.bin"
    assert str(caught.value.remedy).endswith(f"put the file at {target} (its digest is {SHA256})")
    # What the remedy says works.
    target.write_bytes(BODY)
    assert fetch("f.bin", "http://127.0.0.1:9/f.bin", SHA256) == target
    target.write_bytes(b"wrong")
    with pytest.raises(UnavailableError, match="has another digest"):
        fetch("f.bin", "http://127.0.0.1:9/f.bin", SHA256)
    assert target.read_bytes() == b"wrong"


def test_redirects(base_url: str, served: Served, script: Script) -> None:
    served["old.bin"] = b""
    script += [f"redirect {base_url}f.bin"]
    assert fetch("f.bin", base_url + "old.bin", SHA256).read_bytes() == BODY


@pytest.mark.parametrize("location", ["file:///etc/passwd", "ftp://127.0.0.1/f", "data:,x"])
def test_redirects_elsewhere_are_refused(base_url: str, script: Script, location: str) -> None:
    script += [f"redirect {location}"]
    with pytest.raises(UnavailableError):
        fetch("f.bin", base_url + "f.bin", SHA256)


def test_endless_answers_are_cut(
    base_url: str, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("laminar.datasets.transfer.MAX_BYTES", len(BODY) + 500)
    script += ["no-length"]
    with pytest.raises(UnavailableError, match="more than"):
        fetch("f.bin", base_url + "f.bin")


def test_several_at_once_download_once(base_url: str, asked: Asked) -> None:
    results: list[bytes] = []
    threads = [
        threading.Thread(
            target=lambda: results.append(fetch("f.bin", base_url + "f.bin", SHA256).read_bytes())
        )
        for _ in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [BODY] * 6
    assert asked == [None]
    assert [p.name for p in cache_folder().iterdir()] == ["f.bin"]


@pytest.mark.parametrize(
    ("name", "url", "digest"),
    [
        ("../f", "http://x/f", None),
        ("a/b", "http://x/f", None),
        ("/etc/f", "http://x/f", None),
        ("", "http://x/f", None),
        ("..", "http://x/f", None),
        ("f", "file:///etc/passwd", None),
        ("f", "ftp://x/f", None),
        ("f", "/etc/passwd", None),
        ("f", "http://x/f", "abc"),
        ("f", "http://x/f", "z" * 64),
    ],
)
def test_arguments(name: str, url: str, digest: str | None) -> None:
    with pytest.raises(InvalidArgumentError):
        fetch(name, url, digest)


def test_a_folder_that_cannot_be_made(base_url: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(PermissionDeniedError, match="cannot be written") as caught:
        fetch("f.bin", base_url + "f.bin", SHA256, folder=tmp_path / "file" / "x")
    assert "LAMINAR_HOME" in str(caught.value.remedy)
