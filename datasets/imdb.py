"""IMDB: 50,000 film reviews as word numbers, half of them favourable."""

from __future__ import annotations

import json
from typing import cast

import numpy as np

from .download import KERAS_FILES, fetch
from .npz import read_npz
from .sequences import check_any_kept, encode
from .splits import Split, generator, shuffled

URL = f"{KERAS_FILES}imdb.npz"
SHA256 = "69664113be75683a8fe16e3ed0ab59fda8886cb3cd7ada244f7d9544e4676b9f"
INDEX_URL = f"{KERAS_FILES}imdb_word_index.json"
INDEX_MD5 = "bfafd718b763782e994055a2d397834f"


def load_data(
    path: str = "imdb.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Split:
    """Film reviews, downloaded on first use (17 MB). Words are numbered by how often they occur.

    Args:
        path: name of the file in the cache folder.
        num_words: words numbered this or higher count as unknown; None: only the highest does.
        skip_top: words numbered lower than this count as unknown.
        maxlen: reviews of this many words or more are left out; None keeps all.
        seed: of the order of the reviews.
        start_char: stands before each review; None leaves it out.
        oov_char: stands for an unknown word; None leaves unknown words out.
        index_from: the words' numbers begin after this one.

    Returns:
        ((x_train, y_train), (x_test, y_test)): arrays of 25,000 lists of int, and int64 labels
        (25000,), 1 for a favourable review.

    Raises:
        InvalidArgumentError: no review is as short as `maxlen` asks.
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: A. L. Maas et al., Learning Word Vectors for Sentiment Analysis, ACL 2011.
    """
    file = fetch(path, URL, SHA256)
    x_train, y_train, x_test, y_test = read_npz(file, "x_train", "y_train", "x_test", "y_test")
    rng = generator(seed)
    x_train, y_train = shuffled(rng, x_train, y_train)
    x_test, y_test = shuffled(rng, x_test, y_test)
    texts, is_kept = encode(
        np.concatenate([x_train, x_test]),
        num_words=num_words,
        skip_top=skip_top,
        maxlen=maxlen,
        start_char=start_char,
        oov_char=oov_char,
        index_from=index_from,
    )
    labels = np.concatenate([y_train, y_test])[is_kept]
    count = int(np.count_nonzero(is_kept[: len(x_train)]))
    check_any_kept(texts[:count], maxlen)
    check_any_kept(texts[count:], maxlen)
    return (texts[:count], labels[:count]), (texts[count:], labels[count:])


def get_word_index(path: str = "imdb_word_index.json") -> dict[str, int]:
    """Word -> number, from 1 for the most frequent; `load_data` adds `index_from` to it.

    Args:
        path: name of the file in the cache folder.

    Raises:
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.
    """
    file = fetch(path, INDEX_URL, INDEX_MD5)
    return cast("dict[str, int]", json.loads(file.read_text("utf-8")))
