"""A result that its epilogue alone reads: block by block, in memory of the thread.

The epilogue finds it in cache, and no more than what it makes is written to memory. It is given the
address where the result would begin if all of it were there: one of its words, of which each thread
has copies in front of the block.
"""

from __future__ import annotations

from ...codegen.control import loop, replaced
from ...codegen.function import IRFunction, Value
from ...ir.launch import Epilogue, Scratch, Word
from ...target import host
from ..addressing import WORD_BYTES, Words, store, word

# A kernel with these has "epilogue_words", too.
SCRATCH_WORDS = ("own", "own_bytes", "num_epilogue_words", "result_word")


def plan_epilogue_scratch(
    epilogue: Epilogue | None, num_bytes: int, threads: int
) -> dict[str, Word]:
    """The words for blocks of so many bytes, or for a result that is needed in its own place."""
    if epilogue is None or epilogue.result is None:
        return dict.fromkeys(SCRATCH_WORDS, 0)
    count = host.whole_lines(len(epilogue.words) * WORD_BYTES) // WORD_BYTES
    each = count * WORD_BYTES + host.whole_lines(num_bytes)
    words = [*epilogue.words, *(0,) * (count - len(epilogue.words))]
    words[epilogue.result] = 0
    return {
        "own": Scratch(each * threads, "epilogue_scratch"),
        "own_bytes": each,
        "num_epilogue_words": count,
        "result_word": epilogue.result,
        "epilogue_words": tuple(words),
    }


class EpilogueScratch:
    """The memory of thread `tid`; `words` has SCRATCH_WORDS."""

    def __init__(self, fn: IRFunction, words: Words, tid: Value) -> None:
        self._fn = fn
        self._words = words
        self._copies = copies = words["own"] + words["own_bytes"] * tid
        self._block = copies + words["num_epilogue_words"] * WORD_BYTES

        def copy(i: Value) -> None:
            store(fn, word(fn, words["epilogue_words"], i), copies + i * WORD_BYTES)

        loop(fn, fn.number(0), words["num_epilogue_words"], 1, copy)

    def place(self, there: Value, offset: Value) -> tuple[Value, Value]:
        """Where a block is to be made, and the words of the epilogue for it.

        Args:
            there: where it is if the result has memory.
            offset: bytes from where the result begins to the block.
        """
        fn, words = self._fn, self._words

        def own() -> list[Value]:
            store(fn, self._block - offset, self._copies + words["result_word"] * WORD_BYTES)
            return [self._block, self._copies]

        found = replaced(fn, words["own"] != 0, [there, words["epilogue_words"]], own)
        return found[0], found[1]
