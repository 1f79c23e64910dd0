"""Texts as lists of word numbers: shifted, shortened to the known words.

All texts are worked on at once, as one array of words and the length of each text.
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from laminar.engine.errors import InvalidArgumentError


def encode(
    texts: NDArray[Any],
    *,
    num_words: int | None,
    skip_top: int,
    maxlen: int | None,
    start_char: int | None,
    oov_char: int | None,
    index_from: int,
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Number the words of texts as asked.

    In this order: add `index_from` to each word and put `start_char` first; drop texts of
    `maxlen` words or more; replace words outside [skip_top, num_words) by `oov_char`, or drop
    them where that is None. With `num_words` None the bound is the largest number that occurs,
    itself excluded, as in Keras.

    Args:
        texts: one sequence of integers per text.

    Returns:
        The texts as an array of lists, and a mask over `texts` of those that were kept.
    """
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    words = np.fromiter(chain.from_iterable(texts), np.int64, int(lengths.sum()))
    words += index_from
    if start_char is not None:
        words = np.insert(words, np.cumsum(lengths) - lengths, start_char)
        lengths += 1
    is_kept = lengths < maxlen if maxlen else np.ones(len(lengths), dtype=bool)
    words = words[np.repeat(is_kept, lengths)]
    lengths = lengths[is_kept]
    bound = num_words or int(words.max(initial=0))
    is_known = (words >= skip_top) & (words < bound)
    if oov_char is None:
        known_before = np.concatenate(([0], np.cumsum(is_known)))
        ends = np.cumsum(lengths)
        lengths = known_before[ends] - known_before[ends - lengths]
        words = words[is_known]
    else:
        words = np.where(is_known, words, oov_char)
    return _as_lists(words, lengths), is_kept


def _as_lists(words: NDArray[np.int64], lengths: NDArray[np.int64]) -> NDArray[Any]:
    flat = words.tolist()
    ends = np.cumsum(lengths)
    texts = (flat[start:end] for start, end in zip(ends - lengths, ends, strict=True))
    return np.fromiter(texts, dtype=object, count=len(lengths))


def check_any_kept(texts: NDArray[Any], maxlen: int | None) -> None:
    """Refuse a `maxlen` that leaves nothing."""
    if maxlen and not len(texts):
        raise InvalidArgumentError(
            f"load_data: no text is shorter than maxlen={maxlen} words",
            remedy="give a larger maxlen, or None",
        )
