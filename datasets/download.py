"""Files fetched once, checked, and kept.

A file `name` is downloaded to `name.part`, which is locked while a process writes to it, checked
against its digest and renamed: a file under its own name is whole. A download that breaks off is
taken up where it stopped, by this process or a later one.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from io import BufferedRandom, BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING, Final

from laminar.engine.errors import (
    DataLossError,
    InvalidArgumentError,
    PermissionDeniedError,
    UnavailableError,
)

if TYPE_CHECKING:
    from .transfer import Transfer

KERAS_FILES: Final = "https://storage.googleapis.com/tensorflow/tf-keras-datasets/"
ATTEMPTS: Final = 4
BACKOFF_SECONDS: Final = 0.5
LOCK_POLL_SECONDS: Final = 0.1
_NOT_WRITABLE: Final = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST}
_ALGORITHMS: Final = {64: "sha256", 32: "md5"}


def cache_folder() -> Path:
    """Where downloaded files are kept: $LAMINAR_HOME/datasets, or ~/.laminar/datasets."""
    home = os.environ.get("LAMINAR_HOME")
    return (Path(home).expanduser() if home else Path.home() / ".laminar") / "datasets"


def fetch(
    name: str,
    url: str,
    digest: str | None = None,
    *,
    folder: Path | None = None,
    force: bool = False,
) -> Path:
    """The local copy of a file, downloaded unless it is there already.

    Args:
        name: the file's name in `folder`, without a path.
        url: where it is published, http or https.
        digest: its SHA-256 (64 hexadecimal digits) or MD5 (32). A copy that differs is replaced;
            a download that differs is removed and refused. None accepts whatever comes.
        folder: where it is kept; by default `cache_folder()`.
        force: download even if a good copy is there.

    Returns:
        The path of the file.

    Raises:
        InvalidArgumentError: the name is a path, the address is not http(s), or the digest is
            neither SHA-256 nor MD5.
        UnavailableError: the file cannot be downloaded.
        DataLossError: what was downloaded has another digest.
        PermissionDeniedError: the folder cannot be made or written to.
    """
    _check(name, url, digest)
    folder = cache_folder() if folder is None else folder
    target = folder / name
    if not force and _is_good(target, digest):
        return target
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(target.with_name(f"{name}.part")) as (part, file):
            if not force and _is_good(target, digest):  # another process was first
                part.unlink()
                return target
            _fill(part, file, target, url, digest)
            os.replace(part, target)
    except OSError as error:
        if error.errno not in _NOT_WRITABLE:
            raise
        raise PermissionDeniedError(
            f"fetch: {error.filename or folder} cannot be written",
            remedy="set LAMINAR_HOME to a folder that can",
        ) from error
    return target


def _check(name: str, url: str, digest: str | None) -> None:
    if name in ("", ".", "..") or name != os.path.basename(name) or "\0" in name:
        raise InvalidArgumentError(
            f"fetch: expected the name of a file, got {name!r}",
            remedy="give a name without a path; LAMINAR_HOME says where files are kept",
        )
    if not url.startswith(("https://", "http://")):
        raise InvalidArgumentError(
            f"fetch: expected an address that begins with https:// or http://, got {url!r}",
            remedy="open a local file by its path instead",
        )
    if digest is not None and not re.fullmatch("(?:[0-9a-fA-F]{32}){1,2}", digest):
        raise InvalidArgumentError(
            f"fetch: expected a SHA-256 (64 hexadecimal digits) or MD5 (32), got {digest!r}",
            remedy="`sha256sum FILE` prints it",
        )


def _has_digest(file: BufferedReader | BufferedRandom, digest: str | None) -> bool:
    if digest is None:
        return True
    file.seek(0)
    algorithm = _ALGORITHMS[len(digest)]
    # MD5 is asked to find damage, not malice; some systems refuse it otherwise.
    found = hashlib.file_digest(
        file, lambda: hashlib.new(algorithm, usedforsecurity=algorithm != "md5")
    )
    return found.hexdigest() == digest.lower()


def _is_good(path: Path, digest: str | None) -> bool:
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return _has_digest(file, digest)


@contextmanager
def _locked(part: Path) -> Iterator[tuple[Path, BufferedRandom]]:
    """The partial file, open for appending and ours alone.

    The lock goes with the open file, so it ends with the process. Whoever had it before may have
    renamed or removed the file we opened: then the lock is of no use and we open again.
    """
    while True:
        with part.open("a+b") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(LOCK_POLL_SECONDS)
                continue
            try:
                is_ours = os.path.samestat(os.fstat(file.fileno()), part.stat())
            except FileNotFoundError:
                is_ours = False
            if is_ours:
                try:
                    yield part, file
                finally:  # a child that was forked meanwhile has the file open too
                    fcntl.flock(file, fcntl.LOCK_UN)
                return


def _fill(part: Path, file: BufferedRandom, target: Path, url: str, digest: str | None) -> None:
    """Bring the partial file to its full length and check it."""
    from .transfer import Transfer  # on first use: urllib and tqdm

    transfer = Transfer(url, file, label=target.name)
    if digest is None:
        file.truncate(0)  # nothing could tell whether an older part fits
    is_resumed = file.seek(0, os.SEEK_END) > 0
    _transfer_with_retries(transfer, target, digest)
    is_good = _has_digest(file, digest)
    if is_resumed and not is_good:
        # The older part was damaged, or the file has changed since: once more, from the start.
        file.truncate(0)
        _transfer_with_retries(transfer, target, digest)
        is_good = _has_digest(file, digest)
    if not is_good:
        part.unlink()
        raise DataLossError(
            f"fetch: what {url} sent does not have the digest {digest}; it was removed",
            remedy=f"try later, or get the file from elsewhere and put it at {target}",
        )
    file.flush()
    os.fsync(file.fileno())


def _transfer_with_retries(transfer: Transfer, target: Path, digest: str | None) -> None:
    """Run until the file is complete; give up after `ATTEMPTS` runs that brought nothing new."""
    from .transfer import TransferError

    failures = 0
    most = transfer.file.seek(0, os.SEEK_END)
    while True:
        try:
            transfer.run()
            return
        except TransferError as error:
            size = transfer.file.seek(0, os.SEEK_END)
            failures = 1 if size > most else failures + 1
            most = max(most, size)
            if error.is_final or failures == ATTEMPTS:
                is_wrong = target.exists() and not _is_good(target, digest)
                raise UnavailableError(
                    f"fetch: {target.name} could not be downloaded from {transfer.url}: {error}"
                    + (f"; the file at {target} has another digest" if is_wrong else ""),
                    remedy=f"download that address where there is a network and put the file at "
                    f"{target}" + (f" (its digest is {digest})" if digest else ""),
                ) from error
        time.sleep(BACKOFF_SECONDS * 2 ** (failures - 1))
