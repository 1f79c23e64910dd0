"""Shuffling through a buffer: which element comes next.

The buffer holds the next elements; one of them is drawn, and the element after them takes its
place. At the end what is left comes in random order. So an element comes at most `buffer` - 1
places earlier than it was, and with a buffer of all elements the order is a uniform permutation.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from .epochs import Epoch, generator

# Draws are made in chunks, so that the state of the random numbers is their count.
CHUNK: Final = 4096
_REST: Final = 1
_DRAWS: Final = 0


def draws(seed: int, walk: Epoch, chunk: int) -> Any:
    """The random numbers in [0, 1) of a chunk of draws."""
    return generator(seed, (*walk, _DRAWS, chunk)).random(CHUNK)


def order_of_rest(count: int, seed: int, walk: Epoch) -> Any:
    """In which order the last `count` elements come."""
    return generator(seed, (*walk, _REST)).permutation(count)


def buffered_order(size: int, buffer: int, seed: int, walk: Epoch) -> Any:
    """All `size` elements in the order that a buffer gives, without a step for each.

    The draw of time t takes what was put into its place last: the element `buffer` + s when the
    last draw of the same place was that of time s, otherwise the first element of the place.
    """
    count = size - buffer
    if count <= 0:
        return order_of_rest(size, seed, walk)
    chunks = [draws(seed, walk, chunk) for chunk in range(-(-count // CHUNK))]
    places = (np.concatenate(chunks)[:count] * buffer).astype(np.int64)
    by_place = np.argsort(places, kind="stable")
    sorted_places = places[by_place]
    is_again = np.flatnonzero(sorted_places[1:] == sorted_places[:-1]) + 1
    drawn = places.copy()
    drawn[by_place[is_again]] = by_place[is_again - 1] + buffer
    rest = np.arange(buffer)
    rest[places] = np.arange(count) + buffer  # the last one of each place stays
    return np.concatenate([drawn, rest[order_of_rest(buffer, seed, walk)]])
