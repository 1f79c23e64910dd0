"""The launches of a plan, in order: which code, with which words, on how many threads."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..codegen import driver_words
from ..codegen.arguments import BufferWord, ModeWord, NumberWord, PartWord, WordSpec
from ..codegen.driver import driver_code
from ..ir.kernel import Kernel, strides_over
from ..ir.kernel_target import Target
from ..ir.launch import Buffer, Epilogue, Launch, Stream, Word, is_block
from ..ir.program import KernelCall, Loop, contiguous, views_of
from .compiled_program import CompiledProgram

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
# About what a call takes, and what is worth a thread; and what is long for one who waits.
_CALL_SECONDS, _SECONDS = 5e-8, 5e-5
_LONG_SECONDS = 0.02
_SHORT_SECONDS = 0.001  # of an iteration


class PlannedLaunch(NamedTuple):
    """A launch.

    Attributes:
        launch: the code and its words; those of a loop are made later.
        flags: see driver.
        kernel: the number of the kernel, as `in_order` counts.
        result: of a check, the storage that it looks at.
        loop: the loop, if it is one.
        repeated: what it repeats.
        is_cancellable: whether it is a loop that can end between its iterations.
    """

    launch: Launch
    flags: int
    kernel: int
    result: int | None = None
    loop: Loop | None = None
    repeated: tuple[PlannedLaunch, ...] = ()
    is_cancellable: bool = False


class Launches:
    """Makes the launches of a compiled program for real sizes.

    Args:
        compiled: the code.
        real: gives the real size of a symbolic size.
        target: what kernels are for.

    Attributes:
        ranges: storage of the arena -> the first and the last kernel that needs its memory.
        unused: storages that need no memory after all.
        is_long: whether it may take so long that it is to hear when it is cancelled.
        free: the numbers of the kernels before the first that writes a variable, where it is long.
    """

    def __init__(
        self, compiled: CompiledProgram, real: Callable[[int], int], target: Target
    ) -> None:
        self._compiled = compiled
        self._layout = compiled.layout
        self._program = self._layout.program
        self._real = real
        self._target = target._replace(unaligned=compiled.unaligned)
        self._numbers = {id(kernel): k for k, kernel in enumerate(compiled.kernels)}
        self.ranges = compiled.ranges
        self._bytes: dict[int, int] = {}
        self.unused: set[int] = set()
        kernels = self._layout.kernels
        self.is_long = sum(map(self._seconds, kernels)) > _LONG_SECONDS
        free = itertools.takewhile(lambda kernel: not self._writes_variables(kernel), kernels)
        self.free = {self._numbers[id(kernel)] for kernel in free} if self.is_long else set[int]()

    def make(self) -> list[PlannedLaunch]:
        """The launches of all kernels."""
        return _with_barriers(self._launches(self._layout.kernels, 1))

    def _writes_variables(self, kernel: Kernel) -> bool:
        place, updates = self._layout.place, self._program.updates
        return any(place[number] in updates for number in kernel.writes)

    def _seconds(self, kernel: Kernel) -> float:
        """How long a kernel may take on one thread, roughly."""
        if kernel.loop is None:
            return _CALL_SECONDS + self._amount(kernel) * _SECONDS
        if kernel.loop.count is None:
            return math.inf
        inner = sum(map(self._seconds, (*kernel.test, *kernel.body)))
        return self._times(kernel.loop) * inner

    def _amount(self, kernel: Kernel) -> float:
        """How much a kernel has to do, 1 being worth a thread."""
        load = 0.0
        if kernel.call is not None:
            load = self._real(kernel.call.work) / _PARALLEL_WORK
        for number in self._compiled.touched[self._numbers[id(kernel)]]:
            load += self.num_bytes(number) / _PARALLEL_BYTES
        return load

    def _launches(
        self,
        kernels: Sequence[Kernel],
        times: int,
        *,
        is_inside: bool = False,
        is_cancellable: bool = False,
    ) -> list[PlannedLaunch]:
        """The launches in order; loop kernels get their words as launches too.

        Args:
            kernels: of the plan, or of a loop.
            times: how often they run.
            is_inside: whether that is in a loop.
            is_cancellable: whether loops among them can end between their iterations.
        """
        found: list[PlannedLaunch] = []
        loads = [self._load(kernel) * (_NEAR if is_inside else 1) for kernel in kernels]
        is_worth_it = sum(load for load in loads if load >= 1) * times >= _WAKING
        for kernel, load in zip(kernels, loads, strict=True):
            flags = driver_words.PARALLEL if is_worth_it and load >= 1 else 0
            k = self._numbers[id(kernel)]
            loops = self._compiled.loops[k]
            if kernel.call is not None:
                epilogue = None
                if loops is not None:
                    words = self._loop_words(loops.words)
                    result = self._scratch_word(kernel.call, words, k)
                    epilogue = Epilogue(loops.code, words, self.streams(kernel), result)
                planned = kernel.call.launches(self._real, self._target, epilogue)
                self._note_unused(kernel.call, planned)
                found.extend(PlannedLaunch(launch, flags, k) for launch in planned)
            elif kernel.check is not None:
                flags = driver_words.CHECK | (driver_words.SETTLE if is_inside else 0)
                found.append(PlannedLaunch(_nothing(), flags, k, kernel.check.view.storage))
            elif kernel.loop is not None:
                found.append(self._loop(kernel, kernel.loop, is_cancellable or k in self.free))
            else:
                assert loops is not None
                words = self._loop_words(loops.words)
                found.append(PlannedLaunch(Launch(loops.code, words), flags, k))
        return found

    def _loop(self, kernel: Kernel, loop: Loop, is_cancellable: bool) -> PlannedLaunch:
        """A loop with its launches."""
        k, times = self._numbers[id(kernel)], self._times(loop)
        code = driver_code("loop")
        is_cancellable = is_cancellable and self._seconds(kernel) > _LONG_SECONDS
        inside: dict[str, Any] = {"is_inside": True, "is_cancellable": is_cancellable}
        launches = self._launches(kernel.test, times, **inside)
        if loop.stop is not None:
            flags = driver_words.STOP | driver_words.SETTLE
            launches.append(PlannedLaunch(_nothing(), flags, k, loop.stop.storage))
        launches += self._launches(kernel.body, times, **inside)
        is_shared = any(x.flags & driver_words.PARALLEL for x in launches)
        flags = driver_words.PARALLEL if is_shared else 0
        if is_shared and sum(map(self._seconds, kernel.body)) < _SHORT_SECONDS:
            flags |= driver_words.MEETS
        is_cancellable = is_cancellable and loop.count is not None  # else its test does that
        if loop.has_checks or is_cancellable:
            flags |= driver_words.CHECK
        repeated = tuple(_with_barriers(launches, is_inside=True))
        made = PlannedLaunch(Launch(code, ()), flags, k, None, loop, repeated)
        return made._replace(is_cancellable=is_cancellable)

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
        return self._amount(kernel)

    def num_bytes(self, number: int) -> int:
        """The size of a storage."""
        found = self._bytes.get(number)
        if found is None:
            storage = self._program.storages[number]
            found = self._bytes[number] = storage.dtype.size * math.prod(
                map(self._real, storage.shape)
            )
        return found

    def streams(self, kernel: Kernel) -> tuple[Stream, ...]:
        """The memory besides its result that an epilogue goes through element by element.

        What it writes is fetched before, too: the processor does that for each line.
        """
        assert kernel.call is not None
        place = self._layout.place
        made = kernel.writes - self._program.updates.keys()
        views = {view for s in kernel.statements for view in views_of(s.operands)}
        wanted = sorted(
            (v for v in views if v.storage not in made), key=lambda v: (v.storage, v.offset)
        )
        known = {place[v.storage] for v in wanted} | {place[n] for n in kernel.call.writes}
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

    def _scratch_word(self, call: KernelCall, words: Sequence[Word], k: int) -> int | None:
        """The word that is the address of what a contraction makes, if only kernel k reads that."""
        places = self._layout.place
        (made,) = call.writes
        found = [i for i, w in enumerate(words) if self._is_at(w, places[made])]
        is_own = self.ranges.get(places[made]) == (k, k) and len(found) == 1
        return found[0] if is_own else None

    def _note_unused(self, call: KernelCall, launches: Sequence[Launch]) -> None:
        """Note what a kernel call makes, if no launch has to do with the memory of it."""
        places = self._layout.place
        made = {places[number] for number in call.writes}
        self.unused |= {n for n in made if not any(self._reaches(x.words, n) for x in launches)}

    def _reaches(self, words: Sequence[Word], place: int) -> bool:
        """Whether a word of a block, or of those that it points to, is an address there."""
        return any(
            self._reaches(word, place) if is_block(word) else self._is_at(word, place)
            for word in words
        )

    def _is_at(self, word: Word, place: int) -> bool:
        """Whether a word is an address in the memory of a storage."""
        return isinstance(word, Buffer) and self._layout.place[word.value] == place

    def _loop_words(self, specs: Sequence[WordSpec]) -> tuple[Word, ...]:
        return tuple(self._loop_word(spec) for spec in specs)

    def _loop_word(self, spec: WordSpec) -> Word:
        real = self._real
        if isinstance(spec, BufferWord):
            return Buffer(spec.storage, real(spec.offset))
        if isinstance(spec, NumberWord):
            return real(spec.value)
        if isinstance(spec, PartWord):
            return -(-real(spec.size) // real(spec.parts)) * real(spec.inner)
        assert isinstance(spec, ModeWord)
        return int(real(spec.outer) < _FEW_ROWS < real(spec.inner))


def _with_barriers(
    launches: Sequence[PlannedLaunch], *, is_inside: bool = False
) -> list[PlannedLaunch]:
    """The same, with threads meeting before and after what they share, and before they look."""
    found = []
    for i, planned in enumerate(launches):
        flags = planned.flags
        # In a loop the first one comes after the last one.
        others = launches[i + 1 :] or (launches if is_inside else [])
        follows = bool(others) and others[0].flags & driver_words.PARALLEL
        if follows or flags & (driver_words.PARALLEL | driver_words.CHECK | driver_words.STOP):
            flags |= driver_words.BARRIER
        found.append(planned._replace(flags=flags))
    return found


def all_of(launches: Sequence[PlannedLaunch]) -> list[PlannedLaunch]:
    """With those that loops repeat."""
    return [inner for x in launches for inner in (x, *all_of(x.repeated))]


def _nothing() -> Launch:
    """A kernel that does nothing, for checks."""
    return Launch(driver_code("nothing"), ())
