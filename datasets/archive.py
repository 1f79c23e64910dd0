"""Archives read member by member: regular files and folders with plain names, of bounded size.

Links, devices, absolute names and names that climb out of their folder are refused: no file is
written outside the folder that was asked for, whatever the archive says.
"""

from __future__ import annotations

import gzip
import lzma
import stat
import tarfile
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Final

from laminar.engine.errors import AlreadyExistsError, DataLossError, ResourceExhaustedError

MAX_BYTES: Final = 1 << 34
MAX_MEMBERS: Final = 1 << 22
CHUNK_BYTES: Final = 1 << 20


@dataclass(frozen=True)
class Member:
    """One file or folder of an archive, to be read before the next member is asked for."""

    archive: Path
    name: PurePosixPath
    is_folder: bool
    num_bytes: int
    open: Callable[[], IO[bytes]]

    def chunks(self) -> Iterator[bytes]:
        """The contents, exactly as long as announced.

        Raises:
            DataLossError: they are damaged or cut off.
        """
        missing = self.num_bytes
        with _damage_reported(self.archive), self.open() as file:
            while missing > 0 and (chunk := file.read(min(CHUNK_BYTES, missing))):
                missing -= len(chunk)
                yield chunk
            if missing:
                raise EOFError(f"{missing} bytes of {self.name} are missing")


def is_archive(path: Path) -> bool:
    """Whether the file is a tar (also compressed) or a zip archive."""
    return tarfile.is_tarfile(path) or zipfile.is_zipfile(path)


def members(path: Path) -> Iterator[Member]:
    """The files and folders of a tar (plain, gzip, bzip2, xz) or zip archive, in its order.

    Raises:
        DataLossError: no such archive, a damaged one, or a member that is refused.
        ResourceExhaustedError: the members say that they are larger than `MAX_BYTES` together, or
            more than `MAX_MEMBERS`.
    """
    with _damage_reported(path):
        found = _tar_members if tarfile.is_tarfile(path) else _zip_members
        total = 0
        for count, member in enumerate(found(path), start=1):
            total += member.num_bytes
            if total > MAX_BYTES or count > MAX_MEMBERS:
                raise ResourceExhaustedError(
                    f"archive: {path} holds more than {MAX_BYTES} bytes or {MAX_MEMBERS} members",
                    remedy="unpack it by hand if you trust it",
                )
            yield member


def extract(path: Path, folder: Path) -> None:
    """Unpack an archive; `folder` then holds all of it, or does not exist.

    Args:
        path: a tar or zip archive.
        folder: where its members go; a new or an empty folder.

    Raises:
        AlreadyExistsError: the folder has contents.
        DataLossError, ResourceExhaustedError: as `members`.
    """
    if folder.exists() and any(folder.iterdir()):
        raise _taken(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
        whole = Path(scratch) / "whole"
        whole.mkdir()
        for member in members(path):
            place = whole / member.name
            with _damage_reported(path):  # names that collide
                (place if member.is_folder else place.parent).mkdir(parents=True, exist_ok=True)
                if not member.is_folder:
                    with place.open("xb") as file:
                        file.writelines(member.chunks())
        try:
            whole.rename(folder)  # onto a folder: only if that is empty
        except OSError as error:
            raise _taken(folder) from error


def _taken(folder: Path) -> AlreadyExistsError:
    return AlreadyExistsError(
        f"archive: {folder} exists and has contents",
        remedy="use what is there, or remove it first",
    )


@contextmanager
def _damage_reported(path: Path) -> Iterator[None]:
    damage = (
        tarfile.TarError,
        zipfile.BadZipFile,
        gzip.BadGzipFile,
        zlib.error,
        lzma.LZMAError,
        EOFError,
        FileExistsError,  # two members of one name
        NotADirectoryError,  # a file where another member has a folder
        IsADirectoryError,
        NotImplementedError,  # a compression that zipfile does not know
        RuntimeError,  # encrypted
    )
    try:
        yield
    except damage as error:
        raise DataLossError(
            f"archive: {path} is damaged or not an archive: {error}",
            remedy="remove it, so that it is downloaded again",
        ) from error


def _safe_name(path: Path, name: str) -> PurePosixPath:
    """The name as a relative path below the archive's own root."""
    parts = name.rstrip("/").split("/")
    if parts[0] == ".":
        parts = parts[1:]
    unsafe = any(p in ("", ".", "..") or "\\" in p or "\0" in p for p in parts)
    if unsafe:
        raise DataLossError(
            f"archive: {path} holds the name {name!r}, which does not stay below its folder",
            remedy="do not unpack this archive",
        )
    return PurePosixPath(*parts)


def _refuse_kind(path: Path, name: str) -> DataLossError:
    return DataLossError(
        f"archive: {path} holds {name!r}, which is neither a file nor a folder",
        remedy="do not unpack this archive",
    )


def _tar_members(path: Path) -> Iterator[Member]:
    with tarfile.open(path, "r:*") as archive:
        for info in archive:
            if not info.isreg() and not info.isdir():
                raise _refuse_kind(path, info.name)

            def open_file(info: tarfile.TarInfo = info) -> IO[bytes]:
                file = archive.extractfile(info)
                assert file is not None, "a regular file has contents"
                return file

            size = info.size if info.isreg() else 0
            yield Member(path, _safe_name(path, info.name), info.isdir(), size, open_file)


def _zip_members(path: Path) -> Iterator[Member]:
    with zipfile.ZipFile(path) as archive:
        for info in archive.infolist():
            kind = stat.S_IFMT(info.external_attr >> 16)
            if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
                raise _refuse_kind(path, info.filename)

            def open_file(info: zipfile.ZipInfo = info) -> IO[bytes]:
                return archive.open(info)

            size = 0 if info.is_dir() else info.file_size
            yield Member(path, _safe_name(path, info.filename), info.is_dir(), size, open_file)
