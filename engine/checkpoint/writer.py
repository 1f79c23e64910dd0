"""Checkpoints written: the bytes of tensors in a data file, what they are in an index."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, BinaryIO

import numpy as np

from ..errors import InvalidArgumentError, LaminarError
from ..graph.dtypes import as_dtype, string
from ..io.atomic import atomic_write
from ..io.crc32c import Checksum, crc32c, fastest_crc32c, masked
from ..io.places import no_place, path_of
from ..io.reserving import begin_writing, reserve
from ..wire import varint
from .entries import Entry, Extents, entry_bytes, header_bytes, number_of, ranges
from .files import NEXT, data_path, folder_lock, index_path, roll_forward
from .ordered_code import slice_key
from .reader import CheckpointReader
from .table import write_table

_PIECE = 1 << 22  # bytes that are summed and written at a time: they stay in the cache


class Part:
    """A part of a tensor, to be stored beside its other parts.

    Args:
        array: the part.
        shape: of the whole tensor.
        extents: where the part stands in it.
    """

    def __init__(self, array: Any, shape: Sequence[int], extents: Extents) -> None:
        self.array = np.asarray(array)
        self.shape = tuple(shape)
        self.extents = extents
        inside = np.broadcast_to(np.empty((), bool), self.shape)[ranges(extents, self.shape)]
        if inside.shape != self.array.shape:
            raise InvalidArgumentError(
                f"a part of the shape {inside.shape} is to be kept, the value has "
                f"{self.array.shape}"
            )


def write_checkpoint(
    prefix: str | os.PathLike[str], tensors: Iterable[tuple[str, Any]], who: str = "checkpoint"
) -> None:
    """Write tensors as the checkpoint `prefix`, in the place of one that is there.

    It is there whole once this returns, and forced to the disk. Where anything fails, and where the
    process is killed, what stood there stays.

    Args:
        prefix: folder and first part of the names of the files.
        tensors: names and arrays, of any element type but handles; arrays of objects are of byte
            strings. A `Part` is one part of a tensor, whose other parts have the same name.
        who: for errors.

    Raises:
        InvalidArgumentError: a name is given twice, a value cannot be kept, or `prefix` is a
            folder.
        MissingFileError: the folder of the files is not there.
        PermissionDeniedError, ResourceExhaustedError: they cannot be written there.
    """
    path = path_of(who, prefix)
    if os.path.isdir(path) or not os.path.basename(path):
        raise InvalidArgumentError(
            f"{who}: {path!r} is a folder, expected the first part of the names of files",
            remedy=f"choose a prefix in it, such as {os.path.join(path, 'model')!r}",
        )
    if os.path.isdir(index_path(path)):
        raise InvalidArgumentError(
            f"{who}: {index_path(path)!r}, where the index belongs, is a folder",
            remedy="choose another prefix, or move the folder",
        )
    by_name: dict[str, list[Any]] = {}
    for name, value in tensors:
        known = by_name.setdefault(name, [])
        if known and not (isinstance(value, Part) and isinstance(known[0], Part)):
            raise InvalidArgumentError(f"{who}: two tensors are named {name!r}")
        known.append(value)
    try:
        _write(path, by_name)
    except OSError as cause:
        if isinstance(cause, LaminarError):
            raise
        raise no_place(f"{who}: {path} cannot be written", cause) from cause


def _write(prefix: str, by_name: Mapping[str, Sequence[Any]]) -> None:
    with ExitStack() as after, ExitStack() as stack:
        # Closed in the other order: the data are there before the index of them.
        index = stack.enter_context(atomic_write(index_path(prefix) + NEXT, durable=True))
        target = data_path(prefix, 0, 1) + NEXT
        data = stack.enter_context(atomic_write(target, durable=True))
        entries: dict[bytes, Entry] = {}
        size = sum(_bytes_of(value) for values in by_name.values() for value in values)
        reserve(data, size)
        extend = fastest_crc32c(size)
        # What is large stands first: most of it begins at a page then, see `_store`.
        for name in sorted(by_name, key=lambda n: (_bytes_of(by_name[n][0]) < _PIECE, n.encode())):
            _add(name, by_name[name], data, entries, extend)
        _write_index(index, 1, entries)
        after.enter_context(folder_lock(os.path.dirname(prefix)))
        roll_forward(prefix)  # what was left of another one
        after.callback(roll_forward, prefix, 1)


def _bytes_of(value: Any) -> int:
    """How many bytes of the file an array takes; of strings, it takes others."""
    found = np.asarray(value.array if isinstance(value, Part) else value)
    return 0 if found.dtype.hasobject else found.nbytes


def _write_index(file: BinaryIO, num_shards: int, entries: Mapping[bytes, Entry]) -> None:
    found = {key: entry_bytes(entry) for key, entry in entries.items()}
    write_table(file, [(b"", header_bytes(num_shards)), *sorted(found.items())])


def _add(
    name: str,
    values: Sequence[Any],
    data: BinaryIO,
    entries: dict[bytes, Entry],
    extend: Checksum,
) -> None:
    if not name:
        raise InvalidArgumentError("a tensor of a checkpoint needs a name")
    if not isinstance(values[0], Part):
        entries[name.encode()] = _store(name, np.asarray(values[0]), data, extend)
        return
    first = values[0]
    for part in values:
        if part.shape != first.shape or part.array.dtype != first.array.dtype:
            raise InvalidArgumentError(f"the parts of {name!r} are not of one tensor")
        key = slice_key(name, part.extents)
        if key in entries:
            raise InvalidArgumentError(f"a part of {name!r} is given twice")
        entries[key] = _store(name, part.array, data, extend)
    dtype = as_dtype(first.array.dtype)
    slices = tuple(part.extents for part in values)
    entries[name.encode()] = Entry(dtype, first.shape, slices=slices)


def _store(name: str, array: Any, data: BinaryIO, extend: Checksum) -> Entry:
    dtype = as_dtype(array.dtype)
    number_of(dtype)
    offset = data.tell()
    if dtype == string:
        checksum = _write_strings(name, array, data)
    else:
        if not array.dtype.isnative:
            array = array.astype(array.dtype.newbyteorder("="))
        checksum = 0
        # An array that is contiguous is written from where it is.
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        start = 0
        while start < raw.size:
            # Where pieces end at even places, the system caches the file in large pages, which a
            # reader maps four times as fast.
            stop = start + _PIECE - (offset + start) % _PIECE
            piece = raw[start:stop].data
            checksum = extend(piece, checksum)
            data.write(piece)
            if len(piece) == _PIECE:
                begin_writing(data, offset + start, _PIECE)
            start = stop
    return Entry(dtype, array.shape, 0, offset, data.tell() - offset, masked(checksum))


def _write_strings(name: str, array: Any, data: BinaryIO) -> int:
    """Lengths, their checksum, then the bytes of all; the checksum of all of it."""
    items = [item.encode() if isinstance(item, str) else item for item in array.ravel().tolist()]
    for item in items:
        if not isinstance(item, bytes):
            raise InvalidArgumentError(
                f"{name!r}: an array of objects is one of byte strings in a checkpoint, "
                f"it holds {item!r:.80}"
            )
    data.write(b"".join(varint(len(item)) for item in items))
    # The checksum takes lengths as numbers of four bytes, not as they are stored.
    forms = (struct.pack("<I" if len(item) < 1 << 32 else "<Q", len(item)) for item in items)
    checksum = crc32c(b"".join(forms))
    stored = struct.pack("<I", masked(checksum))
    data.write(stored)
    checksum = crc32c(stored, checksum)
    for item in items:
        data.write(item)
        checksum = crc32c(item, checksum)
    return checksum


def merge_checkpoints(
    sources: Sequence[str], prefix: str | os.PathLike[str], who: str = "checkpoint"
) -> None:
    """Make one checkpoint of several, each written by one device or task: their files are moved.

    Args:
        sources: prefixes; the folders of these files are removed once they are empty.
        prefix: of the checkpoint that becomes of them, in the same file system.
        who: for errors.

    Raises:
        InvalidArgumentError: two of them have a tensor of one name.
        DataLossError, MissingFileError: one of them is damaged or not there.
        PermissionDeniedError, ResourceExhaustedError: the place cannot be written to.
    """
    path = path_of(who, prefix)
    entries: dict[bytes, Entry] = {}
    shards: list[str] = []
    for source in sources:
        with CheckpointReader(source) as reader:
            for key, entry in reader.entries.items():
                known = entries.get(key)
                entry = _moved(entry, len(shards))
                if known is not None and not (known.slices and entry.slices):
                    raise InvalidArgumentError(f"{who}: two parts have a tensor {key.decode()!r}")
                if known is not None:
                    slices = known.slices + entry.slices
                    entry = Entry(entry.dtype, entry.shape, slices=slices)
                entries[key] = entry
            shards += [reader.data_path(i) for i in range(reader.num_shards)]
    try:
        with ExitStack() as after, atomic_write(index_path(path) + NEXT, durable=True) as index:
            _write_index(index, len(shards), entries)
            after.enter_context(folder_lock(os.path.dirname(path)))
            roll_forward(path)
            for i, shard in enumerate(shards):
                os.replace(shard, data_path(path, i, len(shards)) + NEXT)
            held = after.pop_all()
        with held:
            roll_forward(path, len(shards))
    except OSError as cause:
        if isinstance(cause, LaminarError):
            raise
        raise no_place(f"{who}: {path} cannot be written", cause) from cause
    for folder in {os.path.dirname(source) for source in sources}:
        if folder != os.path.dirname(path):
            shutil.rmtree(folder, ignore_errors=True)


def _moved(entry: Entry, by: int) -> Entry:
    if entry.slices:
        return entry
    shard = entry.shard + by
    return Entry(entry.dtype, entry.shape, shard, entry.offset, entry.size, entry.checksum)
