"""What a kernel of loops takes: the meaning of its words, and the places it reads and writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from ...graph import DType
from ..ir.program import Shape
from ..target.code import Code
from .function import Value


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


class Access:
    """An affine place in memory, or an affine number, followed through the loops."""

    def __init__(self, storage: int | None, strides: Shape, offset: int, dtype: DType) -> None:
        self.storage = storage
        self.strides = strides  # along the axes of the kernel
        self.offset = offset
        self.dtype = dtype
        self.pointer = ""
        self.steps: list[Value] = []  # along the joined axes

    @property
    def moves(self) -> bool:
        """Whether it differs along the last axis."""
        return bool(self.steps) and self.steps[-1].name != "0"
