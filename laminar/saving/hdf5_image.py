"""Writing HDF5 without copies: h5py lays the file out, and arrays go straight from memory to disk.

h5py is given a file that keeps what is written to it in pages, so that the room of a large array,
which is only set aside, costs nothing. The bytes of large arrays are put in their place when the
image is written out, in one pass from front to back; so the target may be a stream. This module
owns h5py, which only writes: files are read by `Hdf5File`.

State: `_pages[i]` are the bytes from `i * _PAGE` on, as far as h5py wrote any there; `_arrays` maps
the place of each large array to it. Places and pages with content do not overlap.
"""

from __future__ import annotations

import bisect
import io
from collections.abc import Iterator, Mapping
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from laminar.engine.errors import DTypeError
from laminar.engine.graph import bfloat16

from .window import ALIGNMENT

Array = npt.NDArray[Any]

_PAGE = 1 << 16
_LARGE = 1 << 14  # bytes; smaller arrays are copied by h5py


class Hdf5Image:
    """A HDF5 file in the making.

        with Hdf5Image() as image:
            image.group("layers/dense/vars", {"name": "dense"})
            image.array("layers/dense/vars/0", kernel)
        image.write_to(file)

    The same content gives the same bytes. Arrays must not change before the image is written.
    """

    def __init__(self) -> None:
        self._memory = _SparseFile()
        self._arrays: dict[int, Array] = {}

    def __enter__(self) -> Hdf5Image:
        # Heavy: loaded when a file is written.
        import h5py  # type: ignore[import-untyped]  # it has no type hints

        self._h5 = h5py
        self._file = h5py.File(
            self._memory,
            "w",
            libver="earliest",
            alignment_threshold=_LARGE,
            alignment_interval=ALIGNMENT,
        )
        self._room = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        self._room.set_layout(h5py.h5d.CONTIGUOUS)
        self._room.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        self._room.set_fill_time(h5py.h5d.FILL_TIME_NEVER)
        self._room.set_obj_track_times(False)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._file.close()

    def __contains__(self, path: str) -> bool:
        return path in self._file

    def group(self, path: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Make a group, and those around it; "" is the root."""
        group = self._file.require_group(path) if path else self._file
        for name, value in (attributes or {}).items():
            group.attrs[name] = value

    def array(self, path: str, value: npt.ArrayLike) -> None:
        """Put an array at a path.

        Raises:
            DTypeError: its elements are neither integers, floats, bool nor bfloat16.
        """
        array = np.asarray(value)
        is_bfloat16 = array.dtype == bfloat16.numpy
        if is_bfloat16:
            array = array.view("V2")
        elif array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
            raise DTypeError(
                f"{path} is of {array.dtype}; integers, floats, bool and bfloat16 can be stored"
            )
        if array.nbytes < _LARGE:
            made = self._file.create_dataset(path, data=array)
        else:
            parent, _, name = path.rpartition("/")
            group = self._file.require_group(parent) if parent else self._file
            made = self._set_aside(group, name, array)
        if is_bfloat16:
            made.attrs["dtype"] = "bfloat16"

    @property
    def size(self) -> int:
        """The bytes of the file, once the `with` block has ended."""
        return self._memory.size

    def pieces(self, begin: int, end: int) -> Iterator[memoryview]:
        """The bytes of the file from `begin` to `end`, once the `with` block has ended."""
        places = sorted(self._arrays)
        for place in places[max(0, bisect.bisect(places, begin) - 1) :]:
            array = self._arrays[place]
            last = place + array.nbytes
            if begin < last and place < end:
                yield from self._memory.pieces(begin, place)
                begin = max(begin, place)
                stop = min(end, last)
                yield array.reshape(-1).view(np.uint8).data[begin - place : stop - place]
                begin = stop
        yield from self._memory.pieces(begin, end)

    def write_to(self, target: BinaryIO) -> None:
        """Write the file, once the `with` block has ended."""
        for piece in self.pieces(0, self.size):
            target.write(piece)

    def _set_aside(self, group: Any, name: str, array: Array) -> Any:
        """Make a dataset whose elements `write_to` will write."""
        h5 = self._h5
        kind = h5.h5t.py_create(array.dtype, logical=True)
        space = h5.h5s.create_simple(array.shape)
        found = h5.h5d.create(group.id, name.encode("utf-8"), kind, space, dcpl=self._room)
        self._arrays[found.get_offset()] = np.ascontiguousarray(array)
        return h5.Dataset(found)


class _SparseFile(io.RawIOBase):
    """A file in memory of which only the pages that were written take room."""

    def __init__(self) -> None:
        super().__init__()
        self._pages: dict[int, bytearray] = {}
        self._at = 0
        self.size = 0

    def pieces(self, begin: int, end: int) -> Iterator[memoryview]:
        """The bytes from `begin` to `end`, page by page."""
        while begin < end:
            page, offset = divmod(begin, _PAGE)
            count = min(_PAGE - offset, end - begin)
            yield memoryview(self._pages.get(page, _EMPTY))[offset : offset + count]
            begin += count

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = offset + (0, self._at, self.size)[whence]
        return self._at

    def tell(self) -> int:
        return self._at

    def readinto(self, buffer: Any) -> int:
        target = memoryview(buffer).cast("B")
        count = 0
        for piece in self.pieces(self._at, min(self._at + len(target), self.size)):
            target[count : count + len(piece)] = piece
            count += len(piece)
        self._at += count
        return count

    def write(self, data: Any) -> int:
        source = memoryview(data).cast("B")
        done = 0
        while done < len(source):
            page, offset = divmod(self._at, _PAGE)
            count = min(_PAGE - offset, len(source) - done)
            content = self._pages.setdefault(page, bytearray(_PAGE))
            content[offset : offset + count] = source[done : done + count]
            self._at += count
            done += count
        self.size = max(self.size, self._at)
        return done

    def truncate(self, size: int | None = None) -> int:
        self.size = self._at if size is None else size
        return self.size


_EMPTY = bytes(_PAGE)
