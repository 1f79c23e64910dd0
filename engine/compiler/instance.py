"""A plan ready to run: its numbers at addresses.

A `Recipe` is all that an `Instance` is made of, as data that holds no address: it can be kept on
disk (see records.py), and each thread that runs the plan at the same time makes its own instance.
"""

from __future__ import annotations

import ctypes
import threading
from typing import NamedTuple

import numpy as np

from ..graph import Array
from . import driver
from .codes import Native, addresses_of, native
from .threads import POOL_FUNCTIONS, Pool, driver_code, num_threads, pool

_FUNCTIONS = ("enter", "run")
_ENTER = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)
_ALIGNMENT = 64

# What numbers of a recipe are relative to; then come its constants, and then its codes.
MEMORY, ARENA, PLAN = range(3)


class Recipe(NamedTuple):
    """A plan for some sizes, as data.

    Attributes:
        memory: int64 words that the driver and the kernels read. Those that are addresses hold what
            is to be added to the base that `moves` tells.
        moves: rows (place in `memory`, number of a base).
        places: where in `memory` the patches of addresses, the kernels and the wants begin.
        counts: how many there are of each.
        arena_bytes: the memory for intermediate values.
        constants: arrays that kernels read.
        codes: native functions, those of the driver last.
        outputs: the shape of each output.
        variables: the inputs of the cluster that are variables, in the order of their arrays.
        is_parallel: whether threads share some kernel.
    """

    memory: Array
    moves: Array
    places: tuple[int, int, int]
    counts: tuple[int, int, int]
    arena_bytes: int
    constants: tuple[Array, ...]
    codes: tuple[Native, ...]
    outputs: tuple[tuple[int, ...], ...]
    variables: tuple[int, ...]
    is_parallel: bool


class Instance:
    """A recipe with memory of its own.

    Attributes:
        lock: held while it runs.
        refused: of each array of the last run, whether it could not be used.
        address: of what the driver reads.
    """

    def __init__(self, recipe: Recipe) -> None:
        """Place a recipe in memory."""
        self.lock = threading.Lock()
        self.recipe = recipe
        self._arena = np.empty(recipe.arena_bytes + _ALIGNMENT, np.uint8)
        self._plan = np.zeros(driver.PLAN_WORDS, np.int64)
        self._memory = _at_addresses(recipe, self._arena, self._plan)
        base: int = self._memory.ctypes.data
        addresses, kernels, wants = (base + 8 * place for place in recipe.places)
        self._plan[driver.NUM_ADDRESSES], self._plan[driver.NUM_KERNELS], num_arrays = recipe.counts
        self._plan[driver.NUM_ARRAYS] = num_arrays
        self._plan[driver.WANTS] = wants
        self._plan[driver.ADDRESSES] = addresses
        self._plan[driver.KERNELS] = kernels
        self._plan[driver.ARRAY_TYPE] = id(np.ndarray)
        self.refused = np.zeros(num_arrays, np.int64)
        self._plan[driver.REFUSED] = self.refused.ctypes.data
        self.address: int = self._plan.ctypes.data
        enter, run = addresses_of(driver_codes(is_parallel=False))
        self._enter, self._run = _ENTER(enter), _ENTER(run)
        # Whether it uses a pool of threads: `num_threads()` is still the same when it runs.
        self._pool: Pool | None = None  # of the last run
        self._is_shared = recipe.is_parallel and num_threads() > 1
        self._status = ctypes.c_int64.from_address(self.address + 8 * driver.STATUS)

    @property
    def num_kernels(self) -> int:
        """How many kernels a run runs."""
        return self.recipe.counts[1]

    @property
    def arena_bytes(self) -> int:
        """The memory for intermediate values."""
        return self.recipe.arena_bytes

    def cancel(self, error: object = None) -> None:
        """Let loops that have no end stop: the run fails."""
        self._plan[driver.CANCELLED] = 1

    def go_on(self) -> None:
        """Forget that something was cancelled."""
        self._plan[driver.CANCELLED] = 0

    def run(self, objects: bytes) -> int:
        """Run on a table of the addresses of array objects; gives a status of the driver."""
        threads = pool() if self._is_shared else None
        if threads is None or not threads.lock.acquire(blocking=False):
            self._run(self.address, objects)
            return self._status.value
        try:
            self._enter(self.address, objects)
            if self._status.value == driver.DONE:
                if threads is not self._pool:
                    self._plan[driver.POOL], self._pool = threads.address, threads
                threads.run(self.address)
        finally:
            threads.lock.release()
        return self._status.value


def driver_codes(is_parallel: bool) -> list[Native]:
    """The functions of the driver that a plan needs."""
    names = (*_FUNCTIONS, *POOL_FUNCTIONS) if is_parallel and num_threads() > 1 else _FUNCTIONS
    return [native(driver_code(name)) for name in names]


def _at_addresses(recipe: Recipe, arena: Array, plan: Array) -> Array:
    """The words of a recipe, with addresses where they are to be."""
    memory: Array = recipe.memory.copy()
    start: int = arena.ctypes.data
    bases = [
        memory.ctypes.data,
        start + -start % _ALIGNMENT,
        plan.ctypes.data,
        *(constant.ctypes.data for constant in recipe.constants),
        *addresses_of(recipe.codes),
    ]
    memory[recipe.moves[:, 0]] += np.array(bases, np.int64)[recipe.moves[:, 1]]
    return memory
