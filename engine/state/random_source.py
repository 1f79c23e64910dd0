"""Draws of a graph that need no variable, and the seeds that they begin at.

The seed of a draw comes of two: that of the graph (`Graph.seed`) and that of the operation. Where
both are missing it comes from the sequence of the process, which begins at the same place in each
run, so that a program gives the same numbers each time. State, guarded by `_lock`:
    _seeds: that sequence.
"""

from __future__ import annotations

import random

import numpy as np

from .. import forks
from ..errors import InvalidArgumentError
from ..graph import Tensor, building, get_default_graph
from ..ops.core.convert import convert_to_tensor
from ..ops.core.dispatch import apply
from ..ops.random.random_state import initial_state
from ..ops.random.source import random_generator, random_next
from .handles import Handle

# Stands for the seed of a graph that has none, where an operation has one: any number does.
DEFAULT_GRAPH_SEED = 87654321
_WORD = 0xFFFF_FFFF

_lock = forks.lock()
_seeds = random.Random(DEFAULT_GRAPH_SEED)


def begin_sequence(seed: int) -> None:
    """Begin the sequence of the process at another place."""
    with _lock:
        _seeds.seed(seed)


def get_seed(op_seed: int | None) -> tuple[int | None, int | None]:
    """The seed of the default graph, and that of an operation, as a draw has them.

    With a graph's seed alone the operation's is its number in the graph; with the operation's alone
    the graph's is a fixed number; (None, None) where nothing was asked for.

    Raises:
        InvalidArgumentError: a seed that is no whole number.

    Examples:
        >>> with engine.Graph().as_default():
        ...     engine.get_seed(3) == engine.get_seed(3)
        True
    """
    if op_seed is not None and not isinstance(op_seed, int | np.integer):
        raise InvalidArgumentError(f"the seed must be a whole number, got {op_seed!r}")
    graph = get_default_graph().root
    if graph.seed is None:
        return (None, None) if op_seed is None else (DEFAULT_GRAPH_SEED, int(op_seed))
    return graph.seed, graph.version if op_seed is None else int(op_seed)


def draw_state(op_seed: int | None = None) -> Tensor:
    """The state for one draw: other numbers each time that a graph runs it.

    Eagerly, a draw with a seed gives the same numbers at every call.
    """
    first, second = get_seed(op_seed)
    if first is None or second is None:
        with _lock:
            seed = _seeds.getrandbits(64)
    else:
        seed = (first & _WORD) << 32 | (second & _WORD)
    if building() is None:
        return convert_to_tensor(initial_state(seed))
    return RandomSource(seed).next()


class RandomSource(Handle):
    """A generator in a session's container.

    Args:
        seed: where it begins, from 0 to 2**64 - 1.
        shared_name: the name under which sessions share it in a container.
        name: of the operation.

    Examples:
        >>> engine.RandomSource(seed=1) is not None
        True
    """

    def __init__(
        self, seed: int, shared_name: str | None = None, name: str = "random_source"
    ) -> None:
        super().__init__(random_generator, {"seed": seed}, name, shared_name)

    def next(self, name: str | None = None) -> Tensor:
        """The state of the next draw, uint32[4]."""
        with self.beside():
            return apply(random_next, [self.handle], {}, name)[0]
