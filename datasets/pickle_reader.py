"""Pickle streams read as data: an interpreter that can build nothing but plain values.

Two of the field's classic files are pickles (CIFAR's batches, the word lists of IMDB and Reuters).
Unpickling calls whatever the stream names. This reader never unpickles: it decodes a closed set of
opcodes itself and makes None, bool, int, float, str, bytes, list, tuple, dict and NumPy arrays of
numbers or of such values. The five globals that a pickled array consists of are constants here, not
things to import. Everything else is refused with DataLossError, as are streams that would grow out
of proportion: no container is reached through the memo, so a value is a tree whose size is bounded
by the length of the stream.

Opcodes: CPython, Lib/pickletools.py. Arrays: NumPy, `ndarray.__reduce__` and `__setstate__`.
"""

from __future__ import annotations

import enum
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass
from math import prod
from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import DataLossError

MAX_STREAM_BYTES: Final = 1 << 29
MAX_VALUES: Final = 1 << 25
MAX_CONTAINERS: Final = 1 << 20
MAX_MEMO: Final = 1 << 20
MAX_DEPTH: Final = 16

_ATOMS: Final = frozenset({type(None), bool, int, float, str, bytes})
_NUMBERS: Final = frozenset(
    {"b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8"}
)
_OBJECTS: Final = frozenset({"O", "O4", "O8"})

# The three short integer opcodes, which are nearly all of a word list, are decoded by runs.
# Possessive and bounded: the match keeps no state to come back to.
_INT: Final = re.compile(rb"K.|M..|J....", re.DOTALL)
_INT_RUN: Final = re.compile(rb"(?:K.|M..|J....){1,4096}+", re.DOTALL)
_INT_OPCODES: Final = frozenset(b"KMJ")


class _Part(enum.Enum):
    """What a pickled array is made of, before it is one."""

    RECONSTRUCT = "numpy.core.multiarray._reconstruct"
    NDARRAY = "numpy.ndarray"
    DTYPE = "numpy.dtype"
    ENCODE = "_codecs.encode"
    NEW_ARRAY = "an array without contents"


_GLOBALS: Final = {
    ("numpy.core.multiarray", "_reconstruct"): _Part.RECONSTRUCT,
    ("numpy._core.multiarray", "_reconstruct"): _Part.RECONSTRUCT,
    ("numpy", "ndarray"): _Part.NDARRAY,
    ("numpy", "dtype"): _Part.DTYPE,
    ("_codecs", "encode"): _Part.ENCODE,
}


@dataclass(slots=True)
class _ElementType:
    """A dtype; its byte order comes after it in the stream."""

    dtype: np.dtype[Any]


@dataclass(slots=True)
class _Node:
    """A value on the stack that is not an atom.

    `depth` counts the containers inside one another. A value that is not plain is, or holds, a part
    of an array: it may stand in tuples that describe an array, and nowhere else.
    """

    value: Any
    depth: int = 0
    is_plain: bool = True


class _Ints(dict[bytes, int]):
    """Integer opcode with its argument -> value; a text has few distinct ones."""

    def __missing__(self, token: bytes) -> int:
        value = int.from_bytes(token[1:], "little", signed=token[0] == ord("J"))
        if len(self) < 1 << 17:
            self[token] = value
        return value


def read_pickle(data: bytes | bytearray | memoryview, *, source: str) -> Any:
    """The plain value that a pickle of protocol 1 to 5 describes.

    Args:
        data: the stream.
        source: what the stream is, for messages.

    Returns:
        The value. A byte string of Python 2 is `bytes`. Arrays of numbers may be read-only.

    Raises:
        DataLossError: the stream is damaged, or asks for anything but plain data.
    """
    return _Reader(data, source).read()


