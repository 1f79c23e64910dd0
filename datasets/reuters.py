"""Reuters: 11,228 newswires as word numbers, on 46 topics."""

from __future__ import annotations

import json
from typing import cast

from .download import KERAS_FILES, fetch
from .npz import read_npz
from .sequences import check_any_kept, encode
from .splits import Split, check_test_split, generator, shuffled, split

URL = f"{KERAS_FILES}reuters.npz"
SHA256 = "d6586e694ee56d7a4e65172e12b3e987c03096cb01eab99753921ef915959916"
INDEX_URL = f"{KERAS_FILES}reuters_word_index.json"
INDEX_MD5 = "4d44cc38712099c9e383dc6e5f11a921"

# fmt: off
_TOPICS = (
    "cocoa", "grain", "veg-oil", "earn", "acq", "wheat", "copper", "housing", "money-supply",
    "coffee", "sugar", "trade", "reserves", "ship", "cotton", "carcass", "crude", "nat-gas", "cpi",
    "money-fx", "interest", "gnp", "meal-feed", "alum", "oilseed", "gold", "tin",
    "strategic-metal", "livestock", "retail", "ipi", "iron-steel", "rubber", "heat", "jobs", "lei",
    "bop", "zinc", "orange", "pet-chem", "dlr", "gas", "silver", "wpi", "hog", "lead",
)
# fmt: on


def load_data(
    path: str = "reuters.npz",
    num_words: int | None = None,
    skip_top: int = 0,
    maxlen: int | None = None,
    test_split: float = 0.2,
    seed: int = 113,
    start_char: int | None = 1,
    oov_char: int | None = 2,
    index_from: int = 3,
) -> Split:
    """Newswires, downloaded on first use (2 MB). Words are numbered by how often they occur.

    Args:
        path: name of the file in the cache folder.
        num_words: words numbered this or higher count as unknown; None: only the highest does.
        skip_top: words numbered lower than this count as unknown.
        maxlen: newswires of this many words or more are left out; None keeps all.
        test_split: fraction to test with.
        seed: of the order of the newswires.
        start_char: stands before each newswire; None leaves it out.
        oov_char: stands for an unknown word; None leaves unknown words out.
        index_from: the words' numbers begin after this one.

    Returns:
        ((x_train, y_train), (x_test, y_test)): arrays of 8,982 and 2,246 lists of int, and int64
        labels (8982,) and (2246,), 0 to 45, places in `get_label_names()`.

    Raises:
        InvalidArgumentError: `test_split` is outside [0, 1), or no newswire is as short as `maxlen`
            asks.
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.

    Source: D. D. Lewis, Reuters-21578 text categorization test collection, 1997.
    """
    check_test_split(test_split)
    x, y = shuffled(generator(seed), *read_npz(fetch(path, URL, SHA256), "x", "y"))
    texts, is_kept = encode(
        x,
        num_words=num_words,
        skip_top=skip_top,
        maxlen=maxlen,
        start_char=start_char,
        oov_char=oov_char,
        index_from=index_from,
    )
    check_any_kept(texts, maxlen)
    return split(texts, y[is_kept], test_split)


def get_word_index(path: str = "reuters_word_index.json") -> dict[str, int]:
    """Word -> number, from 1 for the most frequent; `load_data` adds `index_from` to it.

    Args:
        path: name of the file in the cache folder.

    Raises:
        UnavailableError, DataLossError: the file cannot be downloaded, or is not the right one.
    """
    file = fetch(path, INDEX_URL, INDEX_MD5)
    return cast("dict[str, int]", json.loads(file.read_text("utf-8")))


def get_label_names() -> tuple[str, ...]:
    """The topics, each at the place that is its label."""
    return _TOPICS
