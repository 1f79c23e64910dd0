"""Model archives (`.keras`): a zip of config.json, metadata.json, model.weights.h5 and assets/.

This is the only door through which laminar reads and writes model files. Nothing is unpacked to the
disk; every entry is checked before any is read; and what is read is data, never code.
"""

from __future__ import annotations

import os
import re
import stat
import struct
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import ExitStack
from functools import cached_property
from io import BufferedReader, FileIO
from typing import IO, TYPE_CHECKING, Any, BinaryIO, cast

from laminar.engine.closing import Closing
from laminar.engine.errors import DataLossError, InvalidArgumentError, NotFoundError
from laminar.engine.late import later

from .checksum import Checksum, pieces_of
from .limits import Limits, beyond, refused
from .strict_json import format_object, parse_object
from .weights import Variables, WeightsReader, WeightsWriter, lay_out, open_file, write_weights
from .window import ALIGNMENT, BytesWindow, FileWindow, MappedWindow

if TYPE_CHECKING:
    from .hdf5_image import Hdf5Image

__all__ = [
    "ArchiveReader",
    "Limits",
    "WeightsReader",
    "WeightsWriter",
    "open_archive",
    "write_archive",
    "write_weights",
]

_atomic_write = later("laminar.engine.io.atomic", "atomic_write")

CONFIG, METADATA, WEIGHTS, ASSETS = "config.json", "metadata.json", "model.weights.h5", "assets/"

_PIECE = 1 << 20  # bytes that are read, or uncompressed, at a time
_DIRECTORY_BYTES = 256  # of an archive's directory, for each entry it may have
_LOCAL_HEADER = 30
_SMALL = 1 << 20  # an entry of this size is no danger, however well it is compressed
_EXTRA, _PADDING = struct.Struct("<HH"), 0xD935  # an extra field that aligns what follows
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Encrypted (bit 0), a patch (5), strongly encrypted (6), directory hidden (13).
_REFUSED_FLAGS = 1 | 1 << 5 | 1 << 6 | 1 << 13
# What zipfile raises for files that are not as they should be.
_DAMAGED = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    ValueError,
)


class ModelReader(Closing):
    """What a model file, or a folder of such files, holds: data, of which nothing is run.

    Args:
        name: of the file or folder, for messages.
        limits: what it may ask for.
    """

    def __init__(self, name: str, limits: Limits) -> None:
        self.name = name
        self._limits = limits

    @cached_property
    def config(self) -> dict[str, Any]:
        """The content of config.json: data, of which nothing was looked up or made."""
        return self._json(CONFIG)

    @cached_property
    def metadata(self) -> dict[str, Any]:
        """The content of metadata.json."""
        return self._json(METADATA)

    @property
    def keras_version(self) -> int:
        """The major version of Keras that wrote it; 3 where it does not say."""
        version = self.metadata.get("keras_version")
        found = re.match(r"\d{1,4}", version) if isinstance(version, str) else None
        return int(found.group()) if found else 3

    @property
    @abstractmethod
    def assets(self) -> list[str]:
        """The names of the files under assets/, such as "layers/string_lookup/vocabulary.txt"."""

    def asset(self, name: str) -> bytes:
        """The content of one file under assets/.

        Raises:
            NotFoundError: there is none of that name.
            DataLossError: it is damaged.
        """
        if name not in self.assets:
            raise NotFoundError(
                f"{self.name}: it has no asset {name!r}", remedy="`assets` lists their names"
            )
        return self._content(ASSETS + name, self._limits.max_bytes, "max_bytes")

    @abstractmethod
    def weights(self, *, mmap: bool = False) -> WeightsReader:
        """The weights; close the reader before this one.

        Args:
            mmap: whether arrays are views of the mapped file, where it is not compressed.

        Raises:
            DataLossError: model.weights.h5 is damaged or hostile.
        """

    def verify(self) -> None:
        """Wait until the weights have been compared with their checksum, where there is one.

        Raises:
            DataLossError: they differ; what was read of them is not to be used.
        """

    def _json(self, entry: str) -> dict[str, Any]:
        content = self._content(entry, self._limits.max_text_bytes, "max_text_bytes")
        return parse_object(content, f"{self.name}: {entry}", self._limits)

    @abstractmethod
    def _content(self, entry: str, most: int, limit: str) -> bytes:
        """The content of an entry, which has at most `most` bytes, as `Limits.<limit>` says."""