class _Reader:
    """One pass over one stream.

    `stack` holds atoms as they are and all else in a `_Node`; `marks` are the stack heights at
    which an open group begins, and nothing below the last of them is touched; `memo` maps what
    the stream numbered to the item. `num_values` and `num_containers` only grow.
    """

    def __init__(self, data: bytes | bytearray | memoryview, source: str) -> None:
        self.source = source
        self.data = memoryview(data).cast("B")
        self.position = 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.ints = _Ints()
        self.num_values = 0
        self.num_containers = 0

    def read(self) -> Any:
        if len(self.data) > MAX_STREAM_BYTES:
            self.refuse(f"{len(self.data)} bytes are more than the {MAX_STREAM_BYTES} allowed")
        while True:
            if self.num_values > MAX_VALUES:
                self.refuse(f"more than {MAX_VALUES} values")
            opcode = self.take(1)[0]
            if opcode in _INT_OPCODES:
                self.read_ints()
            elif opcode == ord("."):
                return self.result()
            elif opcode in _OPCODES:
                self.num_values += 1
                _OPCODES[opcode](self)
            else:
                self.refuse(f"the opcode {chr(opcode)!r} ({opcode:#04x}) is not plain data")

    def read_ints(self) -> None:
        """All integers from here on, in two calls instead of one per integer."""
        start = self.position - 1
        run = _INT_RUN.match(self.data, start)
        if run is None:
            self.refuse("an integer is cut off")
        tokens = _INT.findall(self.data, start, run.end())
        self.stack.extend(map(self.ints.__getitem__, tokens))
        self.num_values += len(tokens)
        self.position = run.end()

    def result(self) -> Any:
        if len(self.stack) != 1 or self.marks:
            self.refuse(f"the stream ends with {len(self.stack)} values, not one")
        (value,), _, is_plain = self.unwrap(self.stack)
        if not is_plain:
            self.refuse("the stream ends in the middle of an array")
        return value

    def refuse(self, what: str, cause: Exception | None = None) -> NoReturn:
        raise DataLossError(
            f"{self.source}: {what}, at byte {self.position} of a pickled stream. Expected lists, "
            "tuples, dicts, strings, numbers and arrays of them",
            remedy="take the file from its publisher again; a stream that names anything else is "
            "never run",
        ) from cause

    # The bytes.

    def take(self, count: int) -> memoryview:
        end = self.position + count
        if end > len(self.data):
            self.refuse(f"{count} bytes are announced, {len(self.data) - self.position} are there")
        taken = self.data[self.position : end]
        self.position = end
        return taken

    def number(self, count: int) -> int:
        return int.from_bytes(self.take(count), "little")

    def line(self) -> str:
        text = bytes(self.data[self.position : self.position + 256])
        end = text.find(b"\n")
        if end < 0:
            self.refuse("a line is cut off or longer than 255 bytes")
        self.position += end + 1
        return text[:end].decode("latin-1")

    # The stack.

    def pop(self) -> Any:
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            self.refuse("a value is used that is not there")
        return self.stack.pop()

    def pop_group(self) -> list[Any]:
        if not self.marks:
            self.refuse("a group ends that did not begin")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def pop_tuple(self) -> _Node:
        item = self.pop()
        if type(item) is not _Node or type(item.value) is not tuple:
            self.refuse("a tuple was expected")
        return item

    def top(self, kind: type) -> _Node:
        item = self.pop()
        if type(item) is not _Node or type(item.value) is not kind:
            self.refuse(f"a {kind.__name__} to fill was expected")
        self.stack.append(item)
        return item

    def unwrap(self, items: list[Any]) -> tuple[list[Any], int, bool]:
        """The values of stack items, the greatest depth among them, whether all are plain."""
        if _ATOMS.issuperset(map(type, items)):
            return items, 0, True
        nodes = [item for item in items if type(item) is _Node]
        values = [item.value if type(item) is _Node else item for item in items]
        return values, max(n.depth for n in nodes), all(n.is_plain for n in nodes)

    def push_container(self, value: Any, depth: int = 1, *, is_plain: bool = True) -> None:
        self.num_containers += 1
        if self.num_containers > MAX_CONTAINERS:
            self.refuse(f"more than {MAX_CONTAINERS} containers")
        self.check_depth(depth)
        self.stack.append(_Node(value, depth, is_plain))

    def check_depth(self, depth: int) -> None:
        if depth > MAX_DEPTH:
            self.refuse(f"more than {MAX_DEPTH} containers inside one another")

    # Containers.

    def read_tuple(self, items: list[Any]) -> None:
        values, depth, is_plain = self.unwrap(items)
        self.push_container(tuple(values), depth + 1, is_plain=is_plain)

    def short_tuple(self, count: int) -> None:
        items = [self.pop() for _ in range(count)]
        self.read_tuple(items[::-1])

    def fill(self, kind: type, items: list[Any]) -> tuple[Any, list[Any]]:
        """The container on top of the stack and the plain values that go into it."""
        values, depth, is_plain = self.unwrap(items)
        if not is_plain:
            self.refuse(f"a {kind.__name__} holds a part of an array")
        node = self.top(kind)
        node.depth = max(node.depth, depth + 1)
        self.check_depth(node.depth)
        return node.value, values

    def append(self, items: list[Any]) -> None:
        target, values = self.fill(list, items)
        target.extend(values)

    def set_items(self, items: list[Any]) -> None:
        target, values = self.fill(dict, items)
        keys = values[::2]
        # Text keys only: hashing a tuple recurses, and integers can be chosen to collide.
        if len(values) % 2 or not {str, bytes}.issuperset(map(type, keys)):
            self.refuse("a dict has a key that is not a string, or a key without a value")
        target.update(zip(keys, values[1::2], strict=True))

    # The memo.

    def remember(self, index: int) -> None:
        if len(self.memo) >= MAX_MEMO:
            self.refuse(f"more than {MAX_MEMO} values to remember")
        item = self.pop()
        self.stack.append(item)
        self.memo[index] = item

    def recall(self, index: int) -> None:
        item = self.memo.get(index, self)
        if item is self:
            self.refuse(f"the value number {index} was never remembered")
        if type(item) is _Node:
            value = item.value
            is_name = isinstance(value, _Part) and value is not _Part.NEW_ARRAY
            if not is_name and not isinstance(value, _ElementType):
                self.refuse("a container is used twice")
        self.stack.append(item)

    # Text.

    def text(self, count: int) -> None:
        try:
            self.stack.append(str(self.take(count), "utf-8"))
        except UnicodeDecodeError as error:
            self.refuse("a string is not UTF-8", error)

    def int_line(self) -> None:
        text = self.line()
        if text in ("00", "01"):
            self.stack.append(text == "01")
        elif re.fullmatch(r"-?[0-9]{1,20}", text):
            self.stack.append(int(text))
        else:
            self.refuse(f"{text[:24]!r} is not an integer")

    # Arrays.

    def global_name(self, module: Any, name: Any) -> None:
        part = _GLOBALS.get((module, name)) if type(module) is type(name) is str else None
        if part is None:
            self.refuse(f"the name {module!s:.80}.{name!s:.80} is asked for")
        self.stack.append(_Node(part, is_plain=False))

    def stack_global(self) -> None:
        name = self.pop()
        self.global_name(self.pop(), name)

    def reduce(self) -> None:
        arguments = self.pop_tuple().value
        callee = self.pop()
        part = callee.value if type(callee) is _Node else None
        if part is _Part.RECONSTRUCT and len(arguments) == 3 and arguments[0] is _Part.NDARRAY:
            # The shape and type code that follow are replaced by what `build` reads.
            self.push_container(_Part.NEW_ARRAY, is_plain=False)
        elif part is _Part.DTYPE and len(arguments) == 3 and type(arguments[0]) in (str, bytes):
            self.stack.append(_Node(self.element_type(arguments[0]), is_plain=False))
        elif part is _Part.ENCODE and [type(a) for a in arguments] == [str, str]:
            self.stack.append(self.encode(*arguments))
        else:
            self.refuse("a call is asked for that does not make an array")

    def encode(self, text: str, encoding: str) -> bytes:
        """The way protocol 2 writes `bytes` from Python 3."""
        if encoding not in ("latin1", "latin-1"):
            self.refuse(f"bytes are written as {encoding[:24]!r}")
        try:
            return text.encode("latin-1")
        except UnicodeEncodeError as error:
            self.refuse("a byte string has characters above 255", error)

    def element_type(self, name: str | bytes) -> _ElementType:
        text = name if isinstance(name, str) else name.decode("latin-1")
        if text not in _NUMBERS and text not in _OBJECTS:
            self.refuse(f"arrays of {text[:24]!r} are not read")
        return _ElementType(np.dtype(object if text in _OBJECTS else text))

    def build(self) -> None:
        state = self.pop_tuple()
        item = self.pop()
        self.stack.append(item)
        target = item.value if type(item) is _Node else None
        if target is _Part.NEW_ARRAY:
            item.value = self.array(*self.array_state(state.value))
            item.is_plain = True
            # The contents of an array of objects lie in a list inside the state.
            item.depth = state.depth if item.value.dtype.hasobject else 1
        elif isinstance(target, _ElementType):
            self.set_byte_order(target, state.value)
        else:
            self.refuse("an object is asked for")

    def set_byte_order(self, target: _ElementType, state: tuple[Any, ...]) -> None:
        """Version, byte order, subarray, names, fields, size, alignment, flags."""
        if len(state) == 8 and _ATOMS.issuperset(map(type, state)) and state[2:5] == (None,) * 3:
            order = state[1].decode("latin-1") if isinstance(state[1], bytes) else state[1]
            if state[0] == 3 and order in ("<", ">", "|", "="):
                target.dtype = np.dtype(order + target.dtype.str[1:])
                return
        self.refuse("an element type has fields, or is of an unknown version")

    def array_state(self, state: tuple[Any, ...]) -> tuple[list[int], np.dtype[Any], bool, Any]:
        """Version, shape, element type, whether in Fortran's order, contents."""
        if len(state) != 5 or type(state[0]) is not int or state[0] != 1:
            self.refuse("an array is of an unknown version")
        _, shape, element, is_fortran, contents = state
        if type(shape) is not tuple or not {int}.issuperset(map(type, shape)) or len(shape) > 32:
            self.refuse("an array has no shape")
        if any(extent < 0 for extent in shape) or not isinstance(element, _ElementType):
            self.refuse("an array has no shape or no element type")
        if type(is_fortran) not in (bool, int):
            self.refuse("an array has no order")
        return list(shape), element.dtype, bool(is_fortran), contents

    def array(
        self, shape: list[int], dtype: np.dtype[Any], is_fortran: bool, contents: Any
    ) -> NDArray[Any]:
        count = prod(shape)
        kind: type[Any] = list if dtype.hasobject else bytes
        size = count if dtype.hasobject else count * dtype.itemsize
        if not isinstance(contents, kind) or len(contents) != size:
            self.refuse(f"an array of shape {tuple(shape)} and type {dtype} has other contents")
        try:
            if dtype.hasobject:
                flat = np.fromiter(contents, dtype=object, count=count)
            else:
                flat = np.frombuffer(contents, dtype)
            return flat.reshape(shape, order="F" if is_fortran else "C")
        except (ValueError, OverflowError) as error:
            self.refuse(f"no array can have the shape {tuple(shape)}", error)


