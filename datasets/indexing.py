"""Rows of arrays, and orders of them: how shuffling and batching work on whole index arrays.

As long as a pipeline only picks examples that lie in memory, nothing is done for a single one: a
batch is one selection by an array of indices. A slice stands for indices in a row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np

from laminar.engine.graph import TensorSpec, as_dtype
from laminar.tree import flatten

from .buffers import Buffers
from .elements import packer

Block: TypeAlias = Any
"""Indices of rows: an array, or a slice."""


def length(block: Block) -> int:
    """The number of indices."""
    return block.stop - block.start if isinstance(block, slice) else len(block)


def joined(blocks: list[Block]) -> Block:
    """Blocks one after the other."""
    if len(blocks) == 1:
        return blocks[0]
    arrays = [np.arange(b.start, b.stop) if isinstance(b, slice) else b for b in blocks]
    return np.concatenate(arrays) if arrays else slice(0, 0)


class Rows:
    """Examples in memory. Abstract: `gather` is to be written."""

    def __init__(self, size: int) -> None:
        self.size = size

    def reader(self) -> Callable[[Block], Any]:
        """What gives the examples of a block, stacked; to be used by one cursor."""
        raise NotImplementedError

    def spec(self) -> Any:
        """The specs of an example."""
        raise NotImplementedError


class ArrayRows(Rows):
    """The rows of arrays of one length, in a structure."""

    def __init__(self, arrays: Any) -> None:
        self._leaves = [_read_only(a) for a in flatten(arrays)]
        self._pack = packer(arrays)
        super().__init__(len(self._leaves[0]))

    def reader(self) -> Callable[[Block], Any]:
        leaves, pack, buffers = self._leaves, self._pack, Buffers()

        def gather(block: Block) -> Any:
            if isinstance(block, slice):
                return pack([a[block] for a in leaves])
            return pack([buffers.take(a, block) for a in leaves])

        return gather

    def spec(self) -> Any:
        return self._pack([TensorSpec(a.shape[1:], as_dtype(a.dtype)) for a in self._leaves])


class RangeRows(Rows):
    """The numbers of a range."""

    def __init__(self, numbers: range) -> None:
        super().__init__(len(numbers))
        self._numbers = numbers

    def reader(self) -> Callable[[Block], Any]:
        start, step = self._numbers.start, self._numbers.step

        def gather(block: Block) -> Any:
            rows = np.arange(block.start, block.stop) if isinstance(block, slice) else block
            return rows * step + start

        return gather

    def spec(self) -> Any:
        return TensorSpec((), "int64")


class ZippedRows(Rows):
    """Rows of several, side by side."""

    def __init__(self, parts: Any) -> None:
        self._parts: list[Rows] = flatten(parts)
        self._pack = packer(parts)
        super().__init__(min(part.size for part in self._parts))

    def reader(self) -> Callable[[Block], Any]:
        readers, pack = [part.reader() for part in self._parts], self._pack
        return lambda block: pack([read(block) for read in readers])

    def spec(self) -> Any:
        return self._pack([part.spec() for part in self._parts])


def _read_only(array: Any) -> Any:
    view = array.view()
    view.flags.writeable = False
    return view
