"""The state of a random generator: uint32[4], a key of two words and a counter of two.

A draw is a pure function of the state. Draw number c of a key takes the Philox blocks
c * 2**64, c * 2**64 + 1, ... (lower words first in key and counter), so that the next draw takes
the state with c + 1, and what one draw takes does not depend on how much another has taken. The
blocks of draw c from c * 2**64 + 2**63 on, which no draw can reach, make new keys.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...errors import InvalidArgumentError, ShapeError
from ...graph import INTEGER, Array, Tensor, TensorSpec, uint32
from ..array.creation import arange
from ..core.registry import define, no_gradient
from .philox import blocks_at, random_bits

STATE = {"state": frozenset({uint32})}
_WORD = 0xFFFF_FFFF
_FOLDS = 1 << 63  # blocks from here on: one for each number that is folded in
_OWN_KEY = _FOLDS + (1 << 32)  # this one: the key of a draw that counts in its own way


def initial_state(seed: int) -> Array:
    """The state of draw 0 for a seed from 0 to 2**64 - 1, an array uint32[4].

    Raises:
        InvalidArgumentError: the seed is not such a number.
    """
    if not 0 <= seed < 1 << 64:
        raise InvalidArgumentError(
            f"a seed is a whole number from 0 to 2**64 - 1, got {seed!r}",
            remedy="take it modulo 2**64",
        )
    return np.array([seed & _WORD, seed >> 32, 0, 0], np.uint32)


def check_state(who: str, state: TensorSpec) -> None:
    """Refuse what cannot be a state; ShapeError."""
    if not state.shape.is_compatible_with((4,)):
        raise ShapeError(
            f"{who}: the state of a random generator is uint32[4], got {state}",
            remedy="give a seed generator's state, or one that random_split made",
        )


def stream(state: Array) -> dict[str, Any]:
    """The arguments `key` and `counter` of the functions in distributions.py, for one draw."""
    *_, low, high = state.tolist()
    return {"key": state[:2], "counter": (0, low | high << 32)}


def own_key(xp: Any, state: Array) -> Array:
    """A key for one draw alone, for the functions in rejection.py."""
    *_, low, high = state.tolist()
    return random_bits(xp, state[:2], (_OWN_KEY, low | high << 32), 2)


@define("RandomAdvance", dtypes=STATE)
def random_advance(state: TensorSpec, *, steps: int) -> TensorSpec:
    """The state with its counter `steps` draws further, modulo 2**64."""
    check_state("RandomAdvance", state)
    return state


@random_advance.reference
def _advance_kernel(xp: Any, state: Array, *, steps: int) -> Array:
    key_low, key_high, low, high = state.tolist()
    counter = (low | high << 32) + steps
    return xp.asarray([key_low, key_high, counter & _WORD, counter >> 32 & _WORD], xp.uint32)


random_advance.grad(no_gradient)


@define("RandomFold", dtypes={**STATE, "data": INTEGER}, same_dtype=False)
def _fold(state: TensorSpec, data: TensorSpec) -> TensorSpec:
    """For each number in `data`, modulo 2**32, a state of its own: data.shape + (4,)."""
    check_state("RandomFold", state)
    return TensorSpec(None if data.shape.rank is None else [*data.shape, 4], uint32)


@_fold.reference
def _fold_kernel(xp: Any, state: Array, data: Array) -> Array:
    *_, low, high = state.tolist()
    index = (data.reshape(-1).astype(xp.int64) & _WORD).astype(xp.uint64) + xp.uint64(_FOLDS)
    return blocks_at(xp, state[:2], index, low | high << 32).reshape(*data.shape, 4)


_fold.grad(no_gradient)


def next_state(state: Tensor, steps: int = 1) -> Tensor:
    """The state for the next draw, or for the one `steps` draws later."""
    return random_advance(state, steps=int(steps))


def random_fold(state: Tensor, data: Tensor) -> Tensor:
    """A state that depends on `state` and on an integer, independent of all others.

    Args:
        state: uint32[4].
        data: integers of any shape, taken modulo 2**32: a step, an index, the number of a replica.

    Returns:
        data.shape + (4,), uint32: one state for each number.
    """
    return _fold(state, data)


def random_split(state: Tensor, num: int = 2) -> Tensor:
    """`num` independent states, (num, 4): those that the numbers from 0 fold in."""
    return _fold(state, arange(num))
