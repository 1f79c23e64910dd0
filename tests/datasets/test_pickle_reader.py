from __future__ import annotations

import builtins
import pickle
import struct
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from laminar.datasets.pickle_reader import read_pickle
from laminar.engine.errors import DataLossError

from ..sampling import examples

ATOMS = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary(min_size=1)  # protocol 2 writes b"" as a call of bytes()
)
VALUES = st.recursive(
    ATOMS,
    lambda inner: (
        st.lists(inner)
        | st.lists(inner).map(tuple)
        | st.dictionaries(st.text() | st.binary(min_size=1), inner)
    ),
    max_leaves=20,
)


def read(data: bytes) -> Any:
    return read_pickle(data, source="test")


@pytest.mark.slow
@given(VALUES, st.integers(2, 5))
@example([3, 256, 65536, -1, 2**31 - 1, -(2**31), 2**40], 2)
def test_reads_what_pickle_writes(value: Any, protocol: int) -> None:
    # A pickler writes a value it meets twice as a reference: allowed for atoms only.
    data = pickle.dumps(pickle.loads(pickle.dumps(value)), protocol)
    result = read(data)
    assert result == value
    assert repr(result) == repr(value)  # 1, 1.0 and True are equal


@pytest.mark.parametrize("protocol", [1, 2, 3, 4])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint8", "<i4", ">i4", "<i8", "<f4", ">f8", "f2"]
)
def test_arrays_of_numbers(dtype: str, order: Any, protocol: int) -> None:
    array = np.array(np.arange(-3, 9).reshape(3, 4), dtype=dtype, order=order)
    result = read(pickle.dumps({"x": array}, protocol))["x"]
    assert result.dtype == array.dtype
    np.testing.assert_array_equal(result, array)


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 1)])
def test_shapes(shape: tuple[int, ...]) -> None:
    result = read(pickle.dumps(np.ones(shape), 4))
    assert result.shape == shape
    np.testing.assert_array_equal(result, np.ones(shape))


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_arrays_of_lists(protocol: int) -> None:
    array = np.empty(4, object)
    array[:] = [[1, 300, 70000, -5], [], [7] * 5000, None]
    result = read(pickle.dumps(array, protocol))
    assert result.dtype == object
    assert result.tolist() == array.tolist()


def test_arrays_of_equally_long_lists_stay_one_axis() -> None:
    array = np.empty(2, object)
    array[0], array[1] = [1, 2], [3, 4]
    assert read(pickle.dumps(array, 3)).shape == (2,)


def python_2_array(contents: bytes, shape: bytes) -> bytes:
    return (
        b"cnumpy.core.multiarray\n_reconstruct\nq\x03cnumpy\nndarray\nq\x04K\x00\x85U\x01b\x87Rq\x05"
        b"(K\x01" + shape + b"cnumpy\ndtype\nq\x06U\x02u1K\x00K\x01\x87Rq\x07"
        b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + struct.pack("<I", len(contents)) + contents + b"tb"
    )


def test_a_batch_as_python_2_wrote_it() -> None:
    pixels = bytes(range(12))
    data = (
        b"\x80\x02}q\x01(U\x06labelsq\x02](K\x06K\x09eU\x04dataq\x08"
        + python_2_array(pixels, b"K\x02K\x06\x86")
        + b"U\x09filenames](U\x05a.pngU\x05b.pngeu."
    )
    result = read(data)
    assert result.keys() == {b"labels", b"data", b"filenames"}
    assert result[b"labels"] == [6, 9]
    assert result[b"filenames"] == [b"a.png", b"b.png"]
    np.testing.assert_array_equal(
        result[b"data"], np.frombuffer(pixels, np.uint8).reshape(2, 6), strict=True
    )


