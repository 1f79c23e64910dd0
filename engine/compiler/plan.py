"""Plans: a laid-out program with code and real sizes, ready to run.

A `Structure` is what a program is for any sizes: kernels and their code. An `Instance` is that for
some sizes: the words of each kernel, an arena, the table that the driver runs through.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..errors import InternalError
from ..graph import Array
from . import driver
from .codes import address_of
from .fuse import Kernel, strides_over
from .kernels.launch import Buffer, Code, Epilogue, Launch, Scratch, Stream, Word
from .layout import Layout, arrange, live_ranges
from .loop_words import BufferWord, Loops, ModeWord, NumberWord, PartWord, WordSpec
from .loops import LoopWriter
from .program import contiguous
from .report import dump_code
from .sizes import Sizes
from .threads import driver_code, pool

_ENTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)

# A kernel over fewer bytes, or with fewer multiplications, runs on one thread: meeting the others
# would take longer.
_PARALLEL_BYTES = 1 << 19
_PARALLEL_WORK = 1 << 20
# Threads are woken for a plan with as much of that together.
_WAKING = 4
_FEW_ROWS = 16
_ALIGNMENT = 64


class Structure:
    """The kernels of a program and their code.

    Args:
        layout: the program.
        derived: see Builder.
        vector_bytes: of the host's vectors.
        name: of the cluster, for reports.
    """

    def __init__(
        self,
        layout: Layout,
        derived: Sequence[Callable[[Callable[[int], int]], int]],
        vector_bytes: int,
        name: str,
    ) -> None:
        self.layout = layout
        self.derived = tuple(derived)
        self.name = name
        self.loops: list[Loops | None] = []
        for kernel in layout.kernels:
            loops = self._write(kernel, vector_bytes)
            self.loops.append(loops)
            if loops is not None:
                dump_code(self.label(kernel), loops.code)

    def _write(self, kernel: Kernel, vector_bytes: int) -> Loops | None:
        if not kernel.statements:
            return None
        writer = LoopWriter(self.layout.program, kernel, self.layout.stored, vector_bytes)
        return writer.write() if kernel.library is None else writer.write_epilogue()

    def label(self, kernel: Kernel) -> str:
        """The operations that a kernel came from."""
        labels = self.layout.program.labels
        names = dict.fromkeys(labels.get(id(s), "") for s in kernel.all_statements)
        return "+".join(n for n in names if n) or self.name


class Instance:
    """A structure with real sizes.

    Args:
        structure: the code.
        values: the real sizes of the stand-ins.
        externals: storage -> its place in the table of arrays, of those that come with each run.
        wants: for each array of the table, what it must be.
    """

    def __init__(
        self,
        structure: Structure,
        values: Sequence[int],
        externals: dict[int, int],
        wants: Sequence[int],
    ) -> None:
        self.lock = threading.Lock()
        self._structure = structure
        self._layout = structure.layout
        self._program = self._layout.program
        self._externals = externals
        self._real = _sizes(values, structure).real
        self._blocks: list[list[int]] = []
        self._addresses: list[tuple[int, int, int, int]] = []  # block, place, array, offset
        self._pointers: list[tuple[int, int, int]] = []  # block, place, block pointed to
        self._held: list[Any] = [s.value for s in self._program.storages if s.value is not None]
        launches = self._launches()
        self._place_arena(launches)
        self._make_tables(launches, wants)

    def output_shapes(self) -> list[tuple[int, ...]]:
        """The real shape of each output."""
        return [tuple(self._real(n) for n in view.shape) for view in self._program.outputs]

    # Planning

    def _launches(self) -> list[tuple[Launch, int, str, int]]:
        """(launch, flags, label, kernel) in order; loop kernels get their words as launches too."""
        found: list[tuple[Launch, int, str, int]] = []
        loads = [self._load(kernel) for kernel in self._layout.kernels]
        is_worth_it = sum(load for load in loads if load >= 1) >= _WAKING
        for k, (kernel, loops) in enumerate(
            zip(self._layout.kernels, self._structure.loops, strict=True)
        ):
            label = self._structure.label(kernel)
            flags = driver.PARALLEL if is_worth_it and loads[k] >= 1 else 0
            if kernel.library is not None:
                more: dict[str, Any] = {}
                if kernel.library.shape is not None:
                    more["epilogue"] = None
                    if loops is not None:
                        words = self._words(loops.words)
                        more["epilogue"] = Epilogue(loops.code, words, self._streams(kernel))
                planned = kernel.library.plan(self._real, **more)
                found.extend((launch, flags, label, k) for launch in planned)
            elif kernel.check is not None:
                found.append((Launch(_nothing(), ()), driver.CHECK, label, k))
            else:
                assert loops is not None
                found.append((Launch(loops.code, self._words(loops.words)), flags, label, k))
        return found

    def _load(self, kernel: Kernel) -> float:
        """How much work a kernel has that threads can share; from 1 on it is worth it.

        Sizes alone decide, so results cannot depend on the number of threads.
        """
        if kernel.check is not None:
            return 0
        if kernel.axes is not None and kernel.split is None and not kernel.kept:
            return 0  # one number
        load = 0.0
        if kernel.library is not None:
            load = self._real(kernel.library.work) / _PARALLEL_WORK
        for number in {v.storage for v in kernel.views} | kernel.writes:
            if number in self._layout.stored:
                load += self._bytes(number) / _PARALLEL_BYTES
        return load

    def _bytes(self, number: int) -> int:
        storage = self._program.storages[number]
        count = storage.dtype.size
        for n in storage.shape:
            count *= self._real(n)
        return count

    def _streams(self, kernel: Kernel) -> tuple[Stream, ...]:
        """The memory besides its result that an epilogue goes through element by element."""
        made = kernel.writes - self._program.updates.keys()
        found = []
        for view in sorted(kernel.views, key=lambda v: (v.storage, v.offset)):
            strides = strides_over(view, kernel)
            if view.storage not in made and strides == contiguous(kernel.shape):
                size = self._program.storages[view.storage].dtype.size
                data = Buffer(view.storage, self._real(view.offset) * size)
                found.append(Stream(data, self._real(kernel.shape[-1]) * size))
        return tuple(found)

    def _words(self, specs: Sequence[WordSpec]) -> tuple[Word, ...]:
        return tuple(self._word(spec) for spec in specs)

    def _word(self, spec: WordSpec) -> Word:
        real = self._real
        if isinstance(spec, BufferWord):
            return Buffer(spec.storage, real(spec.offset))
        if isinstance(spec, NumberWord):
            return real(spec.value)
        if isinstance(spec, PartWord):
            return -(-real(spec.size) // real(spec.parts)) * real(spec.inner)
        assert isinstance(spec, ModeWord)
        return int(real(spec.outer) < _FEW_ROWS < real(spec.inner))

    # Memory

    def _place_arena(self, launches: Sequence[tuple[Launch, int, str, int]]) -> None:
        ranges: dict[object, tuple[int, int]] = {}
        ranges.update(live_ranges(self._layout).items())
        sizes: dict[object, int] = {}
        for number in ranges:
            assert isinstance(number, int)
            # Arrays that share it have the same number of elements, of the same type.
            sizes[number] = self._bytes(number)
        for launch, _, _, k in launches:
            for scratch in _scratches(launch.words):
                ranges[k, scratch.key] = (k, k)
                sizes[k, scratch.key] = max(sizes.get((k, scratch.key), 0), scratch.bytes)
        self._offsets, self.arena_bytes = arrange(ranges, sizes)
        self._arena = np.empty(self.arena_bytes + _ALIGNMENT, np.uint8)
        start = self._arena.ctypes.data
        self._base = start + -start % _ALIGNMENT

    def _make_tables(
        self, launches: Sequence[tuple[Launch, int, str, int]], wants: Sequence[int]
    ) -> None:
        rows: list[tuple[int, int, int, int]] = []
        is_parallel = [bool(flags & driver.PARALLEL) for _, flags, _, _ in launches]
        for i, (launch, flags, label, k) in enumerate(launches):
            follows = i + 1 < len(launches) and is_parallel[i + 1]
            if is_parallel[i] or follows or flags & driver.CHECK:
                flags |= driver.BARRIER
            result = 0
            if flags & driver.CHECK:
                check = self._layout.kernels[k].check
                assert check is not None
                result = self._address(check.view.storage)
            block = self._block(launch.words, k)
            rows.append((address_of(launch.code, label), block, flags, result))
        words, starts = self._write_blocks()
        table = np.array(
            [(code, starts[block], flags, result) for code, block, flags, result in rows], np.int64
        ).reshape(-1, 4)
        patches = np.array(
            [(starts[b] + 8 * i, array, offset) for b, i, array, offset in self._addresses],
            np.int64,
        ).reshape(-1, 3)
        asked = np.array(wants, np.int64)
        self._plan = np.zeros(driver.PLAN_WORDS, np.int64)
        self._plan[driver.NUM_ARRAYS] = len(asked)
        self._plan[driver.WANTS] = asked.ctypes.data
        self._plan[driver.NUM_ADDRESSES] = len(patches)
        self._plan[driver.ADDRESSES] = patches.ctypes.data
        self._plan[driver.NUM_KERNELS] = len(table)
        self._plan[driver.KERNELS] = table.ctypes.data
        self._plan[driver.ARRAY_TYPE] = id(np.ndarray)
        self.refused = np.zeros(len(asked), np.int64)
        self._plan[driver.REFUSED] = self.refused.ctypes.data
        self.address: int = self._plan.ctypes.data
        self.num_kernels = len(table)
        self.is_parallel = any(is_parallel)
        self._held.extend([words, table, patches, asked])
        self._enter = _ENTER(address_of(driver_code("enter")))
        self._run = _ENTER(address_of(driver_code("run")))
        self._status = ctypes.c_int64.from_address(self.address + 8 * driver.STATUS)

    def _address(self, number: int) -> int:
        """Where a storage of the arena, or a constant, is."""
        number = self._layout.place[number]
        storage = self._program.storages[number]
        if storage.role == "constant":
            assert storage.value is not None
            data: int = storage.value.ctypes.data
            return data
        if storage.role != "temporary":
            raise InternalError(f"storage {number} has no place of its own")
        return self._base + self._offsets[number]

    def _block(self, words: Sequence[Word], k: int) -> int:
        """Add a block of words; gives its number."""
        number = len(self._blocks)
        block: list[int] = []
        self._blocks.append(block)
        for word in words:
            if isinstance(word, Buffer):
                place = self._layout.place[word.value]
                array = self._externals.get(place)
                if array is None:
                    block.append(self._address(place) + word.offset)
                else:
                    self._addresses.append((number, len(block), array, word.offset))
                    block.append(0)
            elif isinstance(word, Scratch):
                block.append(self._base + self._offsets[k, word.key])
            elif isinstance(word, Code):
                block.append(address_of(word, self._structure.name))
            elif isinstance(word, tuple):
                inner = self._block(word, k)  # type: ignore[arg-type]  # no Buffer, Scratch, Code
                self._pointers.append((number, len(block), inner))
                block.append(0)
            else:
                block.append(int(word))
        return number

    def _write_blocks(self) -> tuple[Array, list[int]]:
        """All blocks as one array, and the address of each."""
        starts = []
        total = 0
        for block in self._blocks:
            starts.append(total)
            total += max(len(block), 1)
        words = np.zeros(total + 1, np.int64)
        base: int = words.ctypes.data
        for start, block in zip(starts, self._blocks, strict=True):
            words[start : start + len(block)] = block
        addresses = [base + 8 * start for start in starts]
        for block_number, place, pointed in self._pointers:
            words[starts[block_number] + place] = addresses[pointed]
        return words, addresses

    # Running

    def run(self, objects: bytes) -> int:
        """Run on a table of the addresses of array objects; gives a status of the driver."""
        threads = pool() if self.is_parallel else None
        if threads is None or not threads.lock.acquire(blocking=False):
            self._run(self.address, objects)
            return self._status.value
        try:
            self._enter(self.address, objects)
            if self._status.value == driver.DONE:
                self._plan[driver.POOL] = threads.address
                threads.run(self.address)
        finally:
            threads.lock.release()
        return self._status.value


def _sizes(values: Sequence[int], structure: Structure) -> Sizes:
    """The real sizes, with those that are derived from them."""
    sizes = Sizes(values)
    known = list(values)
    for derive in structure.derived:
        known.append(derive(sizes.real))
        sizes = Sizes(known)
    return sizes


def _scratches(words: Sequence[Word]) -> list[Scratch]:
    found = []
    for word in words:
        if isinstance(word, Scratch):
            found.append(word)
        elif isinstance(word, tuple) and not isinstance(word, Buffer | Code):
            found.extend(_scratches(word))  # type: ignore[arg-type]  # a block of words
    return found


def _nothing() -> Code:
    """A kernel that does nothing, for checks."""
    return driver_code("nothing")