class ArchiveReader(ModelReader):
    """A model archive, open for reading.

    Opening checks the whole directory of the archive; the entries are read, and compared with their
    checksums, when they are asked for.

    Args:
        path: the `.keras` file.
        limits: what the file may ask for; give larger ones for larger models.

    Raises:
        MissingFileError: there is no file at `path`.
        DataLossError: the file is no such archive, is damaged, cut short or hostile (names that
            lead out of it, links, duplicate or overlapping entries, encryption, unknown
            compression, more bytes than the limits allow).
    """

    def __init__(self, path: str | os.PathLike[str], *, limits: Limits | None = None) -> None:
        # As `local_path` in engine/io/places.py, which serving a model does not load.
        super().__init__(os.fsdecode(path).removeprefix("file://"), limits or Limits())
        self._check: Checksum | None = None
        with ExitStack() as stack:
            self._file = stack.enter_context(open_file(self.name))
            self._size = os.fstat(self._file.fileno()).st_size
            self._zip = stack.enter_context(self._open_zip())
            self._entries = self._check_entries()
            self._stack = stack.pop_all()

    @property
    def assets(self) -> list[str]:
        """The names of the files under assets/, such as "layers/string_lookup/vocabulary.txt"."""
        return [name.removeprefix(ASSETS) for name in self._entries if name.startswith(ASSETS)]

    def weights(self, *, mmap: bool = False) -> WeightsReader:
        """The weights; close the reader before the archive.

        Args:
            mmap: whether arrays are views of the mapped file, where it is not compressed.

        Raises:
            DataLossError: model.weights.h5 is damaged or hostile.
        """
        entry = self._entries[WEIGHTS]
        name = f"{self.name}: {WEIGHTS}"
        if entry.compress_type == zipfile.ZIP_STORED:
            # Arrays are read straight from the archive, while its checksum is computed.
            kind = MappedWindow if mmap else FileWindow
            window = kind(self._file, self._data_start(entry), entry.file_size, name)
            reader = WeightsReader(window, limits=self._limits)
            self._check = Checksum(window.size, pieces_of(window))
            return reader
        return WeightsReader(BytesWindow(self._read(entry), name), limits=self._limits)

    def verify(self) -> None:
        """Wait until the weights have been compared with their checksum.

        Raises:
            DataLossError: they differ; what was read of them is not to be used.
        """
        if self._check is not None and self._check.result() != self._entries[WEIGHTS].CRC:
            raise refused(f"{self.name}: {WEIGHTS}: it does not have the checksum stored with it")

    def close(self) -> None:
        """Close the file."""
        if self._check is not None:
            self._check.stop()
        self._stack.close()

    def _content(self, entry: str, most: int, limit: str) -> bytes:
        if self._entries[entry].file_size > most:
            raise beyond(f"{self.name}: {entry}: it is too long", limit)
        return self._read(self._entries[entry])

    def _open_zip(self) -> zipfile.ZipFile:
        most = max(_PIECE, _DIRECTORY_BYTES * self._limits.max_entries)
        try:
            # zipfile reads the whole directory at once, before its entries can be counted.
            return zipfile.ZipFile(cast("IO[bytes]", _PiecewiseFile(self._file.fileno(), most)))
        except _DAMAGED as error:
            raise self._damaged(error) from error

    def _check_entries(self) -> dict[str, zipfile.ZipInfo]:
        entries = self._zip.infolist()
        if len(entries) > self._limits.max_entries:
            raise beyond(f"{self.name}: it has {len(entries)} entries", "max_entries")
        end = self._zip.start_dir
        total = 0
        for entry in sorted(entries, key=lambda item: item.header_offset, reverse=True):
            self._check_entry(entry)
            used = _LOCAL_HEADER + len(entry.filename) + entry.compress_size
            if entry.header_offset < 0 or entry.header_offset + used > end:
                raise refused(f"{self.name}: {entry.filename!r} overlaps what follows it")
            end = entry.header_offset
            total += entry.file_size
        if total > self._limits.max_bytes:
            raise beyond(f"{self.name}: its entries have {total} bytes", "max_bytes")
        by_name = {entry.filename: entry for entry in entries}
        if len(by_name) != len(entries):
            raise refused(f"{self.name}: two of its entries have the same name")
        for name in (CONFIG, METADATA, WEIGHTS):
            if name not in by_name:
                raise refused(f"{self.name}: it has no {name}: not a Keras 3 model archive")
        return {name: entry for name, entry in by_name.items() if not name.endswith("/")}

    def _check_entry(self, entry: zipfile.ZipInfo) -> None:
        name = entry.filename
        owner = f"{self.name}: {name[:200]!r}"
        parts = name.removesuffix("/").split("/")
        if entry.orig_filename != name or not name.isprintable():
            raise refused(f"{owner}: a name with characters that cannot be shown")
        if {"", ".", ".."} & set(parts) or "\\" in name or ":" in name:
            raise refused(f"{owner}: a name that leads out of the archive")
        mode = stat.S_IFMT(entry.external_attr >> 16)
        if mode not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise refused(f"{owner}: a link or a device, not a file")
        if (mode == stat.S_IFDIR and not entry.is_dir()) or (entry.is_dir() and entry.file_size):
            raise refused(f"{owner}: a folder that has content")
        if entry.flag_bits & _REFUSED_FLAGS:
            raise refused(f"{owner}: it is encrypted, or a patch of another file")
        if entry.compress_type not in _METHODS:
            raise refused(
                f"{owner}: it is compressed by method {entry.compress_type}; "
                "only stored and deflated entries are read"
            )
        is_stored = entry.compress_type == zipfile.ZIP_STORED
        if is_stored and entry.file_size != entry.compress_size:
            raise refused(f"{owner}: it is stored in {entry.compress_size} of its bytes")
        if entry.file_size > max(_SMALL, self._limits.max_expansion * entry.compress_size):
            raise beyond(
                f"{owner}: {entry.compress_size} compressed bytes claim to be {entry.file_size}",
                "max_expansion",
            )

    def _read(self, entry: zipfile.ZipInfo) -> bytes:
        content = bytearray()
        self._verify(entry, content)
        return bytes(content)

    def _verify(self, entry: zipfile.ZipInfo, content: bytearray | None = None) -> None:
        """Read an entry to its end, where zipfile compares its checksum; keep it in `content`."""
        left = entry.file_size
        try:
            with self._zip.open(entry) as stream:
                while piece := stream.read(_PIECE):
                    left -= len(piece)
                    if content is not None:
                        content += piece
        except _DAMAGED as error:
            raise self._damaged(error, entry.filename) from error
        if left:
            raise refused(f"{self.name}: {entry.filename}: {left} of its bytes are missing")

    def _data_start(self, entry: zipfile.ZipInfo) -> int:
        """Where the content of a stored entry begins: after its local header."""
        window = FileWindow(self._file, 0, self._size, self.name)
        header = window.read(entry.header_offset, _LOCAL_HEADER)
        name_size, extra_size = struct.unpack("<26xHH", header)
        return entry.header_offset + _LOCAL_HEADER + int(name_size) + int(extra_size)

    def _damaged(self, error: Exception, entry: str = "the archive") -> DataLossError:
        if isinstance(error, DataLossError):
            return error
        return refused(f"{self.name}: {entry} is damaged or cut short: {error}")


