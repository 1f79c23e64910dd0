"""Checkpoints read: all that the files claim is verified before memory is taken for it."""

from __future__ import annotations

import math
import os
import struct
from collections.abc import Mapping, Sequence
from contextlib import suppress
from io import BufferedReader
from itertools import pairwise
from typing import Any

import numpy as np

from ..closing import Closing, open_regular
from ..errors import (
    AbortedError,
    DataLossError,
    InvalidArgumentError,
    MissingFileError,
    NotFoundError,
    PermissionDeniedError,
    UnimplementedError,
)
from ..graph.dtypes import DType, string
from ..io.crc32c import crc32c, masked
from ..io.places import path_of
from ..io.spans import Span, read_spans
from ..wire import Kind, Message
from .entries import Entry, Extents, ranges, read_entry, read_header
from .files import NEXT, data_path, index_path, newest
from .ordered_code import slice_key
from .table import read_table

_MOST_INDEX = 1 << 31  # bytes
_LINE = 64  # bytes of a line of the cache
_MOST_RENAMES = 4  # of files that are followed
_OTHER = "take the prefix of a checkpoint: the name of its .index file without that ending"
_KINDS = {"float32": "FLOAT", "float64": "DOUBLE", "float16": "HALF"}  # as TensorFlow names them
_LENGTHS = Kind("the lengths of strings in a checkpoint", "take another checkpoint")


def _opened_newest(path: str) -> BufferedReader:
    """A file under the name with the ending, else under its own: it may be renamed meanwhile."""
    with suppress(FileNotFoundError):
        return open_regular(path + NEXT)
    return open_regular(path)


