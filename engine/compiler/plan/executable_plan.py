"""A plan for some sizes as data, without addresses: it can be kept on disk (see plan_cache.py)."""

from __future__ import annotations

from typing import NamedTuple

from ...graph import Array
from ..codegen import cpython_code
from ..codegen.driver import POOL_FUNCTIONS, driver_code
from ..target.code_cache import Native, native
from ..target.thread_count import num_threads

_FUNCTIONS = ("run", "share")

# What numbers of an executable plan are relative to; then come its constants, and then its codes.
MEMORY, ARENA, PLAN = range(3)


class ExecutablePlan(NamedTuple):
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
        is_long: whether it may take so long that it is to hear when it is cancelled.
        cancellable: how many kernels write to no variable, and come before those that do.
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
    is_long: bool
    cancellable: int


def driver_codes(is_parallel: bool) -> list[Native]:
    """The functions of the driver that a plan needs."""
    more = POOL_FUNCTIONS if is_parallel and num_threads() > 1 else ()
    entries = (cpython_code.code(name) for name in ("call", "tensors"))
    return [native(code) for code in (*map(driver_code, (*_FUNCTIONS, *more)), *entries)]
