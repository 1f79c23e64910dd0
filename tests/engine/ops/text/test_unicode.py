"""Texts as numbers of characters and back, runs of words."""

from __future__ import annotations

import numpy as np
import pytest

from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import EagerTensor
from laminar.engine.ops.text.unicode import row_ngrams, unicode_decode, unicode_encode

TEXTS = ["", "aé", "日本 x"]


@pytest.mark.parametrize("encoding", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
def test_texts_and_numbers(encoding: str) -> None:
    given = EagerTensor(np.array([t.encode(encoding) for t in TEXTS], object))
    splits, numbers, places = unicode_decode.many(given, input_encoding=encoding)
    np.testing.assert_array_equal(splits.numpy(), np.cumsum([0, *map(len, TEXTS)]))
    np.testing.assert_array_equal(numbers.numpy(), [ord(c) for t in TEXTS for c in t])
    expected = [len(t[:i].encode(encoding)) for t in TEXTS for i in range(len(t))]
    np.testing.assert_array_equal(places.numpy(), expected)
    again = unicode_encode(numbers, splits, output_encoding=encoding)
    assert again.numpy().tolist() == given.numpy().tolist()


def test_bytes_of_no_character() -> None:
    given = EagerTensor(np.array([b"a\xffb"], object))
    _, numbers, _ = unicode_decode.many(given, input_encoding="UTF-8")
    np.testing.assert_array_equal(numbers.numpy(), [97, 0xFFFD, 98])
    with pytest.raises(InvalidArgumentError, match="is no text in UTF-8"):
        unicode_decode.many(given, input_encoding="UTF-8", errors="strict")


def test_runs_of_words() -> None:
    words = EagerTensor(np.array([b"a", b"b", b"c", b"d"], object))
    splits = EagerTensor(np.array([0, 3, 4]))
    found, runs = row_ngrams.many(words, splits, widths=(2,), separator=" ")
    np.testing.assert_array_equal(found.numpy(), [0, 2, 2])
    assert runs.numpy().tolist() == [b"a b", b"b c"]