class Gadget:
    """Unpickling this runs code."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.function = function
        self.arguments = arguments

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return self.function, self.arguments


@pytest.mark.parametrize("protocol", range(6))
@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: [x], lambda x: {"x": (1, x)}])
def test_code_is_not_run(wrap: Any, protocol: int, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    monkeypatch.setattr(builtins, "laminar_gadget", calls.append, raising=False)
    data = pickle.dumps(wrap(Gadget(eval, "laminar_gadget('ran')")), protocol)
    pickle.loads(data)
    assert calls == ["ran"], "the gadget works"
    with pytest.raises(DataLossError):
        read(data)
    assert calls == ["ran"]


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R"
DTYPE = b"cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R"
OBJECT = b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R"

HOSTILE = {
    "GLOBAL": b"cos\nsystem\n(X\x02\x00\x00\x00lstR.",
    "GLOBAL without a call": b"cposix\nsystem\n.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x02ls\x85R.",
    "STACK_GLOBAL of other values": b"\x80\x04K\x01N\x93.",
    "eval": b"\x80\x02cbuiltins\neval\nX\x03\x00\x00\x001+1\x85R.",
    "numpy's own functions": b"cnumpy\nload\nX\x01\x00\x00\x00f\x85R.",
    "numpy's scalar": b"cnumpy.core.multiarray\nscalar\n" + DTYPE + b"U\x01a\x86R.",
    "a nested name": b"\x80\x04\x8c\x05numpy\x8c\x0fndarray.tofile.\x93.",
    "INST": b"(X\x02\x00\x00\x00lsios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nX\x02\x00\x00\x00lso.",
    "NEWOBJ": b"\x80\x02cnumpy\nndarray\n)\x81.",
    "NEWOBJ_EX": b"\x80\x04cnumpy\nndarray\n)}\x92.",
    "EXT1": b"\x80\x02\x82\x01.",
    "EXT4": b"\x80\x02\x84\x01\x00\x00\x00.",
    "PERSID": b"Pfile\n.",
    "BINPERSID": b"NQ.",
    "NEXT_BUFFER": b"\x80\x05\x97.",
    "BINBYTES8 of 2^62 bytes": b"\x80\x04\x8e" + struct.pack("<Q", 2**62) + b"x.",
    "BYTEARRAY8 of 2^62 bytes": b"\x80\x05\x96" + struct.pack("<Q", 2**62) + b"x.",
    "BINBYTES of 4 GB": b"\x80\x03B\xff\xff\xff\xffx.",
    "BINSTRING of 4 GB": b"T\xff\xff\xff\xffx.",
    "BINUNICODE of 4 GB": b"X\xff\xff\xff\xffx.",
    "LONG4 of 2 GB": b"\x80\x02\x8b\xff\xff\xff\x7fx.",
    "INT of many digits": b"I" + b"9" * 200 + b"\n.",
    "INT without an end": b"I1.",
    "INT of another script": "I\u0663\n.".encode(),
    "a deep list": b"]" * 100_000 + b"a" * 99_999 + b".",
    "a deep tuple": b"N" + b"\x85" * 100_000 + b".",
    "a deep dict": b"}" + b"U\x01a}" * 1000 + b"s" * 1000 + b".",
    "a list in itself": b"]q\x00h\x00a.",
    "a list used twice": b"(]q\x00h\x00t.",
    "a tuple used twice": b"(NN\x86q\x00h\x00t.",
    "doubling": b"]q\x00" + b"".join(b"(h%ch%ctq%c" % (i, i, i + 1) for i in range(40)) + b".",
    "a memo index never set": b"h\x07.",
    "a tuple as a key": b"}NN\x86Ns.",
    "an integer as a key": b"}K\x01Ns.",
    "a key without a value": b"}(U\x01au.",
    "text that is not UTF-8": b"X\x02\x00\x00\x00\xff\xfe.",
    "nothing": b"",
    "no end": b"\x80\x04N",
    "no value": b"\x80\x04.",
    "two values": b"NN.",
    "an open group": b"(N.",
    "a group that did not begin": b"Nt.",
    "a value below the group": b"](a.",
    "an integer cut off": b"M\x01",
    "append to a tuple": b")Na.",
    "append to a dict": b"}Na.",
    "items of a list": b"]U\x01aNs.",
    "PUT of nothing": b"q\x00N.",
    "a name in a list": b"]cnumpy\nndarray\na.",
    "a name in a dict": b"}U\x01acnumpy\nndarray\ns.",
    "a name in a tuple": b"cnumpy\nndarray\n\x85.",
    "a name as the result": b"cnumpy\ndtype\n.",
    "an element type as the result": DTYPE + b".",
    "an array without contents": ARRAY + b".",
    "an array used before it is one": ARRAY + b"q\x00h\x00\x86.",
    "a call of ndarray": b"cnumpy\nndarray\nK\x02\x85R.",
    "a call of a list": b"])R.",
    "a call without arguments": b"cnumpy\ndtype\nNR.",
    "another codec": b"c_codecs\nencode\nX\x01\x00\x00\x00aX\x05\x00\x00\x00rot13\x86R.",
    "bytes above 255": b"c_codecs\nencode\nX\x02\x00\x00\x00\xc4\x80X\x06\x00\x00\x00latin1\x86R.",
    "a void element type": b"cnumpy\ndtype\nU\x02V8K\x00K\x01\x87R.",
    "an element type by its source": b"cnumpy\ndtype\nU\x05i4,f4K\x00K\x01\x87R.",
    "fields": DTYPE + b"(K\x03U\x01|N(U\x01at}K\x01K\x01K\x00tb.",
    "a list as state": ARRAY + b"]b.",
    "a state for a list": b"])b.",
    "a state of arrays": DTYPE + b"(" + DTYPE * 8 + b"tb.",
    "more shape than contents": python_2_array(b"12", b"K\x02K\x06\x86") + b".",
    "a negative shape": python_2_array(b"12", b"J\xff\xff\xff\xffJ\xfe\xff\xff\xff\x86") + b".",
    "a shape that overflows": python_2_array(b"", b"K\x00\x8a\x0a" + bytes(9) + b"\x40\x86") + b".",
    "a shape of names": python_2_array(b"", b"cnumpy\nndarray\n\x85") + b".",
    "objects from bytes": ARRAY + b"(K\x01K\x01\x85" + OBJECT + b"\x89U\x0812345678tb.",
    "numbers from a list": ARRAY + b"(K\x01K\x01\x85" + DTYPE + b"\x89]K\x05atb.",
    "an array as an axis": ARRAY
    + b"(K\x01"
    + python_2_array(b"1", b"K\x01\x85")
    + b"\x85"
    + DTYPE
    + b"\x89U\x011tb.",
}


@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_streams_are_refused(data: bytes) -> None:
    with pytest.raises(DataLossError) as caught:
        read(data)
    assert caught.value.message.startswith("test: ")
    assert caught.value.remedy


@pytest.mark.parametrize(
    ("limit", "value", "data"),
    [
        ("MAX_STREAM_BYTES", 10, b"\x80\x02" + b"U\x08........" + b"."),
        ("MAX_VALUES", 100, b"](" + b"N" * 101 + b"e."),
        ("MAX_VALUES", 100, b"](" + b"K\x01" * 101 + b"e."),
        ("MAX_CONTAINERS", 100, b"](" + b"]" * 100 + b"e."),
        ("MAX_MEMO", 100, b"N" + b"".join(b"r" + struct.pack("<I", i) for i in range(101)) + b"."),
        ("MAX_MEMO", 100, b"N" + b"\x94" * 101 + b"."),
    ],
)
def test_growth_is_bounded(
    limit: str, value: int, data: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    read(data)
    monkeypatch.setattr(f"laminar.datasets.pickle_reader.{limit}", value)
    with pytest.raises(DataLossError, match=str(value)):
        read(data)


def mixed() -> bytes:
    texts = np.empty(3, object)
    texts[:] = [[1, 2, 3], [400, 70000], []]
    return pickle.dumps({"x": np.arange(6.0), "y": texts, "z": ("a", 1.5, None)}, 2)


@examples(500)
@given(st.data())
def test_damaged_streams_are_read_or_refused(data: st.DataObject) -> None:
    stream = bytearray(mixed())
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(stream) - 1))
        stream[place] = data.draw(st.integers(0, 255))
    with suppress(DataLossError):
        read(bytes(stream))


@given(st.binary(max_size=60))
def test_noise_is_read_or_refused(noise: bytes) -> None:
    with suppress(DataLossError):
        read(noise + b".")
