"""Protobuf's wire format: against bytes that protobuf writes."""

import pytest
from google.protobuf import descriptor_pb2

from laminar.engine import errors, wire

KIND = wire.Kind("a test", "mend it")


def test_fields_are_those_of_protobuf() -> None:
    message = descriptor_pb2.FieldDescriptorProto(name="näme", number=-3, json_name="x" * 200)
    data = wire.text(1, "näme") + wire.integer(3, -3) + wire.text(10, "x" * 200)
    assert data == message.SerializeToString(deterministic=True)
    read = wire.Message(data, KIND)
    found = []
    for number, kind in read.fields():
        found.append((number, read.signed() if kind == wire.VARINT else read.text()))
    assert found == [(1, "näme"), (3, -3), (10, "x" * 200)]


def test_fixed_numbers_and_what_is_skipped() -> None:
    data = wire.fixed32(20, 0xFFFFFFFE) + wire.integer(1, 1 << 63) + b"\x19" + bytes(8)
    read = wire.Message(data, KIND)
    fields = read.fields()
    assert next(fields) == (20, wire.FIXED32)
    assert read.fixed32() == 0xFFFFFFFE
    for _, kind in fields:
        read.skip(kind)
    assert read.position == len(data)


@pytest.mark.parametrize("data", [b"\xff" * 11, b"\x0a\x05abc", b"\x00\x01", b"\x0d\x01", b"\x0b"])
def test_damage(data: bytes) -> None:
    read = wire.Message(data, KIND)
    fields = read.fields()
    with pytest.raises(errors.DataLossError, match="not a test"):
        read.skip(next(fields)[1])
