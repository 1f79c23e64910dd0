"""What a kernel of loops takes: the meaning of its words, and the places it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ..target.code import Code


@dataclass(frozen=True)
class BufferWord:
    """The address of an element of a storage."""

    storage: int
    offset: int


@dataclass(frozen=True)
class NumberWord:
    """A size or a stride."""

    value: int


@dataclass(frozen=True)
class ModeWord:
    """Whether threads share the innermost axis (1) or the outermost one (0), by their sizes."""

    outer: int
    inner: int


@dataclass(frozen=True)
class PartWord:
    """The size of a part: ceil(size / parts) * inner."""

    size: int
    parts: int
    inner: int


WordSpec: TypeAlias = BufferWord | NumberWord | ModeWord | PartWord


@dataclass(frozen=True)
class Loops:
    """The code of a kernel, and what its words are."""

    code: Code
    words: tuple[WordSpec, ...]
