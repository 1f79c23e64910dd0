"""get_file: a file from the network, kept and unpacked."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from laminar.datasets.archive import extract as extract_archive
from laminar.datasets.archive import is_archive
from laminar.datasets.download import cache_folder, fetch
from laminar.engine.errors import DataLossError, InvalidArgumentError

_DIGITS = {"sha256": 64, "md5": 32}


def get_file(
    fname: str | os.PathLike[str] | None = None,
    origin: str | None = None,
    untar: bool = False,
    md5_hash: str | None = None,
    file_hash: str | None = None,
    cache_subdir: str = "datasets",
    hash_algorithm: str = "auto",
    extract: bool = False,
    archive_format: Any = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    force_download: bool = False,
) -> str:
    """The local copy of a file, downloaded unless it is there already.

    Args:
        fname: its name here, by default that of `origin`. With `extract`, the folder that it is
            unpacked to, or the archive if it has an ending: "a.zip" goes to "a_extracted".
        origin: where it is published, http or https.
        untar: an older name of `extract`.
        md5_hash: an older name of `file_hash`.
        file_hash: its SHA-256 or MD5 in hexadecimal. A copy that differs is downloaded again.
        cache_subdir: the folder inside `cache_dir`.
        hash_algorithm: "sha256", "md5", or "auto" to tell by the length of `file_hash`.
        extract: whether to unpack the file, a tar (also compressed) or zip archive.
        archive_format: taken for Keras's sake; the file itself tells what it is.
        cache_dir: where files are kept: by default $LAMINAR_HOME, or ~/.laminar.
        force_download: download, and unpack, even if it is there.

    Returns:
        The path of the file, or with `extract` of the folder with what was in it.

    Raises:
        InvalidArgumentError: no `origin`, a `fname` with folders, another algorithm.
        UnavailableError: the file cannot be downloaded.
        DataLossError: the file has another hash, or is not an archive.

    Examples:
        >>> import pathlib
        >>> pathlib.Path("cache/datasets").mkdir(parents=True)
        >>> _ = pathlib.Path("cache/datasets/data.txt").write_text("was here before")
        >>> path = laminar.utils.get_file("data.txt", "https://host/data.txt", cache_dir="cache")
        >>> pathlib.Path(path).read_text()
        'was here before'
    """
    if not origin:
        raise InvalidArgumentError("get_file: origin is missing", remedy='origin="https://..."')
    digest = _checked_digest(file_hash or md5_hash, hash_algorithm)
    name = os.fspath(fname) if fname else os.path.basename(urlsplit(origin).path)
    if not name or os.sep in name:
        raise InvalidArgumentError(
            f"get_file: expected the name of a file, got {name!r} (origin {origin!r})",
            remedy="pass fname without folders; cache_dir and cache_subdir say where it goes",
        )
    home = cache_folder().parent if cache_dir is None else Path(cache_dir).expanduser()
    folder = home / cache_subdir
    if not (extract or untar):
        return str(fetch(name, origin, digest, folder=folder, force=force_download))
    archive, target = _places(name, is_given=fname is not None)
    path = fetch(archive, origin, digest, folder=folder, force=force_download)
    if not is_archive(path):
        raise DataLossError(
            f"get_file: {path} from {origin} is not a tar or zip archive",
            remedy="pass extract=False to get the file as it is",
        )
    return str(_unpacked(path, folder / target))


def _checked_digest(digest: str | None, algorithm: str) -> str | None:
    if algorithm not in ("auto", *_DIGITS):
        raise InvalidArgumentError(
            f"get_file: hash_algorithm must be 'auto', 'sha256' or 'md5', got {algorithm!r}"
        )
    if digest is not None and algorithm != "auto" and len(digest) != _DIGITS[algorithm]:
        raise InvalidArgumentError(
            f"get_file: a {algorithm} hash has {_DIGITS[algorithm]} hexadecimal digits, "
            f"got {len(digest)}: {digest!r}",
            remedy="pass hash_algorithm='auto'",
        )
    return digest


def _places(name: str, *, is_given: bool) -> tuple[str, str]:
    """The names of the archive and of the folder, where Keras puts them."""
    if is_given and "." in name:
        return name, f"{name.partition('.')[0]}_extracted"
    return f"{name}_archive", name


def _unpacked(path: Path, folder: Path) -> Path:
    """The folder with the contents of the archive, made anew when the archive is younger."""
    if folder.exists() and folder.stat().st_mtime_ns >= path.stat().st_mtime_ns:
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        fresh = Path(scratch) / "fresh"
        extract_archive(path, fresh)
        if folder.exists():
            folder.rename(Path(scratch) / "old")
        fresh.rename(folder)
    return folder
