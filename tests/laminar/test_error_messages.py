"""Common mistakes: each gives one clear first line and the user's own line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from laminar.engine.errors import LaminarError

from . import mistakes, mistakes_in_training, mistakes_with_callbacks
from .mistakes import MISTAKES, Kinds
from .mistakes_in_training import MISTAKES_IN_TRAINING
from .mistakes_with_callbacks import MISTAKES_WITH_CALLBACKS

ALL = [*MISTAKES, *MISTAKES_IN_TRAINING, *MISTAKES_WITH_CALLBACKS]
# Where the mistakes are made.
FILES = {m.__file__ for m in (mistakes, mistakes_in_training, mistakes_with_callbacks)}


@pytest.mark.parametrize(("do", "kind", "words"), [m[1:] for m in ALL], ids=[m[0] for m in ALL])
def test_mistake(do: Callable[[Path], Any], kind: Kinds, words: str, tmp_path: Path) -> None:
    with pytest.raises(kind) as caught:
        do(tmp_path)
    error = caught.value
    assert isinstance(error, LaminarError), f"{type(error).__name__}: {error}"
    first = str(error).splitlines()[0]
    assert words in first, first
    assert error.location is not None, "the user's line is not named"
    assert error.location.filename in FILES, error.location


def test_the_table_is_long_enough() -> None:
    assert len(ALL) >= 120
