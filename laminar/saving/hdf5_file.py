"""Reading HDF5 files that nobody vouches for: groups, arrays and attributes of the classic layout.

The reader is laminar's own, on plain bytes, because the HDF5 library is not made for hostile input:
flipping single bits of a good file makes it crash the process or loop for ever. Here every address,
size and count is checked against the file and `Limits` before it is used; each record is visited
once, so a loop in the file ends the reading; and arrays are read only when they are asked for.

It reads what HDF5 writes by default and Keras therefore writes (superblock 0, version 1 object
headers, symbol-table groups); whatever points out of the file or could run code (external and soft
links, external storage, virtual datasets, plug-in filters, references) is refused. Source: "HDF5
File Format Specification Version 3.0", The HDF Group, sections II, III and IV.

State: `groups[path]` and `arrays[path]` hold all objects of the file by their path ("" is the
root); `_work` counts the bytes of records read so far, and never passes `_most_work`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from .hdf5_format import (
    UNDEFINED,
    Attribute,
    Chunked,
    Compact,
    Contiguous,
    ElementType,
    Fields,
    Filter,
    Kind,
    Layout,
    decode_attribute,
    decode_filters,
    decode_layout,
    decode_shape,
    decode_type,
    plain_attribute,
    text,
    undo_filters,
)
from .limits import Limits, beyond, refused
from .window import Window, check_range

_SIGNATURE = b"\x89HDF\r\n\x1a\n"
_WORK_PER_OBJECT = 512  # bytes of records that an object may need on average
_SMALL = 1 << 20  # an array of this size is no danger, however well it was compressed

_SHAPE, _LINK_INFO, _TYPE, _LINK, _EXTERNAL, _LAYOUT, _FILTERS = 1, 2, 3, 6, 7, 8, 11
_ATTRIBUTE, _CONTINUATION, _SYMBOLS, _ATTRIBUTE_INFO = 12, 16, 17, 21
_ONCE = (_SHAPE, _LINK_INFO, _TYPE, _EXTERNAL, _LAYOUT, _FILTERS, _SYMBOLS, _ATTRIBUTE_INFO)
_SOFT_LINK, _EXTERNAL_LINK = 1, 64


@dataclass(frozen=True)
class _Chunk:
    offset: tuple[int, ...]
    address: int
    size: int
    skipped_filters: int


@dataclass(frozen=True)
class StoredArray:
    """What the header says of one array."""

    path: str
    element: ElementType
    shape: tuple[int, ...]
    attributes: dict[str, Attribute]
    layout: Layout
    filters: tuple[Filter, ...]
    chunks: tuple[_Chunk, ...]

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.element.dtype.itemsize


@dataclass
class _Messages:
    """The messages of one object header that matter: one of each kind, but many attributes."""

    single: dict[int, bytes] = field(default_factory=dict)
    attributes: list[bytes] = field(default_factory=list)


class Hdf5File:
    """All objects of an HDF5 file, checked; `read` gives the elements of an array.

    Args:
        window: the bytes of the file.
        limits: what the file may ask for.

    Raises:
        DataLossError: the file is damaged, hostile, of a newer layout, or beyond the limits.
    """

    def __init__(self, window: Window, limits: Limits) -> None:
        self.groups: dict[str, dict[str, Attribute]] = {}
        self.arrays: dict[str, StoredArray] = {}
        self._window = window
        self._limits = limits
        self._work = 0
        self._most_work = _WORK_PER_OBJECT * limits.max_objects
        self._text_bytes = 0
        self._visited: set[int] = set()
        self._heaps: dict[int, dict[int, tuple[int, int]]] = {}
        self._walk(self._root())
        self._check_sizes()

    def read(self, path: str) -> npt.NDArray[np.generic]:
        """The elements of the array at `path`, as they are stored (text: objects of type str)."""
        array = self.arrays[path]
        owner = self._owner(path)
        if isinstance(array.layout, Contiguous) and array.nbytes:
            mapped = self._window.mapped(array.layout.address, array.nbytes)
            if mapped is not None:
                raw = np.frombuffer(mapped, np.uint8)
                return self._elements(array.element, array.shape, raw, owner)
        raw = np.empty(array.nbytes, np.uint8)
        if isinstance(array.layout, Compact):
            raw[:] = np.frombuffer(array.layout.data, np.uint8)
        elif isinstance(array.layout, Contiguous):
            if array.nbytes:
                self._window.read_into(array.layout.address, raw.data)
        else:
            self._read_chunks(array, array.layout, raw)
        return self._elements(array.element, array.shape, raw, owner)

    def _owner(self, path: str) -> str:
        return f"{self._window.name}: {path or 'the root group'}"

    def _record(self, offset: int, count: int) -> bytes:
        check_range(self._window, offset, count)
        self._work += 16 + count
        if self._work > self._most_work:
            raise beyond(
                f"{self._window.name}: it has more records than {self._limits.max_objects} "
                "objects need",
                "max_objects",
            )
        return self._window.read(offset, count)

    def _visit(self, address: int, owner: str, what: str) -> None:
        if address in self._visited:
            raise refused(
                f"{owner}: {what} at {address} is used twice: a hard link to another object, "
                "or a loop"
            )
        self._visited.add(address)

    def _root(self) -> int:
        """The address of the root group's header, from the superblock (section II.A)."""
        name = self._window.name
        if self._window.read(0, min(8, self._window.size)) != _SIGNATURE:
            raise refused(f"{name}: it is not an HDF5 file, or its beginning is damaged")
        fields = Fields(self._record(0, 96), name)
        fields.take(8)
        version, _, _, _, _, offset_size, length_size, _ = fields.unpack("8B")
        if version != 0 or (offset_size, length_size) != (8, 8):
            fields.refuse(
                f"it is an HDF5 file of layout {version} with addresses of {offset_size} bytes; "
                "the layout that h5py writes by default (libver='earliest': 0, 8) is read"
            )
        fields.take(8)
        base, _, end, driver = fields.unpack("4Q")
        _, root = fields.unpack("QQ")
        if base != 0 or driver != UNDEFINED:
            fields.refuse("it is a part of an HDF5 file that is made of several files")
        if end > self._window.size:
            fields.refuse(f"it is cut short: {end} bytes were written, {self._window.size} remain")
        return root

    def _walk(self, root: int) -> None:
        todo = [("", root, 0)]
        while todo:
            path, address, depth = todo.pop()
            owner = self._owner(path)
            if depth > self._limits.max_depth:
                raise beyond(f"{owner}: its groups are nested too deep", "max_depth")
            messages = self._header(address, owner)
            attributes = self._attributes(messages.attributes, owner)
            if _SYMBOLS in messages.single:
                self.groups[path] = attributes
                members = self._members(Fields(messages.single[_SYMBOLS], owner))
                prefix = path + "/" if path else ""
                children = [(prefix + name, place, depth + 1) for name, place in members]
                todo.extend(reversed(children))
            else:
                self.arrays[path] = self._array(path, messages.single, attributes)

    # Object headers (section IV.A.1.a)

    def _header(self, address: int, owner: str) -> _Messages:
        self._visit(address, owner, "an object")
        head = self._record(address, 16)
        if head[:4] == b"OHDR":
            raise refused(
                f"{owner}: it is stored in the newer layout of HDF5 (libver other than 'earliest')"
            )
        version, count, size = struct.unpack("<BxHxxxxIxxxx", head)
        if version != 1:
            raise refused(f"{owner}: no object header stands at {address}")
        found = _Messages()
        blocks = [(address + 16, size)]
        for place, length in blocks:
            self._visit(place, owner, "a block of a header")
            fields = Fields(self._record(place, length), owner)
            while count and fields.at + 8 <= length:
                count -= 1
                kind, message_size, flags = fields.unpack("HHBxxx")
                body = fields.take(message_size)
                self._work += 16
                if kind == _CONTINUATION:
                    offset, block_size = Fields(body, owner).unpack("QQ")
                    blocks.append((offset, block_size))
                else:
                    self._keep(found, kind, flags, body, owner)
        self._refuse_links(found, owner)
        return found

    def _keep(self, found: _Messages, kind: int, flags: int, body: bytes, owner: str) -> None:
        if kind == _LINK:
            self._refuse_link(body, owner)
        if kind not in (*_ONCE, _ATTRIBUTE):
            return
        if flags & 2:
            raise refused(
                f"{owner}: its type, shape or attribute stands elsewhere in the file "
                "(a committed type or shared message)"
            )
        if kind == _ATTRIBUTE:
            found.attributes.append(body)
        elif kind in found.single:
            raise refused(f"{owner}: its header has two messages of the kind {kind}")
        else:
            found.single[kind] = body

    def _refuse_links(self, found: _Messages, owner: str) -> None:
        if _LINK_INFO in found.single:
            raise refused(f"{owner}: it is a group of the newer layout of HDF5, which is not read")
        if _ATTRIBUTE_INFO in found.single:
            _, flags = Fields(found.single[_ATTRIBUTE_INFO], owner).unpack("BB")
            fields = Fields(found.single[_ATTRIBUTE_INFO], owner)
            fields.take(4 if flags & 1 else 2)
            if fields.unpack("Q") != (UNDEFINED,):
                fields.refuse("its attributes are stored in the newer layout of HDF5")

    def _refuse_link(self, body: bytes, owner: str) -> None:
        fields = Fields(body, owner)
        _, flags = fields.unpack("BB")
        (kind,) = fields.unpack("B") if flags & 8 else (0,)
        label = {_SOFT_LINK: "a soft link", _EXTERNAL_LINK: "an external link"}.get(
            kind, "a link of the newer layout of HDF5"
        )
        fields.refuse(f"it holds {label}; only groups and arrays of the file itself are read")

    # Groups (sections III.A.1, III.B, III.C, III.D)

    def _members(self, symbols: Fields) -> Iterator[tuple[str, int]]:
        """The names and header addresses of a group's objects, in the order of their names."""
        owner = symbols.owner
        tree, heap = symbols.unpack("QQ")
        fields = Fields(self._record(heap, 32), owner)
        if fields.take(8) != b"HEAP\0\0\0\0":
            fields.refuse(f"no names of a group stand at {heap}")
        size, _, place = fields.unpack("3Q")
        names = self._record(place, size)
        for leaf, _ in self._leaves(tree, 0, 8, owner):
            self._visit(leaf, owner, "a list of names")
            head = Fields(self._record(leaf, 8), owner)
            if head.take(4) != b"SNOD":
                head.refuse(f"no list of names stands at {leaf}")
            (count,) = head.unpack("xxH")
            entries = Fields(self._record(leaf + 8, 40 * count), owner)
            for _ in range(count):
                offset, address, cached, _, _, _ = entries.unpack("QQIIQQ")
                name = _name(names, offset, owner)
                if cached == 2:
                    entries.refuse(f"{name!r} is a soft link; only real objects are read")
                yield name, address

    def _leaves(
        self, tree: int, kind: int, key_size: int, owner: str
    ) -> Iterator[tuple[int, bytes]]:
        """The children of a B-tree's lowest nodes, each with the key before it."""
        todo: list[tuple[int, int | None]] = [(tree, None)]
        while todo:
            address, expected_level = todo.pop()
            self._visit(address, owner, "a node of an index")
            head = Fields(self._record(address, 24), owner)
            if head.take(4) != b"TREE":
                head.refuse(f"no index stands at {address}")
            found_kind, level, count = head.unpack("BBH")
            if found_kind != kind or expected_level not in (None, level):
                head.refuse(f"the index at {address} is of another kind or level")
            step = key_size + 8
            body = self._record(address + 24, step * count + key_size)
            keys = [body[i * step : i * step + key_size] for i in range(count)]
            children = [
                int.from_bytes(body[i * step + key_size : (i + 1) * step], "little")
                for i in range(count)
            ]
            if level == 0:
                yield from zip(children, keys, strict=True)
            else:
                todo.extend((child, level - 1) for child in reversed(children))

    # Arrays

    def _array(
        self, path: str, messages: dict[int, bytes], attributes: dict[str, Attribute]
    ) -> StoredArray:
        owner = self._owner(path)
        if _EXTERNAL in messages:
            raise refused(f"{owner}: its data are stored in another file (external storage)")
        if _LAYOUT not in messages and _TYPE in messages:
            raise refused(f"{owner}: it is a committed type, not a group or an array")
        if not {_SHAPE, _TYPE, _LAYOUT} <= messages.keys():
            raise refused(f"{owner}: it is neither a group nor an array")
        layout = decode_layout(Fields(messages[_LAYOUT], owner))
        element = decode_type(Fields(messages[_TYPE], owner))
        shape = decode_shape(Fields(messages[_SHAPE], owner))
        filters = decode_filters(Fields(messages[_FILTERS], owner)) if _FILTERS in messages else ()
        chunks: tuple[_Chunk, ...] = ()
        if isinstance(layout, Chunked):
            if len(layout.chunk) != len(shape) or layout.itemsize != element.dtype.itemsize:
                raise refused(f"{owner}: its chunks {layout.chunk} do not fit its shape {shape}")
            chunks = tuple(self._chunks(layout, shape, owner))
        return StoredArray(path, element, shape, attributes, layout, filters, chunks)

    def _chunks(self, layout: Chunked, shape: tuple[int, ...], owner: str) -> Iterator[_Chunk]:
        counts = [-(-axis // chunk) for axis, chunk in zip(shape, layout.chunk, strict=True)]
        expected = math.prod(counts)
        most = 2 * math.prod(layout.chunk) * layout.itemsize + 64
        rank = len(shape)
        seen = set()
        leaves = (
            [] if layout.tree == UNDEFINED else self._leaves(layout.tree, 1, 16 + 8 * rank, owner)
        )
        for address, key in leaves:
            size, skipped, *offset = struct.unpack(f"<II{rank + 1}Q", key)
            place = tuple(offset[:-1])
            fits = all(
                at % chunk == 0 and at < axis
                for at, chunk, axis in zip(place, layout.chunk, shape, strict=True)
            )
            if not fits or place in seen or size > most:
                raise refused(f"{owner}: a chunk of {size} bytes at {place} does not belong to it")
            seen.add(place)
            yield _Chunk(place, address, size, skipped)
        if len(seen) != expected:
            raise refused(f"{owner}: it has {len(seen)} of {expected} chunks: not all was written")

    def _check_sizes(self) -> None:
        """Refuse arrays that are not all there, that overlap, or that grow beyond the limits."""
        total = stored = 0
        for array in self.arrays.values():
            size, own = self._sizes(array)
            if size > max(_SMALL, self._limits.max_expansion * own):
                raise beyond(
                    f"{self._owner(array.path)}: {own} stored bytes claim to be {size}",
                    "max_expansion",
                )
            total += size
            stored += own
        if total > self._limits.max_bytes:
            raise beyond(
                f"{self._window.name}: its arrays have more than {self._limits.max_bytes} bytes",
                "max_bytes",
            )
        if stored > self._window.size:
            raise refused(
                f"{self._window.name}: its arrays overlap: {stored} bytes stored "
                f"in a file of {self._window.size}"
            )

    def _sizes(self, array: StoredArray) -> tuple[int, int]:
        """The bytes that reading an array takes, and the bytes it is stored in."""
        layout, owner = array.layout, self._owner(array.path)
        if isinstance(layout, Chunked):
            size = math.prod(layout.chunk) * layout.itemsize * len(array.chunks)
            return size, sum(chunk.size for chunk in array.chunks)
        own = len(layout.data) if isinstance(layout, Compact) else layout.size
        if own != array.nbytes:
            raise refused(
                f"{owner}: its shape {array.shape} needs {array.nbytes} bytes, but {own} are stored"
            )
        if isinstance(layout, Contiguous) and own:
            if layout.address == UNDEFINED:
                raise refused(f"{owner}: it was never written")
            if layout.address + own > self._window.size:
                raise refused(f"{owner}: its data stand outside of the file")
        return own, own

    def _read_chunks(self, array: StoredArray, layout: Chunked, raw: npt.NDArray[np.uint8]) -> None:
        owner = self._owner(array.path)
        itemsize = array.element.dtype.itemsize
        target = raw.reshape(*array.shape, itemsize)
        shape = (*layout.chunk, itemsize)
        for chunk in array.chunks:
            data = undo_filters(
                self._window.read(chunk.address, chunk.size),
                array.filters,
                chunk.skipped_filters,
                math.prod(shape),
                owner,
            )
            ends = [
                min(at + step, axis)
                for at, step, axis in zip(chunk.offset, layout.chunk, array.shape, strict=True)
            ]
            inside = tuple(slice(end - at) for at, end in zip(chunk.offset, ends, strict=True))
            outside = tuple(map(slice, chunk.offset, ends))
            target[outside] = data.reshape(shape)[inside]

    # Values

    def _attributes(self, bodies: list[bytes], owner: str) -> dict[str, Attribute]:
        attributes: dict[str, Attribute] = {}
        for body in bodies:
            name, element, shape, data = decode_attribute(Fields(body, owner))
            if name in attributes:
                raise refused(f"{owner}: the attribute {name[:100]!r} stands twice")
            values = self._elements(element, shape, np.frombuffer(data, np.uint8), owner)
            attributes[name] = plain_attribute(element.kind, values, owner)
            self._text_bytes += len(data)
            if element.kind is Kind.STRING:
                self._text_bytes += sum(len(item) for item in values.ravel().tolist())
            self._check_text(self._text_bytes)
        return attributes

    def _elements(
        self,
        element: ElementType,
        shape: tuple[int, ...],
        raw: npt.NDArray[np.uint8],
        owner: str,
    ) -> npt.NDArray[np.generic]:
        if element.kind is Kind.STRING:
            return self._strings(raw.tobytes(), owner).reshape(shape)
        values: npt.NDArray[np.generic] = raw.view(element.dtype).reshape(shape)
        if element.kind is Kind.BOOL:
            return np.asarray(values != 0)
        native: npt.NDArray[np.generic] = values.astype(element.dtype.newbyteorder("="), copy=False)
        return native

    def _strings(self, references: bytes, owner: str) -> npt.NDArray[np.generic]:
        """The texts that 16-byte references into global heaps stand for (section III.E)."""
        fields = Fields(references, owner)
        texts: list[str] = []
        total = 0
        while fields.at < len(references):
            length, address, index = fields.unpack("IQI")
            if length == 0:
                texts.append("")
                continue
            place, size = self._heap(address, owner).get(index, (0, 0))
            if length > size:
                fields.refuse(f"a text of {length} bytes is not where it should be")
            total += length
            self._check_text(total)
            texts.append(text(self._window.read(place, length), owner))
        return np.array(texts, dtype=object)

    def _heap(self, address: int, owner: str) -> dict[int, tuple[int, int]]:
        """Where the objects of a global heap stand: index -> (place, size)."""
        if address in self._heaps:
            return self._heaps[address]
        head = Fields(self._record(address, 16), owner)
        if head.take(8) != b"GCOL\1\0\0\0":
            head.refuse(f"no texts stand at {address}")
        (size,) = head.unpack("Q")
        objects: dict[int, tuple[int, int]] = {}
        at, end = address + 16, address + size
        while at + 16 <= end:
            index, length = struct.unpack("<HxxxxxxQ", self._record(at, 16))
            if index == 0:  # what is left of the heap is free
                break
            objects[index] = (at + 16, length)
            at += 16 + length + -length % 8
        self._heaps[address] = objects
        return objects

    def _check_text(self, count: int) -> None:
        if count > self._limits.max_text_bytes:
            raise beyond(
                f"{self._window.name}: its attributes and texts have more than "
                f"{self._limits.max_text_bytes} bytes",
                "max_text_bytes",
            )


def _name(names: bytes, offset: int, owner: str) -> str:
    end = names.find(b"\0", offset)
    if end < 0:
        raise refused(f"{owner}: the name of an object stands outside of its list")
    name = text(names[offset:end], owner)
    if name in ("", ".", "..") or "/" in name or not name.isprintable():
        raise refused(f"{owner}: an object has the name {name[:100]!r}")
    return name
