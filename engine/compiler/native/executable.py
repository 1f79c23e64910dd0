"""A plan ready to run: its numbers at addresses.

A `ExecutablePlan` is all that an `Executable` is made of, as data that holds no address: it can be
kept on disk (see plan_cache.py), and each thread that runs the plan at the same time makes its own
executable.
Plans that never run at the same time work in the same `Arena`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...graph import Array
from ..codegen import driver_words
from ..plan.executable_plan import ExecutablePlan, driver_codes
from ..target import host
from ..target.code_cache import addresses_of
from .cpython_calls import callable_plan
from .heap import Form
from .threads import Pool, pool


class Arena:
    """Memory for the intermediate values of plans, one of which runs at a time.

    Attributes:
        memory: as much as the largest of them needs.
    """

    def __init__(self) -> None:
        self.memory = np.empty(host.LINE, np.uint8)

    def grow(self, num_bytes: int) -> bool:
        """Have room for so many bytes; whether the memory is another one from now on."""
        if num_bytes + host.LINE <= self.memory.size:
            return False
        self.memory = np.empty(num_bytes + host.LINE, np.uint8)
        return True


class Executable:
    """An executable plan at addresses.

    Attributes:
        given: the shapes of the inputs.
        results: the form of each output.
        refused: of each array of the last run, whether it could not be used.
        address: of what the driver reads.
    """

    def __init__(
        self,
        executable_plan: ExecutablePlan,
        memory: Array,
        num_threads: int,
        given: Sequence[tuple[int, ...]],
        results: Sequence[Form],
    ) -> None:
        """Place a plan for so many threads, inputs and results in the memory of an arena."""
        self.executable_plan = executable_plan
        self.given, self.results = given, results
        self._arena = memory
        self._plan = np.zeros(driver_words.PLAN_WORDS, np.int64)
        self._memory = _at_addresses(executable_plan, memory, self._plan)
        base: int = self._memory.ctypes.data
        addresses, kernels, wants = (base + 8 * place for place in executable_plan.places)
        self._plan[driver_words.NUM_ADDRESSES], self._plan[driver_words.NUM_KERNELS], num_arrays = (
            executable_plan.counts
        )
        self._plan[driver_words.NUM_ARRAYS] = num_arrays
        self._plan[driver_words.WANTS] = wants
        self._plan[driver_words.ADDRESSES] = addresses
        self._plan[driver_words.KERNELS] = kernels
        self._plan[driver_words.ARRAY_TYPE] = id(np.ndarray)
        self._plan[driver_words.CANCELLABLE] = executable_plan.cancellable
        self.refused = np.zeros(num_arrays, np.int64)
        self._plan[driver_words.REFUSED] = self.refused.ctypes.data
        self.address: int = self._plan.ctypes.data
        run, share = self._driver()
        self._alone = callable_plan(run, self.address, num_arrays, given, results)
        self._shared = callable_plan(share, self.address, num_arrays, given, results)
        # Whether it uses a pool of threads, one that has as many as there are words for.
        self._pool: Pool | None = None  # of the last run
        self._num_threads = num_threads
        self._is_shared = executable_plan.is_parallel and num_threads > 1

    def _driver(self) -> list[int]:
        """What runs it: on one thread, and on those of a pool."""
        return addresses_of(driver_codes(is_parallel=False))[:2]

    @property
    def num_kernels(self) -> int:
        """How many kernels a run runs."""
        return self.executable_plan.counts[1]

    @property
    def arena_bytes(self) -> int:
        """The memory for intermediate values."""
        return self.executable_plan.arena_bytes

    def place(self, objects: list[Any]) -> Any:
        """Take arrays as `run` does, and run nothing; gives what `run` gives."""
        self._plan[driver_words.NUM_KERNELS] = 0
        try:
            return self._alone(objects)
        finally:
            self._plan[driver_words.NUM_KERNELS] = self.num_kernels

    def turn_page(self) -> None:
        """Have room to record further runs."""
        raise NotImplementedError(f"{type(self).__name__} records nothing")

    def kernel_rows(self) -> Array:
        """The table of kernels that a run reads: code, words, flags and check of each."""
        start, width = self.executable_plan.places[1], driver_words.ROW_WORDS
        return self._memory[start : start + width * self.num_kernels].reshape(-1, width)

    def launches(self) -> list[tuple[int, int]]:
        """The addresses of the code and of the words of what a run runs one after the other."""
        return [(int(code), int(words)) for code, words, *_ in self.kernel_rows()]

    @property
    def num_threads(self) -> int:
        """For how many threads it was made."""
        return self._num_threads

    def cancel(self, error: object = None) -> None:
        """Let the run stop as soon as it can, if it is long: then it fails."""
        self._plan[driver_words.CANCELLED] = 1

    def go_on(self) -> None:
        """Forget that something was cancelled."""
        self._plan[driver_words.CANCELLED] = 0

    @property
    def run(self) -> Callable[[list[Any]], Any]:
        """What runs it on a list of arrays: see `callable_plan`."""
        return self._run_shared if self._is_shared else self._alone

    def _run_shared(self, objects: list[Any]) -> Any:
        threads = pool()
        if threads is not self._pool and threads and threads.num_threads != self._num_threads:
            threads = None  # another thread has just set another number
        if threads is None or not threads.lock.acquire(blocking=False):
            return self._alone(objects)
        try:
            if threads is not self._pool:
                self._plan[driver_words.POOL], self._pool = threads.address, threads
            return self._shared(objects)
        finally:
            threads.lock.release()


def _at_addresses(executable_plan: ExecutablePlan, arena: Array, plan: Array) -> Array:
    """The words of an executable plan, with addresses where they are to be."""
    memory: Array = executable_plan.memory.copy()
    start: int = arena.ctypes.data
    bases = [
        memory.ctypes.data,
        start + -start % host.LINE,
        plan.ctypes.data,
        *(constant.ctypes.data for constant in executable_plan.constants),
        *addresses_of(executable_plan.codes),
    ]
    memory[executable_plan.moves[:, 0]] += np.array(bases, np.int64)[executable_plan.moves[:, 1]]
    return memory
