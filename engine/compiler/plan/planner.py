"""Plans: a laid-out program with code and real sizes.

A `ExecutablePlan` is what a `CompiledProgram` becomes for some sizes: the words of each kernel, the
table that the driver runs through, the size of an arena.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ...errors import InternalError
from ...graph import Array
from ..codegen import driver_words
from ..ir.kernel_target import Target
from ..ir.launch import Buffer, Scratch, Word, is_block
from ..ir.program import Loop
from ..schedule.buffer_assignment import arrange
from ..target.code import Code
from ..target.code_cache import Native, native
from ..target.thread_count import num_threads
from .compiled_program import CompiledProgram
from .executable_plan import ARENA, MEMORY, PLAN, ExecutablePlan, driver_codes
from .kernel_table import KernelTable, kernel_table
from .launches import Launches, PlannedLaunch, all_of


@dataclass(frozen=True)
class _Constant:
    """The memory of a constant storage."""

    storage: int


# What a word is relative to while a plan is made: a base of `ExecutablePlan`, a constant, a
# function.
_Base: TypeAlias = "int | _Constant | Code"


class Planner:
    """Plans a compiled program for real sizes.

    Args:
        compiled: the code.
        values: the real sizes of the symbolic sizes.
        externals: storage -> its place in the table of arrays, of those that come with each run.
        wants: for each array of the table, what it must be.
        target: what kernels are for.
    """

    def __init__(
        self,
        compiled: CompiledProgram,
        values: Sequence[int],
        externals: dict[int, int],
        wants: Sequence[int],
        target: Target,
    ) -> None:
        self._compiled = compiled
        self._layout = compiled.layout
        self._program = self._layout.program
        self._externals = externals
        self._wants = wants
        self._values = values
        self._real = compiled.sizes(values).real
        self._launches = Launches(compiled, self._real, target)
        # State: blocks of words, one after the other; what words are relative to, by place; the
        # words that the driver fills in; those that loops move on, by window: their places, and how
        # far into the window they are; which operations each function is for.
        self._words: list[int] = []
        self._moves: list[tuple[int, _Base]] = []
        self._patches: list[tuple[int, int, int]] = []  # place, array, offset
        self._moving: dict[int, list[tuple[int, int]]] = {}
        self._labels: dict[Code, tuple[str, ...]] = {}
        # The thread whose words are added; of what each has for itself, how far apart that is.
        self._planned: list[PlannedLaunch] = []

    def plan(self, variables: Sequence[int]) -> ExecutablePlan:
        """The executable plan; `variables` are the inputs of the cluster that are variables."""
        launches = self._planned = self._launches.make()
        self._place_arena(launches)
        is_parallel = any(launch.flags & driver_words.PARALLEL for launch in launches)
        kernels = self._table(launches, None)
        patches = len(self._words)
        for place, array, offset in self._patches:
            self._put(8 * place, MEMORY)
            self._put(array)
            self._put(offset)
        wants = len(self._words)
        for want in self._wants:
            self._put(want)
        natives, constants, moves = self._bases()
        others = dict.fromkeys(code for x in all_of(launches) for code in x.launch.others)
        natives += [native(code) for code in others if code not in self._labels]
        return ExecutablePlan(
            np.array(self._words, np.int64),
            moves,
            (patches, kernels, wants),
            (len(self._patches), len(launches), len(self._wants)),
            self._arena_bytes,
            constants,
            (*natives, *driver_codes(is_parallel)),
            tuple(tuple(map(self._real, view.shape)) for view in self._program.outputs),
            tuple(variables),
            is_parallel,
            self._launches.is_long,
            sum(x.kernel in self._launches.free for x in launches),
        )

    @property
    def launched(self) -> list[int]:
        """Of what the driver runs one after the other, the numbers of the kernels."""
        return [x.kernel for x in self._planned]

    def table(self, places: Mapping[str, str]) -> KernelTable:
        """What the kernels compute; `places` has the user's line for each operation."""
        return kernel_table(
            self._compiled,
            self._compiled.known_sizes(self._values),
            self._real,
            self._planned,
            self._launches.unused,
            self._arena_bytes,
            places,
        )

    def _put(self, word: int, base: _Base | None = None) -> None:
        if base is not None:
            self._moves.append((len(self._words), base))
        self._words.append(word)

    def _bases(self) -> tuple[list[Native], tuple[Array, ...], Array]:
        """The codes and constants that words are relative to, and those words."""
        bases = dict.fromkeys(base for _, base in self._moves)
        kept = [base for base in bases if isinstance(base, _Constant)]
        codes = [base for base in bases if isinstance(base, Code)]
        # Constants and codes come after those.
        numbers: dict[_Base, int] = {MEMORY: MEMORY, ARENA: ARENA, PLAN: PLAN}
        others: list[_Base] = [*kept, *codes]
        for base in others:
            numbers[base] = len(numbers)
        moves = np.array([(place, numbers[base]) for place, base in self._moves], np.int64)
        constants = [self._program.storages[base.storage].value for base in kept]
        natives = [native(code, self._labels.get(code, ())) for code in codes]
        return natives, tuple(c for c in constants if c is not None), moves.reshape(-1, 2)

    # Memory

    def _place_arena(self, launches: Sequence[PlannedLaunch]) -> None:
        ranges: dict[object, tuple[int, int]] = {}
        ranges.update(
            (n, r) for n, r in self._launches.ranges.items() if n not in self._launches.unused
        )
        sizes: dict[object, int] = {}
        for number in ranges:
            assert isinstance(number, int)
            # Arrays that share it have the same number of elements, of the same type.
            sizes[number] = self._launches.num_bytes(number)
        for planned in all_of(launches):
            k = planned.kernel
            for scratch in _scratch_of(planned.launch.words):
                ranges[k, scratch.key] = (k, k)
                sizes[k, scratch.key] = max(sizes.get((k, scratch.key), 0), scratch.bytes)
        self._offsets, self._arena_bytes = arrange(ranges, sizes)

    def _address(self, number: int) -> tuple[int, _Base]:
        """Where a storage of the arena, or a constant, is."""
        number = self._layout.place[number]
        storage = self._program.storages[number]
        if storage.role == "constant":
            return 0, _Constant(number)
        if storage.role != "temporary":
            raise InternalError(f"storage {number} has no place of its own")
        return self._offsets[number], ARENA

    def _table(self, launches: Sequence[PlannedLaunch], thread: int | None) -> int:
        """Add a table of kernels, as one thread or all of them take it; gives its place."""
        blocks = [
            self._block(x.launch.words, x.kernel)
            if x.loop is None
            else self._loop_block(x.loop, x, thread)
            for x in launches
        ]
        start = len(self._words)
        for planned, block in zip(launches, blocks, strict=True):
            code = planned.launch.code
            self._name(code, planned.kernel)
            self._put(0, code)
            self._put(8 * block, MEMORY)
            self._put(planned.flags)
            if planned.result is not None:
                self._put(*self._address(planned.result))
            elif planned.flags & driver_words.CHECK:
                self._put(8 * (block + driver_words.LOOP_FAILED), MEMORY)
            else:
                self._put(0)
        return start

    def _loop_block(self, loop: Loop, planned: PlannedLaunch, thread: int | None) -> int:
        """Add the words of a loop, and what each thread takes; gives their place."""
        count = num_threads() if planned.flags & driver_words.PARALLEL else 1
        parts = [
            self._loop_part(loop, planned, i) if thread in (None, i) else None for i in range(count)
        ]
        table = len(self._words)
        for part in parts:
            if part is None:
                self._put(0)
            else:
                self._put(8 * part, MEMORY)
        start = len(self._words)
        self._put(0, PLAN)
        self._put(driver_words.ENDLESS if loop.count is None else self._real(loop.count))
        self._put(8 * table, MEMORY)
        self._put(0)
        self._put(planned.is_cancellable)
        self._put(0)
        return start

    def _loop_part(self, loop: Loop, planned: PlannedLaunch, thread: int) -> int:
        """Add what a thread takes of a loop: its kernels, and what it moves on."""
        self._moving.update((number, []) for number in loop.windows)
        kernels = self._table(planned.repeated, thread)
        moves = len(self._words)
        for number in loop.windows:
            storage = self._program.storages[number]
            window, size = storage.window, storage.dtype.size
            assert window is not None
            for place, offset in self._moving[number]:
                self._put(8 * place, MEMORY)
                self._put_address(window.base, self._real(window.offset) * size + offset)
                self._put(self._real(window.step) * size)
        count = (len(self._words) - moves) // driver_words.MOVE_WORDS
        start = len(self._words)
        self._put(8 * kernels, MEMORY)
        self._put(len(planned.repeated))
        self._put(8 * moves, MEMORY)
        self._put(count)
        return start

    def _put_address(self, number: int, offset: int) -> None:
        """Add the address of a storage, `offset` bytes in."""
        number = self._layout.place[number]
        array = self._externals.get(number)
        if number in self._moving:
            self._moving[number].append((len(self._words), offset))
            self._put(0)
        elif array is None:
            start, base = self._address(number)
            self._put(start + offset, base)
        else:
            self._patches.append((len(self._words), array, offset))
            self._put(0)

    def _name(self, code: Code, k: int) -> None:
        """Note which operations a function is for."""
        if code not in self._labels:
            self._labels[code] = self._compiled.labels(self._compiled.kernels[k])

    def _block(self, words: Sequence[Word], k: int) -> int:
        """Add a block of words, after those that it points to; gives the place of the first."""
        blocks = [self._block(word, k) for word in words if is_block(word)]
        start, inner = len(self._words), iter(blocks)
        for word in words:
            if isinstance(word, int):  # most are
                self._words.append(word)
            elif is_block(word):
                self._put(8 * next(inner), MEMORY)
            elif isinstance(word, Buffer):
                self._put_address(word.value, word.offset)
            elif isinstance(word, Scratch):
                self._put(self._offsets[k, word.key], ARENA)
            elif isinstance(word, Code):
                self._name(word, k)
                self._put(0, word)
            else:
                assert not isinstance(word, tuple)
                self._put(int(word))
        if not words:
            self._put(0)
        return start


def _scratch_of(words: Sequence[Word]) -> list[Scratch]:
    """The scratch memory among a block of words, or those that it points to."""
    found = []
    for word in words:
        if is_block(word):
            found += _scratch_of(word)
        elif isinstance(word, Scratch):
            found.append(word)
    return found
