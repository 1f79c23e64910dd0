from __future__ import annotations

import random
import struct
import zlib
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from laminar.distribute.wire import Frame, decode, decode_many, encode, encode_many
from laminar.distribute.wire.frames import (
    MAGIC,
    WIRE_VERSION,
    Payload,
    check_spec,
    pack_header,
    parse_header,
    payload_of,
)
from laminar.engine.errors import (
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    LaminarError,
    ResourceExhaustedError,
)
from laminar.engine.graph import DENSE, DType, TensorSpec, string

SHAPES = [(), (1,), (0,), (3,), (2, 0, 4), (2, 3), (1, 2, 1, 3)]
FIXED = struct.Struct("<4sBBBBQQQI")  # as the format is documented


def values(dtype: DType, shape: tuple[int, ...]) -> Any:
    if dtype == string:
        found = np.empty(shape, object)
        found[...] = b"a\0\xff"
        return found if shape else b"a\0\xff"
    drawn = np.random.default_rng(1).integers(0, 2**63, shape).astype(np.uint64)
    raw = np.asarray(drawn, np.float64) / 2**61 - 1.7
    if dtype == "bool":
        return raw > 0
    return np.asarray(raw).astype(dtype.numpy)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", sorted([*DENSE, string]), ids=str)
def test_all_types_and_shapes(dtype: DType, shape: tuple[int, ...]) -> None:
    value = values(dtype, shape)
    frame = decode(encode(value, step_id=2**63, incarnation=2**64 - 1, key="kéy"))
    assert frame[1:] == (False, 2**63, 2**64 - 1, "kéy")
    if dtype == string:
        np.testing.assert_array_equal(np.asarray(frame.value, object), np.asarray(value, object))
        return
    assert frame.value.dtype == value.dtype
    assert frame.value.shape == shape
    assert frame.value.tobytes() == value.tobytes()  # bit by bit, NaN too
    assert frame.value.flags.writeable
    assert frame.value.flags.owndata


def test_the_bytes_are_those_of_the_format() -> None:
    found = encode(np.array([[1.0, 2.0]], np.float32), step_id=3, incarnation=4, key="k")
    fixed = struct.pack("<4sBBBBQQQ", b"LMNR", WIRE_VERSION, 0, 1, 2, 3, 4, 8)
    rest = struct.pack("<QQH", 1, 2, 1) + b"k"
    body = struct.pack("<ff", 1.0, 2.0)
    checksum = struct.pack("<I", zlib.crc32(fixed + rest + body))
    assert found == fixed + checksum + rest + body


def test_dead_tensors_and_plain_values() -> None:
    assert decode(encode(None, is_dead=True, key="k")) == Frame(None, True, 0, 0, "k")
    assert decode(encode("text")).value == b"text"
    assert decode(encode(3)).value == np.int64(3)
    strided = np.arange(12, dtype=">i4").reshape(3, 4).T
    np.testing.assert_array_equal(decode(encode(strided)).value, strided)


@pytest.mark.parametrize(
    "value",
    [object(), [1, None], np.zeros((1,) * 17), {"a": 1}],
    ids=["object", "list", "axes", "dict"],
)
def test_what_cannot_be_sent(value: Any) -> None:
    with pytest.raises((InvalidArgumentError, TypeError)):
        encode(value)


def header(**changes: Any) -> bytes:
    """The header of a float32[2] that lies about something."""
    given: dict[str, Any] = {
        "magic": MAGIC,
        "version": WIRE_VERSION,
        "flags": 0,
        "dtype": 1,
        "shape": (2,),
    }
    given |= {"num_bytes": 8, "key": b"k", "key_bytes": 1} | changes
    shape = given["shape"]
    rank = given.get("rank", len(shape))
    first = (given["magic"], given["version"], given["flags"], given["dtype"], rank)
    fixed = struct.pack("<4sBBBBQQQ", *first, 0, 0, given["num_bytes"])
    rest = struct.pack(f"<{len(shape)}QH", *shape, given["key_bytes"]) + given["key"]
    body = bytes(8)
    return b"".join((fixed, struct.pack("<I", zlib.crc32(fixed + rest + body)), rest, body))


LIES = [
    pytest.param({"magic": b"PNG\0"}, DataLossError, "begins with", id="magic"),
    pytest.param({"version": 9}, FailedPreconditionError, "version 9 .*has 1", id="version"),
    pytest.param({"flags": 128}, DataLossError, "flags", id="flags"),
    pytest.param({"dtype": 20}, DataLossError, "type 20", id="resource"),
    pytest.param({"dtype": 0}, DataLossError, "type 0", id="no-type"),
    pytest.param({"rank": 255}, DataLossError, "255 axes", id="rank"),
    pytest.param({"rank": 16}, DataLossError, "cut off", id="rank-beyond"),
    pytest.param({"shape": (1 << 60,), "num_bytes": 1 << 62}, DataLossError, "shape", id="bomb"),
    pytest.param({"shape": (1 << 40, 1 << 40)}, DataLossError, "shape", id="overflow"),
    pytest.param({"shape": (1 << 63, 2, 1 << 63)}, DataLossError, "shape", id="wraps-around"),
    pytest.param({"shape": (0, 1 << 63)}, DataLossError, "shape", id="empty-bomb"),
    pytest.param({"shape": (3,)}, DataLossError, "8 bytes for", id="product"),
    pytest.param(
        {"shape": (1 << 30,), "num_bytes": 1 << 32}, ResourceExhaustedError, "1048576 are", id="big"
    ),
    pytest.param({"shape": (4,), "num_bytes": 16}, DataLossError, "16 are stated", id="short"),
    pytest.param({"shape": (1,), "num_bytes": 4}, DataLossError, "4 are stated", id="long"),
    pytest.param({"key_bytes": 65535}, DataLossError, "key of 65535", id="key"),
    pytest.param({"key": b"\xff"}, DataLossError, "not text", id="key-bytes"),
    pytest.param({"dtype": 7, "shape": (1 << 40,)}, DataLossError, "strings", id="string-bomb"),
    pytest.param({"flags": 1}, DataLossError, "dead", id="dead-with-elements"),
    pytest.param({"flags": 2}, DataLossError, "checksum of the header", id="separate"),
]


