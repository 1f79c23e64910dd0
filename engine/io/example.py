"""tf.train.Example messages: named features, each a list of byte strings, floats or integers.

    Example {Features features = 1}        Features {map<string, Feature> feature = 1}
    Feature {oneof: BytesList bytes_list = 1, FloatList float_list = 2, Int64List int64_list = 3}
    BytesList, FloatList, Int64List {repeated value = 1}

and tf.train.SequenceExample messages, which have lists of features besides:

    SequenceExample {Features context = 1, FeatureLists feature_lists = 2}
    FeatureLists {map<string, FeatureList> feature_list = 1}    FeatureList {repeated Feature = 1}

in protobuf's wire format, read by a parser that is bounded by the bytes it is given: no recursion,
no allocation by a length that the message claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..errors import DTypeError
from ..wire import BYTES, FIXED32, VARINT, Kind, Message, field, varint

Feature: TypeAlias = list[bytes] | np.ndarray[Any, Any]

_BYTES_LIST, _FLOAT_LIST, _INT64_LIST = 1, 2, 3
_EXAMPLE = Kind("an Example", "write examples with encode_example, or as tf.train.Example")


def decode_example(data: bytes) -> dict[str, Feature]:
    """The features of a serialized Example.

    Returns:
        by name: a list of bytes, an array float32[n] or an array int64[n]; an empty list for a
        feature without a value.

    Raises:
        DataLossError: the bytes are no Example.

    Examples:
        >>> engine.decode_example(engine.encode_example({"age": [30]}))["age"]
        array([30])
    """
    return {name: _feature(value) for name, value in _entries(data, 1)}


def decode_feature_lists(data: bytes) -> dict[str, list[Feature]]:
    """The lists of features of a serialized SequenceExample.

    What stands beside them, its context, is what `decode_example` finds in the same bytes.

    Returns:
        by name: a list of what `decode_example` has for a feature.

    Raises:
        DataLossError: the bytes are no SequenceExample.

    Examples:
        >>> data = engine.encode_sequence_example({"id": [1]}, {"words": [[1, 2], [3]]})
        >>> engine.decode_feature_lists(data)
        {'words': [array([1, 2]), array([3])]}
    """
    return {
        name: [_feature(feature) for feature in value.inside(1)]
        for name, value in _entries(data, 2)
    }


def _entries(data: bytes, number: int) -> Iterator[tuple[str, Message]]:
    """Names and values of the map that is field `number` of a message, the last of a name last."""
    for entries in Message(data, _EXAMPLE).inside(number):
        for entry in entries.inside(1):
            yield _entry(entry)


def _entry(entry: Message) -> tuple[str, Message]:
    name, value = "", Message(b"", _EXAMPLE)
    for number, wire in entry.fields():
        if number == 1 and wire == BYTES:
            name = entry.text()
        elif number == 2 and wire == BYTES:
            value = entry.span()
        else:
            entry.skip(wire)
    return name, value


def _feature(feature: Message) -> Feature:
    value: Feature = []
    for kind, wire in feature.fields():
        if kind not in (_BYTES_LIST, _FLOAT_LIST, _INT64_LIST) or wire != BYTES:
            feature.skip(wire)
            continue
        span = feature.span()
        if kind == _BYTES_LIST:
            value = _byte_strings(span)
        elif kind == _FLOAT_LIST:
            value = _floats(span)
        else:
            value = _integers(span)
    return value


def _byte_strings(span: Message) -> list[bytes]:
    items = []
    for number, wire in span.fields():
        if number == 1 and wire == BYTES:
            items.append(span.bytes())
        else:
            span.skip(wire)
    return items


def _floats(span: Message) -> np.ndarray[Any, Any]:
    """Packed, or one field for each: both are written, and both must be read."""
    parts: list[bytes] = []
    for number, wire in span.fields():
        if number == 1 and wire == BYTES:
            packed = span.bytes()
            if len(packed) % 4:
                raise span.damage(f"floats of {len(packed)} bytes")
            parts.append(packed)
        elif number == 1 and wire == FIXED32:
            start = span.position
            span.skip(wire)
            parts.append(span.data[start : span.position])
        else:
            span.skip(wire)
    return np.frombuffer(b"".join(parts), "<f4").astype(np.float32, copy=False)


def _integers(span: Message) -> np.ndarray[Any, Any]:
    parts: list[Any] = []
    for number, wire in span.fields():
        if number == 1 and wire == BYTES:
            parts.append(_varints(span.span()))
        elif number == 1 and wire == VARINT:
            parts.append(np.array([span.varint()], np.uint64))
        else:
            span.skip(wire)
    joined = np.concatenate(parts) if parts else np.empty(0, np.uint64)
    return joined.view(np.int64)


def _varints(packed: Message) -> np.ndarray[Any, Any]:
    """All numbers of a packed field at once: 7 bits of each byte, by its place in its number."""
    raw = np.frombuffer(packed.data, np.uint8, packed.end - packed.position, packed.position)
    if not raw.size:
        return np.empty(0, np.uint64)
    lasts = np.flatnonzero(raw < 0x80)
    if not lasts.size or lasts[-1] != raw.size - 1:
        raise packed.damage("a number that does not end")
    starts = np.concatenate(([0], lasts[:-1] + 1))
    lengths = lasts - starts + 1
    if lengths.max() > 10:
        raise packed.damage("a number of more than 64 bits")
    if lengths.max() == 1:
        return raw.astype(np.uint64)
    place = np.arange(raw.size) - np.repeat(starts, lengths)
    bits = (raw & 0x7F).astype(np.uint64) << (7 * place).astype(np.uint64)
    return np.bitwise_or.reduceat(bits, starts)


# Writing


def encode_example(features: Mapping[str, Any]) -> bytes:
    """An Example with these features, serialized; equal features give equal bytes.

    Args:
        features: by name, bytes, text, a number, or an array or list of one kind. Bools and
            integers are written as int64, reals as float32.

    Raises:
        DTypeError: a value is none of these.

    Examples:
        >>> engine.decode_example(engine.encode_example({"age": [30], "name": [b"Ann"]}))
        {'age': array([30]), 'name': [b'Ann']}
    """
    return field(1, _encode_map({k: _encode_feature(k, v) for k, v in features.items()}))


def encode_sequence_example(
    context: Mapping[str, Any], feature_lists: Mapping[str, Sequence[Any]]
) -> bytes:
    """A SequenceExample with these features, serialized; equal features give equal bytes.

    Args:
        context: by name, what `encode_example` takes.
        feature_lists: by name, a list of that: one feature for each step of a sequence.

    Raises:
        DTypeError: a value is none of these.

    Examples:
        >>> data = engine.encode_sequence_example({"id": [1]}, {"words": [[1, 2], [3]]})
        >>> engine.decode_feature_lists(data)["words"]
        [array([1, 2]), array([3])]
    """
    first = _encode_map({k: _encode_feature(k, v) for k, v in context.items()})
    lists = {
        name: b"".join(field(1, _encode_feature(name, value)) for value in values)
        for name, values in feature_lists.items()
    }
    return field(1, first) + field(2, _encode_map(lists))


def _encode_map(values: Mapping[str, bytes]) -> bytes:
    entries = []
    for name, value in sorted(values.items()):
        entries.append(field(1, field(1, name.encode()) + field(2, value)))
    return b"".join(entries)


def _encode_feature(name: str, value: Any) -> bytes:
    if isinstance(value, bytes | str):
        value = [value]
    try:
        array = np.asarray(value)
    except ValueError as cause:  # lists of unequal length
        raise DTypeError(f"encode_example: feature {name!r}: {cause}") from cause
    if array.dtype.kind in "SUO":  # NumPy's own strings lose zeros at the end of bytes
        flat = value.ravel() if isinstance(value, np.ndarray) else value
        items = list(flat) if isinstance(flat, np.ndarray | list | tuple) else [flat]
        strings = [item.encode() if isinstance(item, str) else item for item in items]
        if not all(isinstance(item, bytes) for item in strings):
            raise DTypeError(f"encode_example: feature {name!r} mixes kinds or nests: {value!r}")
        return field(_BYTES_LIST, b"".join(field(1, item) for item in strings))
    if array.dtype.kind in "biu":
        packed = b"".join(map(varint, array.astype(np.int64).ravel().tolist()))
        return field(_INT64_LIST, field(1, packed))
    if array.dtype.kind != "f":
        raise DTypeError(f"encode_example: feature {name!r} is {array.dtype}, which has no form")
    return field(_FLOAT_LIST, field(1, array.astype("<f4").tobytes()))
