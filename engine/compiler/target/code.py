"""Native functions by what they are written from."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple


class Code(NamedTuple):
    """The address of a native function; equal codes are the same function.

    `writer(*parameters)` is the IR of a module that defines `symbol`; it is for vectors of
    `vector_bytes`, so that is what its text is to be compiled for.
    """

    symbol: str
    vector_bytes: int
    writer: Callable[..., str]
    parameters: tuple[object, ...]

    def text(self) -> str:
        """The IR."""
        return self.writer(*self.parameters)


def same(text: str) -> str:
    """The IR of code that has been written already."""
    return text
