"""What a plan of kernels is made of: launches of generic code with the words it reads.

Every launchable kernel is `void kernel(ptr args, i64 tid, i64 nth)`. `args` is an array of 8-byte
words; thread `tid` of `nth` does its share, and the results do not depend on `nth`. All threads
finish one launch before the next begins; nothing waits inside of a launch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias, TypeGuard

from ..target.code import Code


class Buffer(NamedTuple):
    """The address of a value of the plan, `offset` bytes in."""

    value: int
    offset: int = 0


class Scratch(NamedTuple):
    """The address of memory that lives as long as the launches of one plan_* call.

    Equal keys within one such call are the same memory. It begins at a multiple of 64 bytes.
    """

    bytes: int
    key: str


# A number, an address, or the address of a block of words.
Word: TypeAlias = "int | Buffer | Scratch | Code | tuple[Word, ...]"


def is_block(word: Word) -> TypeGuard[tuple[Word, ...]]:
    """Whether a word is the address of a block of words."""
    return type(word) is tuple


class Matrix(NamedTuple):
    """A matrix in memory, or a batch of them; strides are in elements, 0 repeats.

    batch_strides: for each axis of the batch.
    """

    data: Word
    row_stride: int
    column_stride: int
    batch_strides: tuple[int, ...] = ()


class Launch(NamedTuple):
    """One kernel to run on all threads, and the words at its `args`.

    `others` are codes that the same takes for other sizes, if those are not known yet.
    """

    code: Code
    words: tuple[Word, ...]
    others: tuple[Code, ...] = ()


def codes_in(launches: Sequence[Launch]) -> tuple[Code, ...]:
    """The codes that launches take, for other sizes too."""
    found = dict.fromkeys(code for x in launches for code in (x.code, *x.others))

    def note(words: tuple[Word, ...]) -> None:
        for word in words:
            if is_block(word):
                note(word)
            elif isinstance(word, Code):
                found[word] = None

    for launch in launches:
        note(launch.words)
    return tuple(found)


class Stream(NamedTuple):
    """Memory that is streamed once, in step with the rows of a result."""

    data: Word
    row_bytes: int


class Epilogue(NamedTuple):
    """What is done to each block of a result once it is complete and still in cache.

    `code` is `void epilogue(ptr words, i64 row0, i64 rows, i64 column0, i64 columns)`; for
    convolutions a row is an output pixel, for batched products a row of all batches. `streams` is
    other memory that it takes, which is fetched while the block is made. `result` is the number of
    the word that is the address of the result, if nobody else reads it: then it need not be stored.
    """

    code: Code
    words: tuple[Word, ...]
    streams: tuple[Stream, ...] = ()
    result: int | None = None
