"""Examples, against messages that protobuf itself writes and reads."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import numpy as np
import pytest

from laminar.engine.errors import DataLossError, DTypeError
from laminar.engine.io.example import (
    decode_example,
    decode_feature_lists,
    encode_example,
    encode_sequence_example,
)


@pytest.fixture(scope="module")
def pool() -> Any:
    """The messages, made from their description."""
    from google.protobuf import descriptor_pb2, descriptor_pool

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
    add("FeatureList", [("feature", 1, kind.TYPE_MESSAGE, ".t.Feature", True)])
    lists = add(
        "FeatureLists",
        [("feature_list", 1, kind.TYPE_MESSAGE, ".t.FeatureLists.FeatureListEntry", True)],
    )
    entry = lists.nested_type.add(name="FeatureListEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=kind.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=kind.TYPE_MESSAGE,
        type_name=".t.FeatureList",
        label=kind.LABEL_OPTIONAL,
    )
    add(
        "SequenceExample",
        [
            ("context", 1, kind.TYPE_MESSAGE, ".t.Features", False),
            ("feature_lists", 2, kind.TYPE_MESSAGE, ".t.FeatureLists", False),
        ],
    )
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return pool


@pytest.fixture(scope="module")
def message(pool: Any) -> Any:
    """The class of the message Example."""
    return _class_of(pool, "Example")


@pytest.fixture(scope="module")
def sequence_message(pool: Any) -> Any:
    """The class of the message SequenceExample."""
    return _class_of(pool, "SequenceExample")


def _class_of(pool: Any, name: str) -> Any:
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"t.{name}"))


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


def test_sequences_that_protobuf_writes_are_read(sequence_message: Any) -> None:
    example = sequence_message()
    example.context.feature["id"].int64_list.value.append(7)
    words = example.feature_lists.feature_list["words"]
    words.feature.add().bytes_list.value.extend([b"a", b"b"])
    words.feature.add().SetInParent()
    reals = example.feature_lists.feature_list["reals"]
    for i in range(3):
        reals.feature.add().float_list.value.extend([i, i / 2])
    example.feature_lists.feature_list["none"].SetInParent()
    data = example.SerializeToString()
    found = decode_feature_lists(data)
    assert found.keys() == {"words", "reals", "none"}
    assert found["words"] == [[b"a", b"b"], []]
    assert [np.asarray(f).tolist() for f in found["reals"]] == [[0, 0], [1, 0.5], [2, 1]]
    assert found["none"] == []
    assert {k: np.asarray(v).tolist() for k, v in decode_example(data).items()} == {"id": [7]}


def test_sequences_that_we_write_protobuf_reads(sequence_message: Any) -> None:
    lists: dict[str, list[Any]] = {
        "words": [[b"a", "b"], []],
        "reals": [1.5, [2.0, 3.0]],
        "ints": [[-1], 2],
        "none": [],
    }
    data = encode_sequence_example({"id": 7, "name": "n"}, lists)
    example = sequence_message.FromString(data)
    assert list(example.context.feature["id"].int64_list.value) == [7]
    assert list(example.context.feature["name"].bytes_list.value) == [b"n"]
    found = example.feature_lists.feature_list
    assert [list(f.bytes_list.value) for f in found["words"].feature] == [[b"a", b"b"], []]
    assert [list(f.float_list.value) for f in found["reals"].feature] == [[1.5], [2, 3]]
    assert [list(f.int64_list.value) for f in found["ints"].feature] == [[-1], [2]]
    assert "none" in found
    again = encode_sequence_example({"name": "n", "id": 7}, dict(reversed(lists.items())))
    assert again == data
    assert decode_feature_lists(encode_sequence_example({}, {})) == {}


def test_sequences_that_are_damaged() -> None:
    data = encode_sequence_example({"id": 7}, {"words": [[b"abc"], [b"d"]], "ints": [[1, 300]]})
    whole = decode_feature_lists(data)
    randoms = random.Random(3)
    for _ in range(2000):
        damaged = bytearray(data[: randoms.randrange(len(data))])
        for _ in range(randoms.randrange(3)):
            if damaged:
                damaged[randoms.randrange(len(damaged))] = randoms.randrange(256)
        with suppress(DataLossError):
            decode_feature_lists(bytes(damaged))
    assert decode_feature_lists(data).keys() == whole.keys()


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
