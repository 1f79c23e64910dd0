"""What a pass over data is, and its random numbers."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

INFINITE: Final = -1
UNKNOWN: Final = -2

State: TypeAlias = dict[str, Any]
"""Where a cursor is: numbers, strings, lists and dicts, so that it can be written as JSON."""

Epoch: TypeAlias = tuple[int, ...]
"""Which pass over the data it is: the number of the walk, then that of each repetition inside."""


def generator(seed: int, walk: Epoch) -> np.random.Generator:
    """The random numbers of a pass."""
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, *walk])))
