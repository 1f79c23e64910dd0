"""Random bits by counting: Philox4x32-10.

Block i of a stream is a function of the key and the counter + i alone: 128 bits in, 128 bits out.
So a word does not depend on how many are asked for, on who else draws, or on the number of threads,
and the state of a generator is two integers.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011,
section 3.3 (the round and its constants) and table 2 (10 rounds).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from ...graph import Array

# A 128-bit block number: an int, or its lower and upper 64 bits.
Counter: TypeAlias = int | Sequence[Any] | Array

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round
_LOW = 0xFFFF_FFFF
_WORD = 1 << 64

# Blocks computed together: on a CPU the six arrays in work (8 bytes a block) stay in its second
# cache; elsewhere each step is one launch over many.
_CPU_BLOCKS = 1 << 14
_DEVICE_BLOCKS = 1 << 22


def random_bits(xp: Any, key: Array, counter: Counter, n: int) -> Array:
    """The first `n` 32-bit words of the blocks `counter`, `counter + 1`, ...

    Args:
        xp: the array library (NumPy, CuPy).
        key: (2,) uint32: which stream.
        counter: the number of the first block, modulo 2**128.
        n: how many words.

    Returns:
        (n,) uint32; words 4 i to 4 i + 3 are block `counter + i`.
    """
    blocks = -(-n // 4)
    first = as_int(counter)
    keys = _round_keys(xp, key)
    words = xp.empty((blocks, 4), xp.uint32)
    most = min(blocks, blocks_together(xp))
    lanes = xp.arange(most, dtype=xp.uint64)
    work = xp.empty((6, most), xp.uint64)
    start = 0
    while start < blocks:
        high, low = divmod((first + start) % _WORD**2, _WORD)
        # The upper half is the same for all blocks that are computed together.
        count = min(most, blocks - start, _WORD - low)
        state = work[:, :count]
        xp.add(lanes[:count], np.uint64(low), out=state[1])
        xp.bitwise_and(state[1], _LOW, out=state[0])
        state[1] >>= 32
        state[2], state[3] = high & _LOW, high >> 32
        _mix(xp, state, keys)
        words[start : start + count] = state[:4].T
        start += count
    return words.reshape(-1)[:n]


def blocks_at(xp: Any, key: Array, index: Array, part: int) -> Array:
    """Block number `part * 2**64 + index[i]` for each i: random access to a stream.

    Args:
        xp: the array library.
        key: (2,) uint32: which stream.
        index: (n,) uint64.
        part: up to 2**64.

    Returns:
        (n, 4) uint32.
    """
    state = xp.empty((6, len(index)), xp.uint64)
    state[0], state[1] = index & _LOW, index >> 32
    state[2], state[3] = part & _LOW, part >> 32
    _mix(xp, state, _round_keys(xp, key))
    return state[:4].T.astype(xp.uint32)


def as_int(counter: Counter) -> int:
    """A block number as one int."""
    if isinstance(counter, int):
        return counter
    low, high = counter
    return int(low) + (int(high) << 64)


def blocks_together(xp: Any) -> int:
    """How many blocks are best computed at once."""
    return _CPU_BLOCKS if xp is np else _DEVICE_BLOCKS


def _round_keys(xp: Any, key: Array) -> Array:
    steps = xp.arange(_ROUNDS, dtype=xp.uint64)[:, None] * xp.asarray(_WEYL, dtype=xp.uint64)
    return (xp.asarray(key).astype(xp.uint64) + steps) & _LOW


def _mix(xp: Any, state: Array, keys: Array) -> None:
    """All rounds, in place: rows 0 to 3 are the four words of each block, 4 and 5 are scratch."""
    c0, c1, c2, c3, p0, p1 = state
    for r in range(_ROUNDS):
        # 32 x 32 -> 64 bits: the upper half is mixed into the other pair, the lower one is kept.
        xp.multiply(c0, _MULTIPLIERS[0], out=p0)
        xp.multiply(c2, _MULTIPLIERS[1], out=p1)
        xp.right_shift(p1, 32, out=c0)
        c0 ^= c1
        c0 ^= keys[r, 0]
        xp.bitwise_and(p1, _LOW, out=c1)
        xp.right_shift(p0, 32, out=c2)
        c2 ^= c3
        c2 ^= keys[r, 1]
        xp.bitwise_and(p0, _LOW, out=c3)
