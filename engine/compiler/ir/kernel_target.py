"""What kernels are planned for: registers, threads, and the code that is loaded already."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ...graph import DType
from ..target.code import Code
from ..target.host import is_arm
from .launch import Buffer, Word


class AvailableCode(Protocol):
    """The codes that are loaded, so that they need not be compiled."""

    def has(self, code: Code) -> bool:
        """Whether a code is among them."""
        ...

    def __len__(self) -> int: ...


class Target(NamedTuple):
    """What kernels are for.

    vector_bytes: the size of a vector register.
    threads: how many threads there may be: each has scratch memory of its own.
    has_sizes: whether the same is going to be planned for other sizes: then a launch tells what
        they need.
    available: the only code to use; None: anything can be compiled.
    unaligned: the values that may begin anywhere; all others begin at a line of the cache.
    """

    vector_bytes: int
    threads: int
    has_sizes: bool = False
    available: AvailableCode | None = None
    unaligned: frozenset[int] = frozenset()

    @property
    def registers(self) -> int:
        """The vector registers to plan with: of AVX-512 32, of x86 otherwise 16.

        ARM has 32, too, but operands come from registers alone: with fewer than four to load them
        ahead of their use, LLVM moves sums to the stack.
        """
        if self.vector_bytes == 64:
            return 32
        return 28 if is_arm() else 16

    def lanes(self, dtype: DType) -> int:
        """Elements of a vector."""
        return self.vector_bytes // dtype.size

    def may_be_unaligned(self, data: Word) -> bool:
        """Whether memory may begin anywhere in a line of the cache; only a run knows."""
        return isinstance(data, Buffer) and data.value in self.unaligned
