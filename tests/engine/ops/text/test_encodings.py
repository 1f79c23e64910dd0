"""Texts in other encodings, and bytes as letters, against Python's own codecs."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from laminar import engine
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.text.encodings import decode_base64, encode_base64, unicode_transcode

TEXT = "Aß€日𐐷"


def one(x: bytes, source: str, target: str = "UTF-8", **more: Any) -> Any:
    found = unicode_transcode(
        convert_to_tensor(x), input_encoding=source, output_encoding=target, **more
    )
    return found.numpy().item()


@pytest.mark.parametrize("source", ["UTF-8", "UTF-16-BE", "UTF-16-LE", "UTF-32-BE", "gb18030"])
@pytest.mark.parametrize("target", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
def test_text_in_another_encoding(source: str, target: str) -> None:
    assert one(TEXT.encode(source), source, target) == TEXT.encode(target)


def test_the_mark_says_the_order_of_bytes() -> None:
    assert one(b"\xff\xfe*\x00", "UTF-16") == b"*"
    assert one(b"\xfe\xff\x00*", "UTF-16") == b"*"
    assert one(b"\x00*", "UTF-16") == b"*"
    assert one(b"\xef\xbb\xbf*", "UTF-8") == b"\xef\xbb\xbf*"  # needed for nothing: it stays


def test_what_is_no_character() -> None:
    bad = b"a\xff\x01\xef\xbf\xbd"  # with a replacement character of its own
    assert one(bad, "UTF-8") == "a\ufffd\x01\ufffd".encode()
    assert one(bad, "UTF-8", replacement_char=63) == "a?\x01\ufffd".encode()
    assert one(bad, "UTF-8", errors="ignore") == "a\x01\ufffd".encode()
    assert one(bad, "UTF-8", replacement_char=32, replace_control_characters=True) == (
        "a  \ufffd".encode()
    )
    with pytest.raises(InvalidArgumentError, match="is no text in UTF-8"):
        one(bad, "UTF-8", errors="strict")


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "punycode"},
        {"source": "../codecs"},
        {"source": "UTF-8", "target": "ASCII"},
        {"source": "UTF-8", "errors": "loud"},
        {"source": "UTF-8", "replacement_char": 0xD800},
    ],
)
def test_wrong_arguments(wrong: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="UnicodeTranscode"):
        one(b"a", **wrong)


@pytest.mark.parametrize("pad", [False, True])
def test_base64(pad: bool) -> None:
    words = [b"", b"a", b"ab", b"abc", bytes(range(256))]
    letters = encode_base64(convert_to_tensor(words), pad=pad)
    expected = [base64.urlsafe_b64encode(w) for w in words]
    assert letters.numpy().tolist() == [e if pad else e.rstrip(b"=") for e in expected]
    assert decode_base64(letters).numpy().tolist() == words


@pytest.mark.parametrize("wrong", [b"abcde", b"ab?d", b"ab+d", b"ab/d", b"\x80bcd"])
def test_what_is_not_base64(wrong: bytes) -> None:
    with pytest.raises(InvalidArgumentError, match="DecodeBase64"):
        decode_base64(convert_to_tensor(wrong))


def test_in_a_graph() -> None:
    with engine.Graph().as_default(), engine.Session() as session:
        x = engine.placeholder("string", [None])
        y = decode_base64(encode_base64(x))
        z = unicode_transcode(x, input_encoding="UTF-8", output_encoding="UTF-16-BE")
        found, wide = session.run([y, z], {x: ["a", "b"]})
    np.testing.assert_array_equal(found, [b"a", b"b"])
    assert wide.tolist() == [b"\x00a", b"\x00b"]
