"""Generators: a state in a variable, and a new one for each draw.

Where no seed is given, one comes from the sequence of the process, which begins at the same place
in each run: a program gives the same numbers each time. `set_random_seed` begins it elsewhere.

State of the module, guarded by `_lock`:
    _seeds: the sequence of default seeds;
    _global: the generator of draws without a seed, made when it is first needed; a graph that is
        built to be run by a session has one of its own.
"""

from __future__ import annotations

import random
from typing import Any, TypeAlias

import numpy as np

from laminar.engine import forks
from laminar.engine.errors import InvalidArgumentError
from laminar.engine.graph import Graph, Tensor, building, eager_scope
from laminar.engine.ops.core.basic import identity
from laminar.engine.ops.core.convert import convert_to_tensor
from laminar.engine.ops.core.dispatch import as_input
from laminar.engine.ops.random.random_state import initial_state, next_state, random_advance
from laminar.engine.state import Variable, current_scope
from laminar.engine.state.random_source import begin_sequence

# Any number does; this one is 2**32 over the golden ratio.
_FIRST_SEED = 0x9E3779B9
_MOST = 10**9  # a default seed is below it, as in Keras

_lock = forks.recursive_lock()
_seeds = random.Random(_FIRST_SEED)
_global: list[SeedGenerator] = []


class SeedGenerator:
    """Gives each draw another state, so that it gives other numbers.

    Args:
        seed: a whole number, which fixes all numbers that follow; None for one of the process's
            sequence.
        name: of the generator.

    Attributes:
        state: the variable with the state of the next draw, uint32[4].

    Raises:
        InvalidArgumentError: the seed is no whole number.

    Examples:
        >>> seeds = laminar.random.SeedGenerator(42)
        >>> first = laminar.random.uniform((), seed=seeds)
        >>> second = laminar.random.uniform((), seed=seeds)
        >>> again = laminar.random.uniform((), seed=laminar.random.SeedGenerator(42))
        >>> bool(first == second), bool(first == again)
        (False, True)
    """

    def __init__(self, seed: int | None = None, name: str | None = None) -> None:
        if seed is not None and not _is_int(seed):
            raise InvalidArgumentError(
                f"SeedGenerator: the seed must be a whole number, got {seed!r}"
            )
        self._seed = seed
        self.name = name or "seed_generator"
        self.state = Variable(
            _state(make_default_seed() if seed is None else seed),
            trainable=False,
            autocast=False,
            name="seed_generator_state",
        )

    def next(self, ordered: bool = True) -> Tensor:
        """The state for a draw; the generator goes on to the next.

        Args:
            ordered: accepted for its name: states always follow one another.
        """
        graph = building() or self.state.graph
        scope = current_scope()
        is_held = scope is not None and scope.value_of(self.state) is not None
        if graph is not None and not graph.captures_values and not is_held:
            return self._next_in_graph(graph)
        state = self.state.value
        self.state.assign(next_state(state))
        return state

    def _next_in_graph(self, graph: Graph) -> Tensor:
        """In a plain graph control edges take the generator on, and keep the draws in order."""
        users = graph.consumers_of(as_input(graph, self.state.handle))
        draws = [op for op in users if any(x.op.definition is random_advance for x in op.inputs)]
        with graph.as_default(), graph.control_dependencies(draws[-1:]):
            state = self.state.value
            update = self.state.assign(next_state(state))
            with graph.control_dependencies([update]):
                return identity(state)

    def get_config(self) -> dict[str, Any]:
        """What `from_config` needs to make a generator that begins where this one did."""
        return {"seed": self._seed, "name": self.name}

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> SeedGenerator:
        """The generator that `get_config` described."""
        return cls(**config)


# What makes draws repeat: a number, or a generator.
SeedLike: TypeAlias = int | np.integer[Any] | SeedGenerator | Tensor


def _is_int(seed: Any) -> bool:
    return isinstance(seed, int | np.integer) and not isinstance(seed, bool)


def _state(seed: int | np.integer[Any]) -> Any:
    return initial_state(int(seed) % 2**64)


def make_default_seed() -> int:
    """The next seed of the process's sequence, for what was given none.

    Examples:
        >>> 0 <= laminar.random.make_default_seed() < 2**32
        True
    """
    with _lock:
        return _seeds.randint(1, _MOST)


class _OfGraph:
    """The generator of a graph's draws without a seed; see `Graph.attached`."""

    def __init__(self) -> None:
        self.generator: SeedGenerator | None = None


def global_seed_generator() -> SeedGenerator:
    """The generator of draws that were given no seed.

    Examples:
        >>> laminar.random.global_seed_generator() is laminar.random.global_seed_generator()
        True
    """
    graph = building()
    with _lock:
        if graph is not None and not graph.captures_values:
            of_graph = graph.attached(_OfGraph)
            if of_graph.generator is None:
                of_graph.generator = SeedGenerator(name="global_seed_generator")
            return of_graph.generator
        if not _global:
            with eager_scope():
                _global.append(SeedGenerator(name="global_seed_generator"))
        return _global[0]


def set_random_seed(seed: int) -> None:
    """Begin all random sequences anew: laminar's, NumPy's and Python's.

    Args:
        seed: a whole number from 0 to 2**32 - 1.

    Raises:
        InvalidArgumentError: any other value.

    Examples:
        >>> laminar.set_random_seed(7)
        >>> first = laminar.random.normal((3,))
        >>> laminar.set_random_seed(7)
        >>> bool(ops.all(first == laminar.random.normal((3,))))
        True
    """
    if not _is_int(seed) or not 0 <= seed < 2**32:
        raise InvalidArgumentError(
            f"set_random_seed: expected a whole number from 0 to 2**32 - 1, got {seed!r}"
        )
    random.seed(int(seed))
    np.random.seed(int(seed))
    begin_sequence(int(seed))
    with _lock:
        _seeds.seed(int(seed))
        first = make_default_seed()  # taken in any case, so that the seeds after it are the same
        with eager_scope():
            if _global:  # graphs of traced functions hold this variable: it stays
                _global[0].state.assign(_state(first))
            else:
                _global.append(SeedGenerator(first, name="global_seed_generator"))


def sequence_state() -> Any:
    """Where the process's sequence of default seeds stands."""
    with _lock:
        return _seeds.getstate()


def set_sequence_state(state: Any) -> None:
    """Go on with the sequence of default seeds where `sequence_state` was called."""
    with _lock:
        _seeds.setstate(state)


def draw_seed(seed: SeedLike | None) -> Tensor:
    """The state for one draw.

    Args:
        seed: a whole number (the same state each time), a `SeedGenerator` (its next), None (the
            next of the global generator), or a state itself, a tensor uint32[4].

    Raises:
        InvalidArgumentError: anything else.

    Examples:
        >>> first = laminar.random.draw_seed(laminar.random.SeedGenerator(1))
        >>> first.shape, first.dtype
        ((4,), 'uint32')
    """
    if isinstance(seed, SeedGenerator):
        return seed.next()
    if seed is None:
        return global_seed_generator().next()
    if isinstance(seed, Tensor):
        if seed.dtype == "uint32" and seed.shape.is_compatible_with((4,)):
            return seed
    elif _is_int(seed):
        return convert_to_tensor(_state(seed))
    raise InvalidArgumentError(
        f"seed: expected a whole number, a SeedGenerator or None, got {seed!r}"
    )
