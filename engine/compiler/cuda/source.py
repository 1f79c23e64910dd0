"""The text of a kernel while it is written: its arguments, and lines in blocks."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeAlias

from ...cuda_program import Kernel
from ..ir.sizes import is_known
from .prelude import PRELUDE

_NAME_FIGURES = 24  # of a digest, in the name of a kernel
_MARK = "@NAME@"


@dataclass(frozen=True)
class Pointer:
    """The address of an element of a storage."""

    storage: int
    offset: int


@dataclass(frozen=True)
class Number:
    """A size or a stride; it may hold symbolic sizes."""

    value: int


@dataclass(frozen=True)
class Part:
    """The size of a part: ceil(size / parts) * inner."""

    size: int
    parts: int
    inner: int


@dataclass(frozen=True)
class Failed:
    """The address of the number that says that a check has failed."""


ArgumentSpec: TypeAlias = Pointer | Number | Part | Failed


class Source:
    """Lines of CUDA C, and the arguments that they take.

    Arguments are numbered in the order in which they are first asked for, so kernels that do the
    same have the same text.

    Attributes:
        arguments: what they are.
        types: in C.
        index: the C type of places in memory.
    """

    def __init__(self, index: str) -> None:
        self.index = index
        self.arguments: list[ArgumentSpec] = []
        self.types: list[str] = []
        self.lines: list[str] = []
        self._names = 0

    def name(self) -> str:
        """A new name for a value."""
        self._names += 1
        return f"t{self._names - 1}"

    def argument(self, spec: ArgumentSpec, kind: str) -> str:
        """The name of an argument, which is added if it is not there."""
        if spec not in self.arguments:
            self.arguments.append(spec)
            self.types.append(kind)
        return f"a{self.arguments.index(spec)}"

    def number(self, value: int) -> str:
        """A number: as it is, or an argument if only a run knows it."""
        if is_known(value):
            is_long = self.index != "int" or abs(value) >= 1 << 31
            return f"{value}ll" if is_long else str(value)
        return f"({self.index}){self.argument(Number(value), 'long long')}"

    def add(self, *lines: str) -> None:
        """Add lines."""
        self.lines.extend(lines)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines within braces."""
        self.lines.append(f"{head} {{")
        yield
        self.lines.append("}")

    @property
    def parameters(self) -> str:
        """The parameters of the function."""
        return ", ".join(f"{kind} a{i}" for i, kind in enumerate(self.types))


def indented(lines: Sequence[str]) -> str:
    """Lines with two spaces for each brace that is open."""
    depth, found = 0, []
    for line in lines:
        depth -= line.startswith("}")
        found.append("" if not line else line if line.startswith("#") else "  " * depth + line)
        depth += line.endswith("{")
    return "\n".join(found) + "\n"


def kernel(lines: Sequence[str], bounds: int) -> Kernel:
    """A kernel of lines whose last function is `@(parameters) {...}`.

    Args:
        lines: of the functions; where the name of the kernel belongs, there is `@`.
        bounds: the most threads of a block.
    """
    head = f'extern "C" __global__ void __launch_bounds__({bounds}) {_MARK}'
    text = indented([head + line[1:] if line.startswith("@") else line for line in lines])
    digest = hashlib.sha256((PRELUDE + text).encode()).hexdigest()[:_NAME_FIGURES]
    name = f"lm_{digest}"
    return Kernel(name, PRELUDE + text.replace(_MARK, name))
