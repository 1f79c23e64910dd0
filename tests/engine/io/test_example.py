"""Examples, against messages that protobuf itself writes and reads."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DataLossError, DTypeError
from laminar.engine.io.example import decode_example, encode_example


@pytest.fixture(scope="module")
def message() -> Any:
    """The class of the message Example, made from its description."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    kind = descriptor_pb2.FieldDescriptorProto
    file = descriptor_pb2.FileDescriptorProto(name="e.proto", package="t", syntax="proto3")

    def add(name: str, fields: list[tuple[str, int, int, str, bool]]) -> Any:
        made = file.message_type.add(name=name)
        for field, number, type_, of, repeated in fields:
            made.field.add(
                name=field,
                number=number,
                type=type_,
                type_name=of or None,
                label=kind.LABEL_REPEATED if repeated else kind.LABEL_OPTIONAL,
            )
        return made

    add("BytesList", [("value", 1, kind.TYPE_BYTES, "", True)])
    add("FloatList", [("value", 1, kind.TYPE_FLOAT, "", True)])
    add("Int64List", [("value", 1, kind.TYPE_INT64, "", True)])
    feature = add(
        "Feature",
        [
            ("bytes_list", 1, kind.TYPE_MESSAGE, ".t.BytesList", False),
            ("float_list", 2, kind.TYPE_MESSAGE, ".t.FloatList", False),
            ("int64_list", 3, kind.TYPE_MESSAGE, ".t.Int64List", False),
        ],
    )
    feature.oneof_decl.add(name="kind")
    for field in feature.field:
        field.oneof_index = 0
    features = add(
        "Features", [("feature", 1, kind.TYPE_MESSAGE, ".t.Features.FeatureEntry", True)]
    )
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=kind.TYPE_MESSAGE,
        type_name=".t.Feature",
        label=kind.LABEL_OPTIONAL,
    )
    add("Example", [("features", 1, kind.TYPE_MESSAGE, ".t.Features", False)])
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("t.Example"))


INTEGERS = [0, 1, -1, 127, 128, 2**63 - 1, -(2**63), 300]


def test_what_protobuf_writes_is_read(message: Any) -> None:
    example = message()
    feature = example.features.feature
    feature["words"].bytes_list.value.extend([b"a\0", b"", b"xyz" * 100])
    feature["reals"].float_list.value.extend([1.5, -2.0, 3e38])
    feature["ints"].int64_list.value.extend(INTEGERS)
    feature["small"].int64_list.value.extend([1, 2, 3])
    feature["none"].SetInParent()
    feature["empty"].int64_list.SetInParent()
    found = decode_example(example.SerializeToString())
    assert found["words"] == [b"a\0", b"", b"xyz" * 100]
    assert np.asarray(found["reals"]).tolist() == np.array([1.5, -2, 3e38], np.float32).tolist()
    assert np.asarray(found["ints"]).tolist() == INTEGERS
    assert np.asarray(found["ints"]).dtype == np.int64
    assert np.asarray(found["small"]).tolist() == [1, 2, 3]
    assert len(found["none"]) == len(found["empty"]) == 0


def test_what_we_write_protobuf_reads(message: Any) -> None:
    data = encode_example(
        {
            "word": "é",
            "words": [b"a\0", "b"],
            "array": np.array([b"q\0"], object),
            "real": 0.5,
            "reals": np.array([[1.0, 2.0], [3.0, 4.0]]),
            "int": -5,
            "ints": INTEGERS,
            "flag": True,
        }
    )
    example = message.FromString(data)
    feature = example.features.feature
    assert list(feature["word"].bytes_list.value) == ["é".encode()]
    assert list(feature["words"].bytes_list.value) == [b"a\0", b"b"]
    assert list(feature["array"].bytes_list.value) == [b"q\0"]
    assert list(feature["real"].float_list.value) == [0.5]
    assert list(feature["reals"].float_list.value) == [1, 2, 3, 4]
    assert list(feature["int"].int64_list.value) == [-5]
    assert list(feature["ints"].int64_list.value) == INTEGERS
    assert list(feature["flag"].int64_list.value) == [1]


def test_numbers_that_are_not_packed_are_read() -> None:
    def field(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    ints = b"\x08\x05\x08\xff\x01"
    reals = b"\x0d" + np.float32(1.5).tobytes()
    entries = [
        field(1, field(1, b"i") + field(2, field(3, ints))),
        field(1, field(1, b"f") + field(2, field(2, reals))),
        b"\x50\x07",  # a field of a later version of the format
    ]
    found = decode_example(field(1, b"".join(entries)) + b"\x51" + bytes(8))
    assert np.asarray(found["i"]).tolist() == [5, 255]
    assert np.asarray(found["f"]).tolist() == [1.5]


@pytest.mark.parametrize(
    "data",
    [
        b"\x0a\x7f",  # longer than there is
        b"\x0a",  # a length that is cut off
        b"\xff" * 20,  # a number without end
        b"\x07",  # no such kind of field
        b"\x00\x00",  # a field number 0
        b"\x0d\x00",  # four bytes that are not there
        b"\x0a\x06\x0a\x04\x0a\x02\xff\xfe",  # a name that is not text
        b"\x0a\x09\x0a\x07\x12\x05\x12\x03\x0a\x01\x00",  # a float of one byte
        b"\x0a\x09\x0a\x07\x12\x05\x1a\x03\x0a\x01\x80",  # an integer without end
        b"\x0a\x13\x0a\x11\x12\x0f\x1a\x0d\x0a\x0b" + b"\x80" * 10 + b"\x01",  # 77 bits
    ],
)
def test_damaged_bytes_are_refused(data: bytes) -> None:
    with pytest.raises(DataLossError, match="not an Example"):
        decode_example(data)


def test_random_damage_raises_nothing_else() -> None:
    good = encode_example({"a": [1, 2, 300], "b": [b"xy"], "c": [1.5, 2.5]})
    draw = random.Random(0)
    for _ in range(3000):
        bad = bytearray(good)
        for _ in range(draw.randint(1, 4)):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        with suppress(DataLossError):
            decode_example(bytes(bad[: draw.randint(0, len(bad))]))


@pytest.mark.parametrize("value", [1j, [b"a", 1], [[1], [2, 3]], None, {"a": 1}])
def test_what_has_no_form_is_refused(value: Any) -> None:
    with pytest.raises(DTypeError, match="feature 'x'"):
        encode_example({"x": value})
