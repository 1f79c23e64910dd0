"""What a command has found: data for programs, texts and tables for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple


class Rows(NamedTuple):
    """A table.

    Attributes:
        rows: of cells.
        head: the titles of the columns; none for a list of properties.
        left: so many columns begin at the left.
    """

    rows: Sequence[Sequence[str]]
    head: Sequence[str] = ()
    left: int = 1


@dataclass(frozen=True)
class Found:
    """What a command has found.

    Attributes:
        data: of the kinds that JSON has.
        shown: what people read.
    """

    data: Any
    shown: Sequence[str | Rows] = field(default=())