def test_the_honest_header_is_read() -> None:
    np.testing.assert_array_equal(decode(header()).value, np.zeros(2, np.float32))


@pytest.mark.parametrize(("changes", "kind", "pattern"), LIES)
def test_lies_are_refused(changes: dict[str, Any], kind: type[Exception], pattern: str) -> None:
    with pytest.raises(kind, match=pattern):
        decode(header(**changes), limit_bytes=1 << 20)


def test_strings_whose_lengths_lie() -> None:
    honest = encode(np.array([b"ab", b"c"], object))
    body = struct.pack("<II", 2, 2) + b"abc"
    payload = Payload(string, (2,), body)
    fixed = pack_header(payload)
    assert decode(honest).value.tolist() == [b"ab", b"c"]
    with pytest.raises(DataLossError, match="lengths"):
        decode(fixed + body)


def test_truth_values_are_0_and_1() -> None:
    payload = Payload(payload_of(np.array([True])).dtype, (1,), b"\x02")
    with pytest.raises(DataLossError, match="truth"):
        decode(pack_header(payload) + b"\x02")


def test_spec() -> None:
    frame = encode(np.zeros((2, 3), np.float32), key="x")
    assert decode(frame, spec=TensorSpec((None, 3), "float32")).value.shape == (2, 3)
    for spec in (TensorSpec((2, 4), "float32"), TensorSpec((2, 3), "int32")):
        with pytest.raises(InvalidArgumentError, match="x: expected"):
            decode(frame, spec=spec)
    check_spec(parse_header(encode(None, is_dead=True)), TensorSpec((2,), "float32"))


def test_many() -> None:
    given = [("a", np.arange(3)), ("b", b"text"), ("", np.zeros((0, 2), np.float32))]
    frames = decode_many(encode_many(given))
    assert [f.key for f in frames] == ["a", "b", ""]
    for frame, (_, value) in zip(frames, given, strict=True):
        np.testing.assert_array_equal(frame.value, value)
    assert decode_many(encode_many([])) == []
    whole = encode_many(given)
    for damaged in (b"", whole[:-1], whole + b"\0", b"\xff\xff\xff\xff" + whole[4:]):
        with pytest.raises(DataLossError):
            decode_many(damaged)


def mutated(data: bytes, rng: random.Random) -> bytes:
    found = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        kind, at = rng.randrange(5), rng.randrange(len(found) + 1)
        if kind == 0 and at < len(found):
            found[at] ^= 1 << rng.randrange(8)
        elif kind == 1 and at < len(found):
            found[at] = rng.choice((0, 1, 127, 128, 255))
        elif kind == 2:
            del found[at:]
        elif kind == 3:
            found[at:at] = rng.randbytes(rng.randrange(1, 9))
        else:
            found[at : at + 8] = struct.pack("<Q", rng.choice((0, 1 << 31, 1 << 60, 2**64 - 1)))
        if not found:
            break
    return bytes(found)


def attack(num: int) -> None:
    """Each mutant is refused, by an error of laminar's, or is the frame itself."""
    rng = random.Random(0)
    originals = [encode(values(d, s), key="k") for d in sorted([*DENSE, string]) for s in SHAPES]
    originals += [encode_many([("a", np.arange(3)), ("b", b"text")]), encode(None, is_dead=True)]
    originals.append(encode_many([]))
    num_refused = 0
    for i in range(num):
        original = originals[i % len(originals)]
        mutant = mutated(original, rng)
        for read in (decode, decode_many):
            try:
                read(mutant, 1 << 20)
            except LaminarError:
                num_refused += 1
            else:
                assert mutant in originals
    assert num_refused > num


def test_mutants_are_refused() -> None:
    attack(4_000)


@pytest.mark.exhaustive
def test_many_mutants_are_refused() -> None:
    attack(200_000)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused(data: bytes) -> None:
    for read in (decode, decode_many):
        for start in (b"", MAGIC + bytes([WIRE_VERSION])):
            try:
                read(start + data, 1 << 20)
            except LaminarError:
                pass
            else:
                assert data[:4] == bytes(4) or not start


@given(st.data())
def test_any_tensor_comes_as_it_was(data: st.DataObject) -> None:
    dtype = data.draw(st.sampled_from(sorted(DENSE - {"bool"})))
    shape = tuple(data.draw(st.lists(st.integers(0, 5), max_size=5)))
    size = int(np.prod(shape)) * dtype.size
    raw = data.draw(st.binary(min_size=size, max_size=size))
    value = np.frombuffer(raw, dtype.numpy).reshape(shape)
    key = data.draw(st.text(max_size=20).filter(lambda s: s.isprintable()))
    frame = decode(encode(value, key=key))
    assert (frame.value.dtype, frame.value.shape, frame.key) == (value.dtype, shape, key)
    assert frame.value.tobytes() == raw
