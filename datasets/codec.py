"""Elements as bytes: how they are kept in files and sent between processes.

    uint32 length of the header | header, JSON | the data of the leaves, one after the other

The header gives the structure and, for each leaf, its dtype and shape; of texts the lengths. It is
read as plain data, with every size checked: nothing that is decoded can run code.
"""

from __future__ import annotations

import json
import struct
from math import prod
from typing import Any

import numpy as np

from laminar.engine.errors import DataLossError, InvalidArgumentError
from laminar.engine.graph import as_dtype
from laminar.tree import is_nested

_LENGTH = struct.Struct("<I")
# What parsing raises on data that is not an element.
_DAMAGE = (
    *(ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError),
    struct.error,
)


def encode(element: Any, who: str) -> bytes:
    """An element as bytes.

    Raises:
        InvalidArgumentError: a part is neither an array of numbers nor text.
    """
    leaves: list[dict[str, Any]] = []
    data: list[Any] = []

    def form(part: Any) -> Any:
        if part is None:
            return None
        if isinstance(part, dict):
            if not all(isinstance(key, str) for key in part):
                raise InvalidArgumentError(f"{who}: the keys must be texts, got {list(part)}")
            return {"dict": [[key, form(part[key])] for key in part]}
        if is_nested(part):
            return {"list" if isinstance(part, list) else "tuple": [form(p) for p in part]}
        leaves.append(_leaf(part, data, who))
        return len(leaves) - 1

    header = json.dumps({"form": form(element), "leaves": leaves}).encode()
    return b"".join([_LENGTH.pack(len(header)), header, *data])


def _leaf(leaf: Any, data: list[Any], who: str) -> dict[str, Any]:
    array = np.asarray(leaf, object) if isinstance(leaf, bytes) else np.asarray(leaf)
    shape = list(array.shape)
    if array.dtype == object:
        texts = array.ravel().tolist()
        if not all(isinstance(text, bytes) for text in texts):
            raise InvalidArgumentError(
                f"{who}: expected numbers or texts, got {next(map(type, texts)).__name__}",
                remedy="convert it to an array of numbers",
            )
        data.extend(texts)
        return {"shape": shape, "lengths": [len(text) for text in texts]}
    data.append(np.ascontiguousarray(array).tobytes())
    return {"shape": shape, "dtype": str(as_dtype(array.dtype))}


def decode(data: bytes, who: str) -> Any:
    """The element of these bytes.

    Raises:
        DataLossError: they are not those of an element.
    """
    try:
        (size,) = _LENGTH.unpack_from(data)
        header = json.loads(data[_LENGTH.size : _LENGTH.size + size])
        leaves, at = [], _LENGTH.size + size
        for about in header["leaves"]:
            leaf, at = _read(data, at, about)
            leaves.append(leaf)
        if at != len(data):
            raise ValueError(f"{len(data)} bytes, of which {at} are used")
        return _rebuilt(header["form"], leaves)
    except _DAMAGE as cause:
        raise DataLossError(f"{who}: this is not an element: {cause}") from cause


def _read(data: bytes, at: int, about: dict[str, Any]) -> tuple[Any, int]:
    shape = [int(n) for n in about["shape"]]
    if min(shape, default=0) < 0:
        raise ValueError(f"the shape {shape}")
    if "lengths" in about:
        texts = []
        for size in about["lengths"]:
            if not 0 <= size <= len(data) - at:
                raise ValueError(f"a text of {size} bytes")
            texts.append(data[at : at + size])
            at += size
        if not shape:
            return texts[0], at
        array = np.empty(len(texts), object)
        array[:] = texts
        return array.reshape(shape), at
    dtype = as_dtype(about["dtype"]).numpy
    if dtype.hasobject:
        raise ValueError(f"numbers of type {about['dtype']}")
    size = prod(shape) * dtype.itemsize
    if size > len(data) - at:
        raise ValueError(f"{size} bytes of numbers where there are {len(data) - at}")
    array = np.frombuffer(data, dtype, prod(shape), at).reshape(shape).copy()
    return (array if shape else array[()]), at + size


def _rebuilt(form: Any, leaves: list[Any]) -> Any:
    if form is None:
        return None
    if isinstance(form, int):
        return leaves[form]
    (kind, parts), *rest = form.items()
    if rest:
        raise ValueError("a structure of two kinds")
    if kind == "dict":
        return {str(key): _rebuilt(part, leaves) for key, part in parts}
    found = [_rebuilt(part, leaves) for part in parts]
    return found if kind == "list" else tuple(found)