def _constant(value: Any) -> Callable[[_Reader], None]:
    return lambda reader: reader.stack.append(value)


# Opcode -> what it does. PROTO's and FRAME's arguments say nothing that the other opcodes do not.
_OPCODES: Final[dict[int, Callable[[_Reader], Any]]] = {
    ord(code): action
    for code, action in {
        "\x80": lambda r: r.take(1),
        "\x95": lambda r: r.take(8),
        "(": lambda r: r.marks.append(len(r.stack)),
        "N": _constant(None),
        "\x88": _constant(True),
        "\x89": _constant(False),
        "I": lambda r: r.int_line(),
        "\x8a": lambda r: r.stack.append(
            int.from_bytes(r.take(r.number(1)), "little", signed=True)
        ),
        "G": lambda r: r.stack.append(struct.unpack(">d", r.take(8))[0]),
        "U": lambda r: r.stack.append(bytes(r.take(r.number(1)))),
        "T": lambda r: r.stack.append(bytes(r.take(r.number(4)))),
        "C": lambda r: r.stack.append(bytes(r.take(r.number(1)))),
        "B": lambda r: r.stack.append(bytes(r.take(r.number(4)))),
        "\x8c": lambda r: r.text(r.number(1)),
        "X": lambda r: r.text(r.number(4)),
        ")": lambda r: r.read_tuple([]),
        "\x85": lambda r: r.short_tuple(1),
        "\x86": lambda r: r.short_tuple(2),
        "\x87": lambda r: r.short_tuple(3),
        "t": lambda r: r.read_tuple(r.pop_group()),
        "]": lambda r: r.push_container([]),
        "a": lambda r: r.append([r.pop()]),
        "e": lambda r: r.append(r.pop_group()),
        "}": lambda r: r.push_container({}),
        "s": lambda r: r.set_items([r.pop(), r.pop()][::-1]),
        "u": lambda r: r.set_items(r.pop_group()),
        "q": lambda r: r.remember(r.number(1)),
        "r": lambda r: r.remember(r.number(4)),
        "\x94": lambda r: r.remember(len(r.memo)),
        "h": lambda r: r.recall(r.number(1)),
        "j": lambda r: r.recall(r.number(4)),
        "c": lambda r: r.global_name(r.line(), r.line()),
        "\x93": lambda r: r.stack_global(),
        "R": lambda r: r.reduce(),
        "b": lambda r: r.build(),
    }.items()
}
