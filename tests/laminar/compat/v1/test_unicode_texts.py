"""Characters and runs of words; values by TensorFlow 2.21's `compat.v1`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import laminar.compat.v1 as tf
from laminar.engine.errors import InvalidArgumentError

TEXTS = ["Göödnight", "\U0001f60a", ""]
BYTES = [t.encode() for t in TEXTS]


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    tf.reset_default_graph()
    yield
    tf.reset_default_graph()


def run(x: Any) -> Any:
    with tf.Session() as session:
        found = session.run(x)
    if isinstance(found, tf.ragged.RaggedTensorValue):
        return found.to_list()
    return found if isinstance(found, bytes) else found.tolist()


def test_characters() -> None:
    numbers, places = tf.strings.unicode_decode_with_offsets(BYTES, "UTF-8")
    assert run(numbers) == [list(map(ord, t)) for t in TEXTS]
    assert run(places) == [[0, 1, 3, 5, 6, 7, 8, 9, 10], [0], []]
    assert run(tf.strings.unicode_split(BYTES, "UTF-8")) == [[c.encode() for c in t] for t in TEXTS]
    wide = [t.encode("utf-16-be") for t in TEXTS]
    assert run(tf.strings.unicode_decode_with_offsets(wide, "UTF-16-BE")[1])[1:] == [[0], []]
    assert run(tf.strings.unicode_decode(BYTES[0], "UTF-8")) == list(map(ord, TEXTS[0]))
    deep = tf.strings.unicode_decode([["ab", "c"], ["", "d"]], "UTF-8")
    assert run(deep) == [[[97, 98], [99]], [[], [100]]]
    assert run(tf.strings.bytes_split(["ab", ""])) == [[b"a", b"b"], []]


def test_what_is_no_character() -> None:
    decode = tf.strings.unicode_decode
    assert run(decode([b"a\xffb"], "UTF-8")) == [[97, 0xFFFD, 98]]
    assert run(decode([b"a\xffb"], "UTF-8", errors="ignore")) == [[97, 98]]
    assert run(decode([b"a\tb"], "UTF-8", replace_control_characters=True)) == [[97, 0xFFFD, 98]]
    with pytest.raises(InvalidArgumentError, match="is no text in UTF-8"):
        run(decode([b"a\xffb"], "UTF-8", errors="strict"))
    with pytest.raises(ValueError, match="no encoding is named"):
        decode(BYTES, "rot13")


def test_texts_of_numbers() -> None:
    encode = tf.strings.unicode_encode
    rows = tf.ragged.constant([[71, 246], [128522], []], dtype=tf.int32)
    assert run(encode(rows, "UTF-8")) == [b"G\xc3\xb6", b"\xf0\x9f\x98\x8a", b""]
    assert run(encode([72, 105], "UTF-8")) == b"Hi"
    assert run(encode([[72, 105]] * 2, "UTF-16-BE")) == [b"\x00H\x00i"] * 2
    assert run(encode([0xD800, 72], "UTF-8", errors="ignore")) == b"H"
    with pytest.raises(InvalidArgumentError, match="not the number of a character"):
        run(encode([0xD800], "UTF-8", errors="strict"))


def test_runs_of_words() -> None:
    ngrams = tf.strings.ngrams
    rows = tf.ragged.constant([["a", "b", "c"], ["d"], []])
    assert run(ngrams(["A", "B", "C"], 2)) == [b"A B", b"B C"]
    assert run(ngrams(rows, [1, 2])) == [[b"a", b"b", b"c", b"a b", b"b c"], [b"d"], []]
    assert run(ngrams(rows, 3, "-", pad_values=("L", "R")))[1] == [b"L-L-d", b"L-d-R", b"d-R-R"]
    assert run(ngrams(["a", "b"], 3, pad_values="P", padding_width=1)) == [b"P a b", b"a b P"]
    assert run(ngrams(rows, 2, preserve_short_sequences=True)) == [[b"a b", b"b c"], [b"d"], []]
    short = ngrams(rows, 4, pad_values=("L", "R"), padding_width=1, preserve_short_sequences=True)
    assert run(short) == [[b"L a b c", b"a b c R"], [b"L d R"], []]
    with pytest.raises(ValueError, match="pad_values"):
        ngrams(rows, 2, padding_width=1)