class CheckpointReader(Closing):
    """The tensors of a checkpoint; a `with` block closes its files.

    Making it reads the index alone. It is not for several threads at once.

    Args:
        prefix: folder and first part of the names of the files.

    Attributes:
        prefix: as text.
        num_shards: the number of data files.
        entries: by key, what the index says: of each tensor under its name, and of parts of
            tensors under keys of their own.

    Raises:
        MissingFileError: there is no checkpoint of that prefix.
        DataLossError: the index is damaged, or none.
        UnimplementedError: it is of a later version.
        AbortedError: by what reads values, when the checkpoint is written anew meanwhile.

    Examples:
        >>> path = engine.Checkpoint(v=laminar.Variable([1.0, 2.0])).save("run/ckpt")
        >>> with engine.CheckpointReader(path) as reader:
        ...     reader.get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE")
        array([1., 2.], dtype=float32)
    """

    def __init__(self, prefix: str | os.PathLike[str]) -> None:
        self.prefix = path_of("checkpoint", prefix)
        self._files: dict[int, BufferedReader] = {}
        self._load()

    def _load(self) -> None:
        path = index_path(self.prefix)
        try:
            with _opened_newest(path) as file:
                status = os.fstat(file.fileno())
                if status.st_size > _MOST_INDEX:
                    raise DataLossError(f"{path}: an index of {status.st_size} bytes")
                data = file.read()
        except FileNotFoundError as cause:
            kind = "a folder" if os.path.isdir(self.prefix) else "no checkpoint"
            raise MissingFileError(
                f"{self.prefix} is {kind}: there is no {path}", remedy=_OTHER
            ) from cause
        except IsADirectoryError as cause:
            raise DataLossError(f"{path} is a folder, not an index", remedy=_OTHER) from cause
        except OSError as cause:
            raise PermissionDeniedError(f"{path} cannot be read: {cause.strerror}") from cause
        self._identity = status.st_dev, status.st_ino
        items = read_table(data, path)
        if not items or items[0][0] != b"":
            raise DataLossError(f"{path} has no header", remedy=_OTHER)
        self.num_shards = read_header(items[0][1], path)
        self.entries = {key: read_entry(value) for key, value in items[1:]}
        self._check_places()

    def _check_places(self) -> None:
        """No two tensors share bytes: reading all takes no more memory than the files have."""
        places = []
        for key, entry in self.entries.items():
            if entry.shard >= self.num_shards:
                raise self._damaged(f"{key!r:.80} is in data file {entry.shard}")
            if entry.size and not entry.slices:
                places.append((entry.shard, entry.offset, entry.size))
        places.sort()
        for (shard, offset, size), (other, begin, _) in pairwise(places):
            if shard == other and begin < offset + size:
                raise self._damaged(f"two tensors share byte {begin} of data file {shard}")

    # What there is

    def variables(self) -> dict[str, tuple[tuple[int, ...], DType | None]]:
        """Shape and dtype of each tensor by its name, sorted; None for a type unknown here."""
        found = {}
        for key, entry in self.entries.items():
            if key[0]:  # keys of parts begin with a zero
                found[key.decode("utf-8", "replace")] = entry.shape, entry.dtype
        return dict(sorted(found.items()))

    def get_variable_to_shape_map(self) -> dict[str, list[int]]:
        """The shape of each tensor, as a list."""
        return {name: list(shape) for name, (shape, _) in self.variables().items()}

    def get_variable_to_dtype_map(self) -> dict[str, DType | None]:
        """The element type of each tensor."""
        return {name: dtype for name, (_, dtype) in self.variables().items()}

    def debug_string(self) -> bytes:
        """A line for each tensor: its name, type and shape."""
        lines = []
        for name, (shape, dtype) in self.variables().items():
            kind = "UNKNOWN" if dtype is None else _KINDS.get(dtype, dtype.upper())
            lines.append(f"{name} (DT_{kind}) [{','.join(map(str, shape))}]\n")
        return "".join(lines).encode()

    def has_tensor(self, name: str) -> bool:
        """Whether there is a tensor of that name."""
        return name.encode() in self.entries

    __contains__ = has_tensor

    # Values

    def get_tensor(self, name: str) -> Any:
        """The value of a tensor; see `read`."""
        return self.read(name)

    def read(self, name: str, part: Extents | None = None) -> Any:
        """The value of a tensor, or of a part of it: an array, of objects for byte strings.

        Args:
            part: where the part begins along each axis, and its length.

        Raises:
            NotFoundError: there is no tensor of that name.
            DataLossError: its bytes are damaged or missing.
            UnimplementedError: laminar does not have its type.
            InvalidArgumentError: the part reaches beyond the tensor.
        """
        return self.read_all([(name, part)])[0]

    def read_all(self, wanted: Sequence[tuple[str, Extents | None]]) -> list[Any]:
        """The values of tensors and of parts of tensors, by their names; see `read`.

        They are read side by side, which is quicker than one after the other.
        """
        pieces: dict[tuple[str, Extents | None], Entry] = {}  # what is stored, by what it is
        for name, part in wanted:
            entry = self.entry(name)
            if part is not None:
                ranges(part, entry.shape)
            for extents in (part,) if part in entry.slices else entry.slices or (None,):
                stored = entry if extents is None else self._slice(name, entry, extents)
                pieces[name, extents] = stored
            if entry.slices and part not in entry.slices:
                self._check_parts(name, entry)
        values = self._values(pieces)
        found: list[Any] = []
        given: set[tuple[str, Extents | None]] = set()
        for key in wanted:
            value = self._joined(*key, values)
            found.append(value.copy() if key in given else value)  # each is its owner's alone
            given.add(key)
        return found

    def _joined(
        self, name: str, part: Extents | None, values: Mapping[tuple[str, Extents | None], Any]
    ) -> Any:
        """A tensor, or a part of it, from what was read."""
        entry = self.entry(name)
        if (name, part) in values:
            return values[name, part]
        whole = self._put_together(name, entry, values) if entry.slices else values[name, None]
        # A view would keep all of it in memory.
        return whole if part is None else whole[ranges(part, entry.shape)].copy()

    def entry(self, name: str) -> Entry:
        """What the index says of a tensor; NotFoundError if there is none of that name."""
        try:
            return self.entries[name.encode()]
        except KeyError:
            raise NotFoundError(
                f"{self.prefix} has no tensor {name!r}, it has "
                f"{', '.join([*self.variables()][:8]) or 'none'}{self._more()}",
                remedy="list_variables(prefix) tells all that it has",
            ) from None

    def _more(self) -> str:
        more = len(self.variables()) - 8
        return f" and {more} more" if more > 0 else ""

    def _slice(self, name: str, entry: Entry, extents: Extents) -> Entry:
        found = self.entries.get(slice_key(name, extents))
        shape = tuple(r.stop - r.start for r in self._inside(name, entry, extents))
        if found is None or found.slices or (found.shape, found.dtype) != (shape, entry.dtype):
            raise self._damaged(f"a part of {name!r} is not there")
        return found

    def _inside(self, name: str, entry: Entry, extents: Extents) -> tuple[slice, ...]:
        try:
            return ranges(extents, entry.shape)
        except InvalidArgumentError as cause:
            raise self._damaged(f"{name!r}: {cause.message}") from cause

    def _check_parts(self, name: str, entry: Entry) -> None:
        """No memory is taken for more than the parts have."""
        parts = [self._slice(name, entry, extents) for extents in entry.slices]
        stored = sum(math.prod(part.shape) for part in parts)
        if stored != math.prod(entry.shape):
            raise self._damaged(
                f"the parts of {name!r} have {stored} elements, it has {math.prod(entry.shape)}"
            )

    def _put_together(
        self, name: str, entry: Entry, values: Mapping[tuple[str, Extents | None], Any]
    ) -> Any:
        """The value of a tensor that is stored in parts."""
        whole = np.empty(entry.shape, self._known(name, entry).numpy)
        seen = np.zeros(entry.shape, bool)
        for extents in entry.slices:
            place = ranges(extents, entry.shape)
            whole[place] = values[name, extents]
            seen[place] = True
        if not seen.all():
            raise self._damaged(f"parts of {name!r} are missing")
        return whole

    def _known(self, name: str, entry: Entry) -> DType:
        if entry.dtype is None:
            raise UnimplementedError(
                f"{self.prefix}: {name!r} is of an element type that laminar does not have"
            )
        return entry.dtype

    def _values(
        self, pieces: Mapping[tuple[str, Extents | None], Entry]
    ) -> dict[tuple[str, Extents | None], Any]:
        """What is stored as it is."""
        found: dict[tuple[str, Extents | None], Any] = {}
        spans = {}
        for key, entry in pieces.items():
            name, _ = key
            dtype = self._known(name, entry)
            count = math.prod(entry.shape)
            if dtype == string:
                found[key] = self._strings(name, entry, count)
                continue
            if entry.size != count * dtype.size:
                raise self._damaged(f"{name!r} of {count} elements has {entry.size} bytes")
            file = self._file(name, entry)
            # Native code reads to, and computes on, what begins at a line of the cache.
            memory = np.empty(entry.size + _LINE, np.uint8)
            start = -memory.ctypes.data % _LINE
            raw = memory[start : start + entry.size]
            found[key] = raw.view(dtype.numpy).reshape(entry.shape)
            spans[key] = Span(file, entry.offset, raw.data)
        try:
            sums = read_spans([*spans.values()])
        except OSError as cause:
            raise DataLossError(f"{self.prefix} cannot be read: {cause.strerror}") from cause
        for key, checksum in zip(spans, sums, strict=True):
            if checksum is None:
                raise self._damaged(f"the bytes of {key[0]!r} end too early")
            self._verify(key[0], pieces[key], checksum)
        return found

    def _strings(self, name: str, entry: Entry, count: int) -> Any:
        if entry.size < count + 4:
            raise self._damaged(f"{name!r} of {count} strings has {entry.size} bytes")
        file = self._file(name, entry)
        file.seek(entry.offset)
        data = file.read(entry.size)
        lengths = Message(data, _LENGTHS)
        sizes = [lengths.varint() for _ in range(count)]
        start = lengths.position
        forms = (struct.pack("<I" if n < 1 << 32 else "<Q", n) for n in sizes)
        checksum = crc32c(b"".join(forms))
        stored = data[start : start + 4]
        if stored != struct.pack("<I", masked(checksum)) or sum(sizes) != len(data) - start - 4:
            raise self._damaged(f"the lengths of the strings of {name!r} are others")
        self._verify(name, entry, crc32c(data[start:], checksum))
        found = np.empty(count, object)
        start += 4
        for i, size in enumerate(sizes):
            found[i] = data[start : start + size]
            start += size
        return found.reshape(entry.shape)

    def _verify(self, name: str, entry: Entry, checksum: int) -> None:
        if masked(checksum) != entry.checksum:
            raise self._damaged(
                f"the checksum of {name!r} is another, in {self.data_path(entry.shard)}"
            )

    def data_path(self, shard: int) -> str:
        """The name of a data file."""
        path = data_path(self.prefix, shard, self.num_shards)
        return newest(path, self._is_current(index_path(self.prefix) + NEXT))

    def _file(self, name: str, entry: Entry) -> BufferedReader:
        """The data file of an entry; all of the entry is in it."""
        file = self._files.get(entry.shard)
        if file is None:
            file = self._files[entry.shard] = self._open(name, entry.shard)
        end = os.fstat(file.fileno()).st_size
        if entry.offset > end - entry.size:
            raise self._damaged(
                f"{self.data_path(entry.shard)} has {end} bytes, {name!r} stands at {entry.offset} "
                f"to {entry.offset + entry.size}"
            )
        return file

    def _open(self, name: str, shard: int) -> BufferedReader:
        """A data file that belongs to the index that has been read.

        Files of a checkpoint that is written meanwhile stand under the same names, its index last:
        while ours is the newest, data files with its ending, or else those without, are ours.
        """
        path = index_path(self.prefix)
        for _ in range(_MOST_RENAMES):
            is_next = self._is_current(path + NEXT)
            target = newest(data_path(self.prefix, shard, self.num_shards), is_next)
            file = None
            missing: OSError | None = None
            try:
                file = open_regular(target)
            except FileNotFoundError as cause:
                missing = cause
            except OSError as cause:
                raise PermissionDeniedError(f"{target} cannot be read: {cause.strerror}") from cause
            if self._is_current(path + NEXT if is_next else newest(path, is_next=True)):
                if file is not None:
                    return file
                if not is_next:
                    raise self._damaged(f"{target}, which has {name!r}, is not there") from missing
            if file is not None:
                file.close()
            if not is_next:
                break
        raise AbortedError(
            f"the checkpoint {self.prefix} was written anew while it was read",
            remedy="read it again",
        )

    def _is_current(self, path: str) -> bool:
        """Whether a file is the index that has been read."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self._identity

    def _damaged(self, what: str) -> DataLossError:
        return DataLossError(
            f"the checkpoint {self.prefix} is damaged: {what}",
            remedy="take another checkpoint, such as the one before it",
        )

    def open_all(self) -> None:
        """Open the data files, so that they can be read though they are removed."""
        for key, entry in self.entries.items():
            if not entry.slices:
                self._file(repr(key), entry)

    def close(self) -> None:
        """Close the files; a second call does nothing."""
        for file in self._files.values():
            file.close()
        self._files = {}
