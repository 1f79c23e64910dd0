"""Generators that a session keeps, as queues are kept: draws from them need no variable."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from ...graph import Array, TensorSpec, resource, uint32
from ..core.effects import HANDLE, held
from ..core.op_def import KernelContext
from ..core.registry import define, no_gradient
from .random_state import initial_state


class Generator:
    """Begins at a seed; `_draws` counts the draws, guarded by `_lock`."""

    def __init__(self, seed: int, name: str) -> None:
        self.name = name
        self.declared: Any = None
        self._begin = initial_state(seed)
        self._draws = 0
        self._lock = threading.Lock()

    def next(self) -> Array:
        """The state for a draw; the generator goes on to the next."""
        with self._lock:
            draw = self._draws
            self._draws = draw + 1
        low, high, *_ = self._begin.tolist()
        return np.array([low, high, draw & 0xFFFF_FFFF, draw >> 32], np.uint32)


@define("RandomGenerator", stateful=True)
def random_generator(*, seed: int, container: str, shared_name: str) -> TensorSpec:
    """The handle of a generator that begins at `seed` in each session."""
    return TensorSpec((), resource)


@random_generator.effect
def _generator_kernel(
    context: KernelContext, *, seed: int, container: str, shared_name: str
) -> Generator:
    return held(
        context, container, shared_name, Generator, seed, lambda: Generator(seed, shared_name)
    )


@define("RandomNext", dtypes={"generator": HANDLE})
def random_next(generator: TensorSpec) -> TensorSpec:
    """The state of the next draw."""
    return TensorSpec((4,), uint32)


@random_next.effect
def _next_kernel(context: KernelContext, generator: Generator) -> Array:
    return generator.next()


for _op in (random_generator, random_next):
    _op.grad(no_gradient)
