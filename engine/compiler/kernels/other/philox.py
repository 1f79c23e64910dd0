"""Random bits by counting: Philox4x32-10, a block of 128 bits in each lane of four vectors.

What the words are is defined in engine/ops/random/philox.py and random_state.py; these kernels
give the same. A lane is 64 bits wide, of which the lower half counts: products of 32 by 32 bits are
one instruction then, and what gathers in the upper halves is cut off where it is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from ....graph import DType, uint8, uint32, uint64
from ...codegen.control import loop, when
from ...codegen.conversions import convert
from ...codegen.function import IRFunction, Module, Value
from ...codegen.memory import first_lanes
from ...ir.kernel_target import Target
from ...ir.launch import Buffer, Launch
from ...target.code import Code
from ..addressing import Words, function, load, share, store

_SYMBOL = "philox"
_NAMES = ("state", "out", "count", "least")

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)  # added to the key in each round
_LOW = 0xFFFF_FFFF
_WORDS = 4  # in a block
_TOGETHER = 4  # groups of blocks that are computed at once


def plan_random_words(state: Buffer, out: Buffer, count: int, target: Target) -> list[Launch]:
    """The first `count` words of the draw that `state`, uint32[4], names: uint32."""
    return [_launch("words", state, out, count, 0, target)]


def plan_random_bools(
    state: Buffer, out: Buffer, count: int, least: int, target: Target
) -> list[Launch]:
    """Whether each of the first `count` words is `least` or more: bool."""
    return [_launch("bools", state, out, count, least, target)]


def _launch(
    kind: str, state: Buffer, out: Buffer, count: int, least: int, target: Target
) -> Launch:
    code = Code(_SYMBOL, target.vector_bytes, _write, (kind, target.vector_bytes))
    return Launch(code, (state, out, count, least))


def _write(kind: str, vector_bytes: int) -> str:
    module = Module()
    fn, (block, tid, nth) = function(module, _SYMBOL, 3)
    words = Words(fn, block, _NAMES)
    lanes = vector_bytes // uint64.size
    make = {"words": _words, "bools": _bools}[kind]
    bytes_ = {"words": uint32.size, "bools": 1}[kind]
    count, out = words["count"], words["out"]
    draw = _Draw(fn, words, lanes)
    group = lanes * _WORDS  # words at a time
    first, last = share(fn, fn.binary("udiv", count + (group - 1), group), tid, nth)
    whole = fn.binary("udiv", count, group)
    stop = fn.select(last < whole, last, whole)

    def at(i: Value) -> Value:
        return out + i * (group * bytes_)

    def write(i: Value, groups: int) -> None:
        place = at(i)
        for blocks in draw.blocks(i, groups):
            for x in make(fn, words, blocks):
                store(fn, x, place)
                place = place + x.lanes * x.dtype.size

    most = first + fn.binary("sdiv", stop - first, _TOGETHER) * _TOGETHER
    loop(fn, first, most, _TOGETHER, lambda i: write(i, _TOGETHER))
    loop(fn, most, stop, 1, lambda i: write(i, 1))

    def rest() -> None:
        place = at(whole)
        left = count - whole * group
        for x in make(fn, words, draw.blocks(whole, 1)[0]):
            parts = _as_elements(fn, x, uint32 if kind == "words" else uint8)
            store(fn, parts, place, first_lanes(fn, left, parts.lanes))
            place = place + x.lanes * x.dtype.size
            left = left - parts.lanes

    when(fn, whole < last, rest)  # the last thread has what is less than a group
    return module.text()


class _Draw:
    """The blocks of one draw, `lanes` at a time."""

    def __init__(self, fn: IRFunction, words: Words, lanes: int) -> None:
        self.fn = fn
        self.lanes = lanes
        state = words["state"]
        self.state = [
            fn.splat(convert(fn, load(fn, state + uint32.size * i, uint32), uint64), lanes)
            for i in range(_WORDS)
        ]
        self.keys = [
            [key + r * step for key, step in zip(self.state[:2], _WEYL, strict=True)]
            for r in range(_ROUNDS)
        ]

    def blocks(self, first: Value, groups: int) -> list[list[Value]]:
        """The words of some groups of blocks; the upper halves of the lanes hold anything.

        A group has a block in each lane. The rounds of one are a chain of operations, so those of
        several are written side by side.
        """
        fn = self.fn
        found = []
        for g in range(groups):
            number = fn.splat(convert(fn, (first + g) * self.lanes, uint64), self.lanes)
            c0 = number + fn.lane_numbers(uint64, self.lanes)
            found.append([c0, fn.binary("lshr", c0, 32), *self.state[2:]])
        for key in self.keys:
            found = [self._round(words, key) for words in found]
        return found

    def _round(self, words: Sequence[Value], key: Sequence[Value]) -> list[Value]:
        c0, c1, c2, c3 = words
        p0 = (c0 & _LOW) * _MULTIPLIERS[0]
        p1 = (c2 & _LOW) * _MULTIPLIERS[1]
        upper0, upper1 = (self.fn.binary("lshr", p, 32) for p in (p0, p1))
        return [upper1 ^ c1 ^ key[0], p1, upper0 ^ c3 ^ key[1], p0]


def _words(fn: IRFunction, words: Words, blocks: Sequence[Value]) -> list[Value]:
    """Block after block: pairs of words side by side in a lane, then lanes of both alternating."""
    lanes = blocks[0].lanes
    pairs = [(blocks[i] & _LOW) | fn.binary("shl", blocks[i + 1], 32) for i in range(0, _WORDS, 2)]
    found = []
    for half in range(2):
        start = half * lanes // 2
        order = [i + side * lanes for i in range(start, start + lanes // 2) for side in range(2)]
        places = ", ".join(f"i32 {i}" for i in order)
        found.append(
            fn.instruction(
                f"shufflevector {pairs[0]}, {pairs[1]}, <{lanes} x i32> <{places}>", uint64, lanes
            )
        )
    return found


def _bools(fn: IRFunction, words: Words, blocks: Sequence[Value]) -> list[Value]:
    """A byte for each word, those of a block side by side in 32 bits."""
    # A word below 2**32 plus 2**32 - least has bit 32 where it is `least` or more.
    lanes = blocks[0].lanes
    rest = fn.splat(convert(fn, words["least"] * -1 + (1 << 32), uint64), lanes)
    found: Value | None = None
    for i, block in enumerate(blocks):
        carry = fn.binary("lshr", (block & _LOW) + rest, 32 - 8 * i) & (1 << 8 * i)
        found = carry if found is None else found | carry
    assert found is not None
    return [convert(fn, found, uint32)]


def _as_elements(fn: IRFunction, x: Value, dtype: DType) -> Value:
    """The same bits as smaller elements."""
    lanes = x.lanes * x.dtype.size // dtype.size
    return fn.instruction(f"bitcast {x} to <{lanes} x i{8 * dtype.size}>", dtype, lanes)
