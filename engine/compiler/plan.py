"""Plans: a laid-out program with code and real sizes.

A `Structure` is what a program is for any sizes: kernels and their code. A `Recipe` is that for
some sizes: the words of each kernel, the table that the driver runs through, the size of an arena.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ..errors import InternalError
from ..graph import Array
from . import driver
from .codes import Native, native
from .fused import Kernel, strides_over
from .instance import ARENA, MEMORY, PLAN, Recipe, driver_codes
from .kernels.launch import (
    Buffer,
    Code,
    Epilogue,
    Launch,
    PlanWord,
    Scratch,
    Stream,
    Word,
    is_block,
)
from .layout import Layout, arrange, in_order, live_ranges
from .loop_words import BufferWord, Loops, ModeWord, NumberWord, PartWord, TurnWord, WordSpec
from .loops import LoopWriter
from .program import Library, Loop, contiguous, views_of
from .report import dump_code
from .sizes import Sizes
from .threads import driver_code, num_threads
from .turning import NEXT

# A kernel over fewer bytes, or with fewer multiplications, runs on one thread: meeting the others
# would take longer.
_PARALLEL_BYTES = 1 << 19
_PARALLEL_WORK = 1 << 20
# Threads are woken for a plan with as much of that together.
_WAKING = 4
# In a loop they are awake: they meet as soon for a part of that.
_NEAR = 8
# How often a loop runs whose end depends on data, to weigh it.
_SOME_TIMES = 10
_FEW_ROWS = 16


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
        self.kernels = list(in_order(layout.kernels))
        self.loops: list[Loops | None] = []
        for kernel in self.kernels:
            loops = self._write(kernel, vector_bytes)
            self.loops.append(loops)
            if loops is not None:
                dump_code(self.label(kernel), loops.code)

    def _write(self, kernel: Kernel, vector_bytes: int) -> Loops | None:
        if not kernel.statements:
            return None
        writer = LoopWriter(self.layout, kernel, vector_bytes)
        return writer.write() if kernel.library is None else writer.write_epilogue()

    def labels(self, kernel: Kernel) -> tuple[str, ...]:
        """The operations that a kernel came from."""
        labels = self.layout.program.labels
        names = dict.fromkeys(labels.get(id(s), "") for s in kernel.all_statements)
        return tuple(n for n in names if n)

    def label(self, kernel: Kernel) -> str:
        """The same in one word."""
        return "+".join(self.labels(kernel)) or self.name


@dataclass(frozen=True)
class _Constant:
    """The memory of a constant storage."""

    storage: int


# What a word is relative to while a plan is made: a base of `Recipe`, a constant, a function.
_Base: TypeAlias = "int | _Constant | Code"


class _Planned(NamedTuple):
    """A launch.

    Attributes:
        launch: the code and its words; those of a loop are made later.
        flags: see driver.
        kernel: the number of the kernel, as `in_order` counts.
        result: of a check, the storage that it looks at.
        loop: the loop, if it is one.
        repeated: what it repeats.
    """

    launch: Launch
    flags: int
    kernel: int
    result: int | None = None
    loop: Loop | None = None
    repeated: tuple[_Planned, ...] = ()


class Planner:
    """Plans a structure for real sizes.

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
        self._structure = structure
        self._layout = structure.layout
        self._program = self._layout.program
        self._externals = externals
        self._wants = wants
        self._real = _sizes(values, structure).real
        self._numbers = {id(kernel): k for k, kernel in enumerate(structure.kernels)}
        self._ranges = live_ranges(self._layout)
        # State: blocks of words, one after the other; what words are relative to, by place; the
        # words that the driver fills in; those that loops move on, by window: their places, and how
        # far into the window they are; whom each function is for; storages that need no memory.
        self._words: list[int] = []
        self._moves: list[tuple[int, _Base]] = []
        self._patches: list[tuple[int, int, int]] = []  # place, array, offset
        self._moving: dict[int, list[tuple[int, int]]] = {}
        self._labels: dict[Code, tuple[str, ...]] = {}
        self._unused: set[int] = set()

    def plan(self, variables: Sequence[int]) -> Recipe:
        """The recipe; `variables` are the inputs of the cluster that are variables."""
        launches = _with_barriers(self._launches(self._layout.kernels, 1))
        self._place_arena(launches)
        is_parallel = any(launch.flags & driver.PARALLEL for launch in launches)
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
        return Recipe(
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

    # Planning

    def _launches(
        self, kernels: Sequence[Kernel], times: int, *, is_inside: bool = False
    ) -> list[_Planned]:
        """The launches in order; loop kernels get their words as launches too.

        Args:
            kernels: of the plan, or of a loop.
            times: how often they run.
            is_inside: whether that is in a loop.
        """
        found: list[_Planned] = []
        loads = [self._load(kernel) * (_NEAR if is_inside else 1) for kernel in kernels]
        turn = driver.BACK  # the last run
        is_worth_it = sum(load for load in loads if load >= 1) * times >= _WAKING
        for kernel, load in zip(kernels, loads, strict=True):
            flags = driver.PARALLEL if is_worth_it and load >= 1 else 0
            k = self._numbers[id(kernel)]
            loops = self._structure.loops[k]
            if kernel.library is not None:
                turn = driver.FORWARD
                more: dict[str, Any] = {}
                if kernel.library.shape is not None:
                    more["epilogue"] = None
                    if loops is not None:
                        words = self._loop_words(loops.words)
                        result = self._own_result(kernel.library, words, k)
                        streams = self._streams(kernel)
                        more["epilogue"] = Epilogue(loops.code, words, streams, result)
                planned = kernel.library.plan(self._real, **more)
                self._note_unused(kernel.library, planned)
                found.extend(_Planned(launch, flags, k) for launch in planned)
            elif kernel.check is not None:
                flags = driver.CHECK | (driver.SETTLE if is_inside else 0)
                found.append(_Planned(_nothing(), flags, k, kernel.check.view.storage))
            elif kernel.loop is not None:
                turn = driver.FORWARD
                found.append(self._loop(kernel, kernel.loop))
            else:
                assert loops is not None
                if load >= 1:
                    can_turn = TurnWord() in loops.words and not is_inside
                    turn = NEXT[turn] if can_turn else driver.FORWARD
                words = self._loop_words(loops.words, turn if load >= 1 else driver.FORWARD)
                found.append(_Planned(Launch(loops.code, words), flags, k))
        return found

    def _loop(self, kernel: Kernel, loop: Loop) -> _Planned:
        """A loop with its launches."""
        k, times = self._numbers[id(kernel)], self._times(loop)
        launches = self._launches(kernel.test, times, is_inside=True)
        if loop.stop is not None:
            flags = driver.STOP | driver.SETTLE
            launches.append(_Planned(_nothing(), flags, k, loop.stop.storage))
        launches += self._launches(kernel.body, times, is_inside=True)
        flags = driver.PARALLEL if any(x.flags & driver.PARALLEL for x in launches) else 0
        if loop.has_checks:
            flags |= driver.CHECK
        repeated = _with_barriers(launches, is_inside=True)
        return _Planned(Launch(driver_code("loop"), ()), flags, k, None, loop, tuple(repeated))

    def _times(self, loop: Loop) -> int:
        return _SOME_TIMES if loop.count is None else self._real(loop.count)

    def _load(self, kernel: Kernel) -> float:
        """How much work a kernel has that threads can share; from 1 on it is worth it.

        Sizes alone decide, so results cannot depend on the number of threads.
        """
        if kernel.check is not None:
            return 0
        if kernel.loop is not None:
            loads = [self._load(k) * _NEAR for k in (*kernel.test, *kernel.body)]
            return self._times(kernel.loop) * sum(load for load in loads if load >= 1)
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
        """The memory besides its result that an epilogue goes through element by element.

        What it writes is fetched before, too: the processor does that for each line.
        """
        assert kernel.library is not None
        place = self._layout.place
        made = kernel.writes - self._program.updates.keys()
        views = {view for s in kernel.statements for view in views_of(s.operands)}
        wanted = sorted(
            (v for v in views if v.storage not in made), key=lambda v: (v.storage, v.offset)
        )
        known = {place[v.storage] for v in wanted} | {place[n] for n in kernel.library.writes}
        for s in kernel.statements:
            number = s.target.storage
            if number in self._layout.stored and place[number] not in known:
                wanted.append(s.target)
                known.add(place[number])
        found = []
        for view in wanted:
            if strides_over(view, kernel) == contiguous(kernel.shape):
                size = self._program.storages[view.storage].dtype.size
                data = Buffer(view.storage, self._real(view.offset) * size)
                found.append(Stream(data, self._real(kernel.shape[-1]) * size))
        return tuple(found)

    def _own_result(self, library: Library, words: Sequence[Word], k: int) -> int | None:
        """The word that is the address of what a contraction makes, if only kernel k reads that."""
        places = self._layout.place
        (made,) = library.writes
        found = [i for i, w in enumerate(words) if self._is_at(w, places[made])]
        is_own = self._ranges.get(places[made]) == (k, k) and len(found) == 1
        return found[0] if is_own else None

    def _note_unused(self, library: Library, launches: Sequence[Launch]) -> None:
        """Note what a library statement makes, if no launch has to do with the memory of it."""
        places = self._layout.place
        words = [word for launch in launches for word in _leaves(launch.words)]
        made = {places[number] for number in library.writes}
        self._unused |= {n for n in made if not any(self._is_at(word, n) for word in words)}

    def _is_at(self, word: Word, place: int) -> bool:
        """Whether a word is an address in the memory of a storage."""
        return isinstance(word, Buffer) and self._layout.place[word.value] == place

    def _loop_words(
        self, specs: Sequence[WordSpec], turn: int = driver.FORWARD
    ) -> tuple[Word, ...]:
        return tuple(self._loop_word(spec, turn) for spec in specs)

    def _loop_word(self, spec: WordSpec, turn: int) -> Word:
        real = self._real
        if isinstance(spec, BufferWord):
            return Buffer(spec.storage, real(spec.offset))
        if isinstance(spec, NumberWord):
            return real(spec.value)
        if isinstance(spec, TurnWord):
            return PlanWord(turn)
        if isinstance(spec, PartWord):
            return -(-real(spec.size) // real(spec.parts)) * real(spec.inner)
        assert isinstance(spec, ModeWord)
        return int(real(spec.outer) < _FEW_ROWS < real(spec.inner))

    # Memory

    def _place_arena(self, launches: Sequence[_Planned]) -> None:
        ranges: dict[object, tuple[int, int]] = {}
        ranges.update((n, r) for n, r in self._ranges.items() if n not in self._unused)
        sizes: dict[object, int] = {}
        for number in ranges:
            assert isinstance(number, int)
            # Arrays that share it have the same number of elements, of the same type.
            sizes[number] = self._bytes(number)
        for planned in _all(launches):
            k = planned.kernel
            for scratch in _leaves(planned.launch.words):
                if not isinstance(scratch, Scratch):
                    continue
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

    def _table(self, launches: Sequence[_Planned], thread: int | None) -> int:
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
            elif planned.flags & driver.CHECK:
                self._put(8 * (block + driver.LOOP_FAILED), MEMORY)
            else:
                self._put(0)
        return start

    def _loop_block(self, loop: Loop, planned: _Planned, thread: int | None) -> int:
        """Add the words of a loop, and what each thread takes; gives their place."""
        count = num_threads() if planned.flags & driver.PARALLEL else 1
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
        self._put(driver.ENDLESS if loop.count is None else self._real(loop.count))
        self._put(8 * table, MEMORY)
        self._put(0)
        return start

    def _loop_part(self, loop: Loop, planned: _Planned, thread: int) -> int:
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
        count = (len(self._words) - moves) // driver.MOVE_WORDS
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
        """Note whom a function is for."""
        if code not in self._labels:
            self._labels[code] = self._structure.labels(self._structure.kernels[k])

    def _block(self, words: Sequence[Word], k: int) -> int:
        """Add a block of words, after those that it points to; gives the place of the first."""
        blocks = {i: self._block(word, k) for i, word in enumerate(words) if is_block(word)}
        start = len(self._words)
        for i, word in enumerate(words):
            if isinstance(word, Buffer):
                self._put_address(word.value, word.offset)
            elif isinstance(word, PlanWord):
                self._put(8 * word.number, PLAN)
            elif isinstance(word, Scratch):
                self._put(self._offsets[k, word.key], ARENA)
            elif isinstance(word, Code):
                self._name(word, k)
                self._put(0, word)
            elif i in blocks:
                self._put(8 * blocks[i], MEMORY)
            else:
                assert not isinstance(word, tuple)
                self._put(int(word))
        if not words:
            self._put(0)
        return start


def _sizes(values: Sequence[int], structure: Structure) -> Sizes:
    """The real sizes, with those that are derived from them."""
    sizes = Sizes(values)
    known = list(values)
    for derive in structure.derived:
        known.append(derive(sizes.real))
        sizes = Sizes(known)
    return sizes


def _leaves(words: Sequence[Word]) -> Iterator[Word]:
    """The words, and those of the blocks that they point to."""
    for word in words:
        if is_block(word):
            yield from _leaves(word)
        else:
            yield word


def _with_barriers(launches: Sequence[_Planned], *, is_inside: bool = False) -> list[_Planned]:
    """The same, with threads meeting before and after what they share, and before they look."""
    found = []
    for i, planned in enumerate(launches):
        flags = planned.flags
        # In a loop the first one comes after the last one.
        others = launches[i + 1 :] or (launches if is_inside else [])
        follows = bool(others) and others[0].flags & driver.PARALLEL
        if follows or flags & (driver.PARALLEL | driver.CHECK | driver.STOP):
            flags |= driver.BARRIER
        found.append(planned._replace(flags=flags))
    return found


def _all(launches: Sequence[_Planned]) -> list[_Planned]:
    """With those that loops repeat."""
    return [inner for x in launches for inner in (x, *_all(x.repeated))]


def _nothing() -> Launch:
    """A kernel that does nothing, for checks."""
    return Launch(driver_code("nothing"), ())
