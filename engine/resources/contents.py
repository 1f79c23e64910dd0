"""What a resource holds as bytes: arrays, and what JSON has besides.

Contents {string extra = 1, repeated Element element = 2}    Element {repeated Array array = 1}
Array {string dtype = 1, repeated int64 shape = 2, bytes content = 3, repeated bytes item = 4}
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from ..errors import DataLossError
from ..wire import BYTES, VARINT, Kind, Message, field, integer, text
from .batches import Array, Element

_KIND = Kind("the contents of a queue or a table", "take another checkpoint")
_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
_DTYPES = {
    "object": np.dtype(object),
    "bfloat16": _BFLOAT16,
    **{name: np.dtype(name) for name in ("bool", "complex64", "complex128")},
    **{f"{kind}{n}": np.dtype(f"{kind}{n}") for kind in ("int", "uint") for n in (8, 16, 32, 64)},
    **{f"float{n}": np.dtype(f"float{n}") for n in (16, 32, 64)},
}


def contents_bytes(elements: Sequence[Element], extra: Any = None) -> bytes:
    """Elements, each of several arrays, and something of numbers, texts, lists and dicts."""
    parts = [text(1, json.dumps(extra))]
    for element in elements:
        arrays = (field(1, _array_bytes(np.asarray(array))) for array in element)
        parts.append(field(2, b"".join(arrays)))
    return b"".join(parts)


def _array_bytes(array: Array) -> bytes:
    shape = b"".join(integer(2, n) for n in array.shape)
    if array.dtype == object:
        content = b"".join(field(4, item) for item in array.ravel().tolist())
    else:
        content = field(3, array.tobytes())
    return text(1, array.dtype.name) + shape + content


def read_contents(data: bytes) -> tuple[list[Element], Any]:
    """What `contents_bytes` was given; DataLossError if the data are damaged."""
    message = Message(data, _KIND)
    elements: list[Element] = []
    extra: Any = None
    for number, wire in message.fields():
        if number == 1 and wire == BYTES:
            extra = _parsed(message)
        elif number == 2 and wire == BYTES:
            elements.append(tuple(_arrays(message.span())))
        else:
            message.skip(wire)
    return elements, extra


def _parsed(message: Message) -> Any:
    try:
        return json.loads(message.bytes())
    except (ValueError, RecursionError) as cause:
        raise message.damage(f"no JSON: {cause}") from cause


def _arrays(element: Message) -> Iterator[Array]:
    for number, wire in element.fields():
        if number == 1 and wire == BYTES:
            yield _array(element.span())
        else:
            element.skip(wire)


def _array(message: Message) -> Array:
    dtype, content = None, b""
    shape: list[int] = []
    items: list[bytes] = []
    for number, wire in message.fields():
        if number == 1 and wire == BYTES:
            dtype = _DTYPES.get(message.text())
        elif number == 2 and wire == VARINT:
            shape.append(message.signed())
        elif number == 3 and wire == BYTES:
            content = message.bytes()
        elif number == 4 and wire == BYTES:
            items.append(message.bytes())
        else:
            message.skip(wire)
    if dtype is None or min(shape, default=0) < 0 or len(shape) > 32:
        raise message.damage("an array of no kind")
    count = math.prod(shape)
    is_text = dtype.hasobject
    if count != len(items) if is_text else count * dtype.itemsize != len(content):
        raise message.damage(f"an array of the shape {shape} with other elements")
    if not is_text:
        return np.frombuffer(content, dtype).reshape(shape).copy()
    found = np.empty(count, object)
    found[:] = items
    return found.reshape(shape)


def damaged(what: str) -> DataLossError:
    """The error for contents that do not fit a resource."""
    return DataLossError(f"{what}: the contents that are restored do not fit", remedy=_KIND.remedy)
