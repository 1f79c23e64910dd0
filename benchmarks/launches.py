"""Running launches of native kernels on arrays by themselves, outside of a plan."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from laminar.engine.compiler.codegen import driver_words
from laminar.engine.compiler.kernels import Buffer, Code, Launch, Scratch, Word
from laminar.engine.compiler.native.threads import Pool
from laminar.engine.compiler.target.code_cache import address_of

Array = np.ndarray[Any, Any]
_KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def aligned(shape: Sequence[int], dtype: Any = np.float32) -> Array:
    """An array of zeros at a multiple of 64 bytes."""
    num_bytes = int(np.prod(shape)) * np.dtype(dtype).itemsize
    memory = np.zeros(num_bytes + 64, np.uint8)
    start = -memory.ctypes.data % 64
    found: Array = memory[start : start + num_bytes].view(dtype).reshape(shape)
    return found


class Prepared:
    """Launches with their words in memory; `arrays[value]` is what a Buffer refers to."""

    def __init__(
        self,
        launches: Sequence[Launch],
        arrays: Mapping[int, Array] | Sequence[Array],
        allocate: Callable[[int], Array] = lambda size: aligned((size,), np.uint8),
    ) -> None:
        self._allocate = allocate
        self._arrays = arrays
        self._scratch: dict[str, Array] = {}
        sizes: dict[str, int] = {}
        for launch in launches:
            self._measure(launch.words, sizes)
        self._sizes = sizes
        self._blocks: list[Array] = []
        self._calls = [
            (_KERNEL(address_of(launch.code)), self._block(launch.words)) for launch in launches
        ]

    def _measure(self, word: object, sizes: dict[str, int]) -> None:
        if isinstance(word, Scratch):
            sizes[word.key] = max(sizes.get(word.key, 0), word.bytes)
        elif type(word) is tuple:
            for part in word:
                self._measure(part, sizes)

    def _block(self, words: Sequence[Word]) -> int:
        block = np.array([self._number(w) for w in words] or [0], np.int64)
        self._blocks.append(block)
        return int(block.ctypes.data)

    def _number(self, word: Word) -> int:
        match word:
            case int():
                return word
            case Buffer(value, offset):
                return int(self._arrays[value].ctypes.data) + offset
            case Scratch(key=key):
                if key not in self._scratch:
                    self._scratch[key] = self._allocate(self._sizes[key])
                return int(self._scratch[key].ctypes.data)
            case Code():
                return address_of(word)
            case _:
                return self._block(word)

    def run(self, nth: int = 1) -> None:
        """Run the launches; the shares of the threads one after another."""
        for kernel, words in self._calls:
            for tid in range(nth):
                kernel(words, tid, nth)

    def on(self, pool: Pool) -> Callable[[], None]:
        """What runs the launches on the threads of a pool, all at once."""
        flags = driver_words.PARALLEL | driver_words.BARRIER
        addresses = [ctypes.cast(kernel, ctypes.c_void_p).value for kernel, _ in self._calls]
        table = np.array(
            [(a, words, flags, 0) for a, (_, words) in zip(addresses, self._calls, strict=True)],
            np.int64,
        )
        plan = np.zeros(driver_words.PLAN_WORDS, np.int64)
        plan[driver_words.NUM_KERNELS] = len(table)
        plan[driver_words.KERNELS] = table.ctypes.data
        plan[driver_words.POOL] = pool.address
        self._blocks += [table, plan]
        address = plan.ctypes.data

        def run() -> None:
            pool.run(address)
            assert self._blocks, "they live as long as this"

        return run