def open_archive(path: str | os.PathLike[str], *, limits: Limits | None = None) -> ArchiveReader:
    """Open a model archive for reading; see `ArchiveReader`."""
    return ArchiveReader(path, limits=limits)


def write_archive(
    path: str | os.PathLike[str],
    config: dict[str, Any],
    metadata: dict[str, Any],
    weights: Mapping[str, Variables],
    *,
    names: Mapping[str, str] | None = None,
    assets: Mapping[str, bytes] | None = None,
) -> None:
    """Write a model archive that Keras 3 opens; it is there whole, or not at all.

    The same content gives the same bytes. On any error what stood at `path` stays as it was.

    Args:
        path: the `.keras` file.
        config: the content of config.json.
        metadata: the content of metadata.json.
        weights: `weights["layers/dense"]` are the variables of the object at that path, in order
            or by name; see `WeightsWriter.write`.
        names: the objects' own names, by path.
        assets: the content of the files under assets/, by name.

    Raises:
        InvalidArgumentError: the config cannot be JSON, or a path is not proper.
        DTypeError: an array is of a type that cannot be stored.
    """
    with _atomic_write(path) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr(_entry(METADATA), format_object(metadata, METADATA))
        archive.writestr(_entry(CONFIG), format_object(config, CONFIG))
        _add(archive, file, _entry(WEIGHTS), lay_out(weights, names))
        for name, content in (assets or {}).items():
            check_asset_name(name)
            archive.writestr(_entry(ASSETS + name), content)


def check_asset_name(name: str) -> None:
    """InvalidArgumentError for what cannot be the name of a file under assets/."""
    if not name.isprintable() or {"", ".", ".."} & set(name.split("/")) or "\\" in name:
        raise InvalidArgumentError(
            f"save: {name!r} cannot be the name of an asset",
            remedy="join non-empty printable names with single slashes",
        )


def _add(
    archive: zipfile.ZipFile, file: BinaryIO, entry: zipfile.ZipInfo, image: Hdf5Image
) -> None:
    """Write a large stored entry at the end of an archive, its checksum computed meanwhile."""
    entry.header_offset = archive.start_dir
    entry.file_size = entry.compress_size = image.size
    entry.CRC = 0  # known when the content is written
    used = archive.start_dir + len(entry.FileHeader()) + _EXTRA.size
    entry.extra = _EXTRA.pack(_PADDING, -used % ALIGNMENT) + bytes(-used % ALIGNMENT)
    checksum = Checksum(image.size, image.pieces)
    try:
        file.seek(entry.header_offset + len(entry.FileHeader()))
        image.write_to(file)
        entry.CRC = checksum.result()
    finally:
        checksum.stop()
    archive.start_dir = file.tell()
    file.seek(entry.header_offset)
    file.write(entry.FileHeader())
    archive.filelist.append(entry)
    archive.NameToInfo[entry.filename] = entry


def _entry(name: str) -> zipfile.ZipInfo:
    # A fixed date, the first that zip knows, so that equal content gives equal bytes.
    entry = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    entry.external_attr = (stat.S_IFREG | 0o644) << 16
    return entry


class _PiecewiseFile(BufferedReader):
    """A file that refuses to be read in pieces of more than `most` bytes."""

    def __init__(self, descriptor: int, most: int) -> None:
        super().__init__(FileIO(descriptor, closefd=False))
        self._most = most

    def read(self, size: int | None = -1, /) -> bytes:
        wanted = self._most + 1 if size is None or size < 0 else size
        piece = super().read(min(wanted, self._most + 1))
        if len(piece) > self._most:
            raise refused(f"a record is longer than {self._most} bytes")
        return piece
