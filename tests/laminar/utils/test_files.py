"""get_file: where files go, and when they are fetched and unpacked again."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import threading
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from laminar import utils
from laminar.engine.errors import DataLossError, InvalidArgumentError, UnavailableError


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args: object) -> None:
        pass


class Site:
    """Files that a server on this machine gives out."""

    def __init__(self, folder: Path, port: int) -> None:
        self.folder = folder
        self.url = f"http://127.0.0.1:{port}/"

    def put(self, name: str, body: bytes) -> str:
        (self.folder / name).write_bytes(body)
        return self.url + name


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("LAMINAR_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setattr("laminar.datasets.download.BACKOFF_SECONDS", 0.001)
    folder = tmp_path / "served"
    folder.mkdir()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=folder)) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.005,))
        thread.start()
        yield Site(folder, server.server_port)
        server.shutdown()
        thread.join()


def archive(name: str, files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    if name.endswith(".zip"):
        with zipfile.ZipFile(out, "w") as packed:
            for path, body in files.items():
                packed.writestr(path, body)
    else:
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for path, body in files.items():
                info = tarfile.TarInfo(path)
                info.size = len(body)
                tar.addfile(info, io.BytesIO(body))
    return out.getvalue()


def test_fetches_once(site: Site, tmp_path: Path) -> None:
    origin = site.put("a.txt", b"one")
    path = utils.get_file(origin=origin + "?version=2")
    assert path == str(tmp_path / "home" / "datasets" / "a.txt")
    site.put("a.txt", b"two")
    assert Path(utils.get_file(origin=origin)).read_bytes() == b"one"
    assert Path(utils.get_file(origin=origin, force_download=True)).read_bytes() == b"two"


def test_places(site: Site, tmp_path: Path) -> None:
    origin = site.put("a.txt", b"one")
    assert utils.get_file("b.txt", origin, cache_subdir="other") == str(
        tmp_path / "home" / "other" / "b.txt"
    )
    assert utils.get_file("b.txt", origin, cache_dir=tmp_path, cache_subdir="c") == str(
        tmp_path / "c" / "b.txt"
    )
    elsewhere = str(tmp_path / "absolute")
    assert utils.get_file("b.txt", origin, cache_subdir=elsewhere) == f"{elsewhere}/b.txt"


@pytest.mark.parametrize(
    "options",
    [
        {"file_hash": hashlib.sha256(b"one").hexdigest()},
        {"file_hash": hashlib.md5(b"one").hexdigest()},
        {"file_hash": hashlib.sha256(b"one").hexdigest(), "hash_algorithm": "sha256"},
        {"md5_hash": hashlib.md5(b"one").hexdigest()},
    ],
)
def test_hashes(site: Site, options: dict[str, Any]) -> None:
    origin = site.put("a.txt", b"one")
    path = Path(utils.get_file(origin=origin, **options))
    path.write_bytes(b"damaged")
    assert Path(utils.get_file(origin=origin, **options)).read_bytes() == b"one"
    site.put("a.txt", b"another")
    with pytest.raises(DataLossError, match="does not have the digest"):
        utils.get_file(origin=origin, force_download=True, **options)


EXTRACTED = [
    (None, "a.zip", "a.zip", "a.zip_archive"),
    (None, "a.tar.gz", "a.tar.gz", "a.tar.gz_archive"),
    ("flowers", "a.zip", "flowers", "flowers_archive"),
    ("flowers.tar.gz", "a.tar.gz", "flowers_extracted", "flowers.tar.gz"),
]


@pytest.mark.parametrize(("fname", "served", "folder", "kept"), EXTRACTED)
@pytest.mark.parametrize("option", ["extract", "untar"])
def test_unpacks(
    site: Site, tmp_path: Path, fname: str | None, served: str, folder: str, kept: str, option: str
) -> None:
    origin = site.put(served, archive(served, {"in/side.txt": b"1"}))
    options: dict[str, Any] = {option: True}
    path = Path(utils.get_file(fname, origin, **options))
    home = tmp_path / "home" / "datasets"
    assert path == home / folder
    assert (path / "in" / "side.txt").read_bytes() == b"1"
    assert sorted(os.listdir(home)) == sorted([folder, kept])


def test_agrees_with_keras_on_the_names(site: Site, tmp_path: Path) -> None:
    keras = pytest.importorskip("keras")
    for fname, served, _, _ in EXTRACTED:
        origin = site.put(served, archive(served, {"side.txt": b"1"}))
        ours = utils.get_file(fname, origin, extract=True, cache_dir=tmp_path / "ours")
        (tmp_path / "theirs").mkdir(exist_ok=True)
        theirs = keras.utils.get_file(fname, origin, extract=True, cache_dir=tmp_path / "theirs")
        assert Path(ours).relative_to(tmp_path / "ours") == Path(theirs).relative_to(
            tmp_path / "theirs"
        )
    assert sorted(os.listdir(tmp_path / "ours" / "datasets")) == sorted(
        os.listdir(tmp_path / "theirs" / "datasets")
    )


def test_unpacks_again_only_when_the_archive_is_new(site: Site) -> None:
    origin = site.put("a.zip", archive("a.zip", {"x": b"1", "gone": b"1"}))
    folder = Path(utils.get_file(origin=origin, extract=True))
    (folder / "mine").touch()
    assert Path(utils.get_file(origin=origin, extract=True)) == folder
    assert (folder / "mine").exists()
    site.put("a.zip", archive("a.zip", {"x": b"2"}))
    utils.get_file(origin=origin, extract=True, force_download=True)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == {"x": b"2"}


def test_what_is_no_archive(site: Site) -> None:
    origin = site.put("a.zip", b"text")
    with pytest.raises(DataLossError, match="is not a tar or zip archive"):
        utils.get_file(origin=origin, extract=True)


def test_what_is_not_there(site: Site) -> None:
    with pytest.raises(UnavailableError, match="404"):
        utils.get_file(origin=site.url + "nothing")


BAD = [
    ({}, "origin is missing"),
    ({"origin": "http://x/"}, "expected the name of a file, got ''"),
    ({"origin": "http://x/a", "fname": "b/c"}, "got 'b/c'"),
    ({"origin": "file:///etc/passwd"}, "expected an address that begins with https://"),
    ({"origin": "http://x/a", "hash_algorithm": "sha1"}, "hash_algorithm must be"),
    (
        {"origin": "http://x/a", "file_hash": "0" * 32, "hash_algorithm": "sha256"},
        "a sha256 hash has 64 hexadecimal digits, got 32",
    ),
    ({"origin": "http://x/a", "file_hash": "abc"}, "expected a SHA-256"),
]


@pytest.mark.parametrize(("options", "message"), BAD)
def test_bad_arguments(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        utils.get_file(**options)
